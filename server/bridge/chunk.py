"""The rows that a feed returns at once, and names of feeds in the log."""

from __future__ import annotations

from typing import Any, NamedTuple

ROWS_MAX = 100
"""Rows of a chunk: its commit and the matching of its objects take the event loop some milliseconds."""

_SHOWN_MAX = 120


class Chunk(NamedTuple):
    """Rows, or the reason why a file or entry is skipped.

    Parameters
    ----------
    offset
        The offset in the stream after this chunk.
    rows
        The rows as read, with the columns of `MESSAGES`.
    passed_over
        Why a whole file or entry is skipped; empty if none is.
    """

    offset: str
    rows: list[dict[str, Any]]
    passed_over: str = ""


def shown(name: str) -> str:
    """Return a name from others as one line, with unprintable characters escaped."""
    text = repr(name)
    return text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 4]}...'"


def described(error: BaseException) -> str:
    """Return the text for the log about an error, without any data that was read.

    Arrow repeats values in its messages, and Redis the data it was sent; the system does not.
    """
    if isinstance(error, OSError) and error.errno is not None and error.strerror:
        return error.strerror
    return type(error).__name__
