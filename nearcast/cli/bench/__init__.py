"""`nearcast bench`, a command for each benchmark."""

from nearcast.cli.bench.group import bench

__all__ = ["bench"]
