"""One device's conversation, without I/O: it runs on any stream, and in tests on none."""
