"""One device's session, without I/O: it runs on any stream, and in tests on none."""
