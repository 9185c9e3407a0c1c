"""`nearcast stream`, a command for each thing that is done with a job."""

from cli.stream.group import stream

__all__ = ["stream"]
