"""Conversion of rows of a feed into a command; wrong rows are left out.

It does not touch the state of the event loop, so it runs in the thread that reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cluster.entries import Cursor
from feeds.schemas import EXPIRE, PUBLISH, RETRACT
from nearcast.checks import require
from nearcast.errors import RefusedError
from safe_region.earth.frame import Frame
from server import command as c
from server.commands.validation import checked_object
from server.limits import Limits
from server.model import NewObject

KEY = "source/"
"""Prefix of the keys of objects from the source."""

_ACTIONS = (PUBLISH, RETRACT, EXPIRE)


class ValidatedRows(NamedTuple):
    """The result of validating rows.

    Parameters
    ----------
    command
        The command of the valid rows.
    refused
        The number of wrong rows.
    first
        The error of the first of them, without its value, which may be a person's position.
    """

    command: c.TakeIn
    refused: int
    first: str


class RowValidator:
    """Validates rows.

    Parameters
    ----------
    limits, frame
        The limits of objects, and the service area.
    """

    def __init__(self, limits: Limits, frame: Frame) -> None:
        self._limits, self._frame = limits, frame

    def validated(
        self, rows: Sequence[Mapping[str, Any]], stream: str, before: Cursor, offset: str, now_ms: int
    ) -> ValidatedRows:
        """Return the command of rows between a cursor and an offset, at a time. O(rows)."""
        objects: list[NewObject] = []
        gone: list[str] = []
        refused, first = 0, ""
        for row in rows:
            try:
                self._add(row, objects, gone, now_ms)
            except RefusedError as error:
                first = first or f"{error.field} must be {error.limit}"
                refused += 1
        command = c.TakeIn(tuple(objects), tuple(gone), stream, before, offset)
        return ValidatedRows(command, refused, first)

    def _add(
        self, row: Mapping[str, Any], objects: list[NewObject], gone: list[str], now_ms: int
    ) -> None:
        """Add the object or key of a row.

        Raises
        ------
        RefusedError
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
                return  # it has expired in transit
        words = tuple(word or "" for word in row["keywords"])
        new = NewObject(row["lon"], row["lat"], words, left_ms, row["payload"] or b"", key)
        objects.append(checked_object(new, self._limits, self._frame, f"object {object_id}"))
