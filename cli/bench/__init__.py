"""`nearcast bench`: commands of the benchmarks."""

from cli.bench.group import bench

__all__ = ["bench"]
