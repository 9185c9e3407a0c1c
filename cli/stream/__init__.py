"""`nearcast stream`: commands of the stream job."""

from cli.stream.group import stream

__all__ = ["stream"]
