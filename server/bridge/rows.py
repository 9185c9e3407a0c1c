"""Rows of a feed of messages become a command; those that are wrong are left out.

Nothing here touches what the event loop changes, so it is done in the thread that reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from feeds.schemas import EXPIRE, PUBLISH, RETRACT
from safe_region.frame import Frame
from server import command as c
from server.commands.validation import checked_object
from server.core.specs.checks import require
from server.errors import RefusalError
from server.limits import Limits
from server.model import NewObject

KEY = "source/"
"""Begins the keys of objects of the source."""

_ACTIONS = (PUBLISH, RETRACT, EXPIRE)


class ValidatedRows(NamedTuple):
    """What rows come to.

    Parameters
    ----------
    command
        What is to be done.
    refused
        How many rows are wrong.
    first
        What is wrong with the first of them, without its value: that may be where somebody is.
    """

    command: c.TakeIn
    refused: int
    first: str


class RowValidator:
    """Decides about rows.

    Parameters
    ----------
    limits, frame
        What is accepted, and where.
    """

    def __init__(self, limits: Limits, frame: Frame) -> None:
        self._limits, self._frame = limits, frame

    def validated(
        self, rows: Sequence[Mapping[str, Any]], stream: str, offset: str, now_ms: int
    ) -> ValidatedRows:
        """Return what rows come to at a time. O(rows)."""
        objects: list[NewObject] = []
        gone: list[str] = []
        refused, first = 0, ""
        for row in rows:
            try:
                self._add(row, objects, gone, now_ms)
            except RefusalError as error:
                first = first or f"{error.field} must be {error.limit}"
                refused += 1
        return ValidatedRows(c.TakeIn(tuple(objects), tuple(gone), stream, offset), refused, first)

    def _add(
        self, row: Mapping[str, Any], objects: list[NewObject], gone: list[str], now_ms: int
    ) -> None:
        """Add what a row says.

        Raises
        ------
        RefusalError
            If it is wrong.
        """
        action, object_id, time_ms = row["action"], row["object_id"], row["time_ms"]
        require(action in _ACTIONS, "action", None, f"one of {', '.join(_ACTIONS)}")
        require(object_id is not None and object_id >= 0, "object_id", object_id, "0 to 2^63 - 1")
        require(time_ms is not None, "time_ms", time_ms, "a time in epoch milliseconds")
        key = f"{KEY}{object_id}"
        if action == RETRACT:
            gone.append(key)
        if action != PUBLISH:
            return
        for name in ("lon", "lat", "keywords"):
            require(row[name] is not None, name, None, "there")
        left_ms = self._limits.ttl_ms_max
        if row["ttl_ms"] is not None:
            left_ms = min(left_ms, time_ms + row["ttl_ms"] - now_ms)
            if left_ms <= 0:
                return  # it has expired on its way
        words = tuple(word or "" for word in row["keywords"])
        new = NewObject(row["lon"], row["lat"], words, left_ms, row["payload"] or b"", key)
        objects.append(checked_object(new, self._limits, self._frame, f"object {object_id}"))
