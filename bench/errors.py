"""What a benchmark says when it cannot go on."""


class BenchError(Exception):
    """Data are missing, an option has a value that nobody knows, or a process has failed."""
