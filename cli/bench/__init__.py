"""`nearcast bench`, a command for each benchmark."""

from cli.bench.group import bench

__all__ = ["bench"]
