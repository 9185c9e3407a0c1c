"""The session of one device, without I/O: it runs on any stream, and in tests without a stream."""
