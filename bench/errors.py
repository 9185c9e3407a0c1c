"""The error that ends a benchmark."""


class BenchError(Exception):
    """Data are missing, an option has an unknown value, or a process has failed."""
