"""What a feed brings at once, and how it is named in the log."""

from __future__ import annotations

from typing import Any, NamedTuple

ROWS_MAX = 100
"""Of a chunk: its commit and the matching of its objects take the event loop some milliseconds."""

_SHOWN_MAX = 120


class Chunk(NamedTuple):
    """Rows, or what is passed over.

    Parameters
    ----------
    offset
        Up to where the stream was read with this.
    rows
        As they were read, with the columns of `MESSAGES`.
    passed_over
        Why a whole file or entry is; empty if none is.
    """

    offset: str
    rows: list[dict[str, Any]]
    passed_over: str = ""


def shown(name: str) -> str:
    """Return a name that others gave as one line: whatever cannot be printed is escaped."""
    text = repr(name)
    return text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 4]}...'"


def described(error: BaseException) -> str:
    """Return what may be in a log of an error: no word of what was read.

    Arrow repeats values in its messages, and Redis what it was sent; the system does not.
    """
    if isinstance(error, OSError) and error.errno is not None and error.strerror:
        return error.strerror
    return type(error).__name__
