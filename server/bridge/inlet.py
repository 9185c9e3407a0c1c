"""The inlet: objects of a feed become objects of the server, each once.

Rows are taken in groups, in order; how far goes to disk with what they bring, so a server that was killed
goes on where it was. Keys tell what is known: `inlet/` and the object's number in the feed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from feeds.schemas import EXPIRE, PUBLISH, RETRACT
from server.bridge.feeds import FeedError, Taken
from server.commands import command as c
from server.commands.validation import checked_object
from server.core.coordinator import Coordinator
from server.core.specs.checks import require
from server.errors import RefusalError
from server.model import NewObject

_log = logging.getLogger(__name__)

_ROWS_MAX = 2_000
"""Taken at once: what a commit of a few milliseconds writes."""
_WAIT_S = 0.25
_AGAIN_S = 1.0
_KEY = "inlet/"
_ACTIONS = (PUBLISH, RETRACT, EXPIRE)

Execute = Callable[[c.Command], Awaitable[Any]]


class Inlet:
    """Takes a feed.

    Parameters
    ----------
    source
        The feed.
    offsets
        Up to where its streams were taken.
    coordinator
        What is accepted, and what time it is.
    execute
        Carries out commands.
    """

    def __init__(
        self, source: Taken, offsets: Mapping[str, str], coordinator: Coordinator, execute: Execute
    ) -> None:
        self._source, self._offsets = source, offsets
        self._coordinator, self._execute = coordinator, execute

    async def run(self) -> None:
        """Take what comes, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for stream in self._source.streams:
                tasks.create_task(self._take(stream))

    async def _take(self, stream: str) -> None:
        after = self._offsets.get(stream, self._source.begin(stream))
        while True:
            try:
                found = await asyncio.to_thread(list, self._source.next(stream, after, _WAIT_S))
            except FeedError as error:
                _log.warning("the inlet cannot be read, is tried again: %s", error)
                await asyncio.sleep(_AGAIN_S)
                continue
            if not found:
                await asyncio.sleep(_WAIT_S)
            rows: list[dict[str, Any]] = []
            for number, (offset, batch) in enumerate(found):
                rows += batch.to_pylist()
                if len(rows) >= _ROWS_MAX or number == len(found) - 1:
                    await self._take_in(rows, stream, offset)
                    rows = []
                after = offset

    async def _take_in(self, rows: list[dict[str, Any]], stream: str, offset: str) -> None:
        """Have rows carried out, however often that takes."""
        while True:
            try:
                await self._execute(self._command(rows, stream, offset))
            except RefusalError as error:
                _log.warning("the inlet waits: %s", error)
                await asyncio.sleep(_AGAIN_S)
            else:
                return

    def _command(self, rows: list[dict[str, Any]], stream: str, offset: str) -> c.TakeIn:
        """Return what rows come to; those that are wrong are counted and left out."""
        objects: list[NewObject] = []
        gone: list[str] = []
        refusals: list[str] = []
        for row in rows:
            try:
                self._add(row, objects, gone)
            except RefusalError as error:
                refusals.append(f"{error.field}, {error.reason.name}")  # not what it was: a position, say
        if refusals:
            self._coordinator.counters.inlet_refused += len(refusals)
            _log.warning("the inlet has %d rows that are refused, first: %s", len(refusals), refusals[0])
        return c.TakeIn(tuple(objects), tuple(gone), stream, offset)

    def _add(self, row: Mapping[str, Any], objects: list[NewObject], gone: list[str]) -> None:
        """Add what a row says.

        Raises
        ------
        RefusalError
            If it is wrong.
        """
        action, object_id, time_ms = row["action"], row["object_id"], row["time_ms"]
        require(action in _ACTIONS, "action", repr(action), f"one of {', '.join(_ACTIONS)}")
        require(object_id is not None and object_id >= 0, "object_id", object_id, "0 to 2^63 - 1")
        require(time_ms is not None, "time_ms", time_ms, "a time in epoch milliseconds")
        key = f"{_KEY}{object_id}"
        if action == RETRACT:
            gone.append(key)
        if action != PUBLISH:
            return
        for name in ("lon", "lat", "keywords"):
            require(row[name] is not None, name, None, "there")
        coordinator = self._coordinator
        limits, left_ms = coordinator.limits, coordinator.limits.ttl_ms_max
        if row["ttl_ms"] is not None:
            left_ms = min(left_ms, time_ms + row["ttl_ms"] - coordinator.matching.now_ms)
            if left_ms <= 0:
                return  # it has expired on its way
        words = tuple(word or "" for word in row["keywords"])
        new = NewObject(row["lon"], row["lat"], words, left_ms, row["payload"] or b"", key)
        objects.append(checked_object(new, limits, coordinator.frame, f"object {object_id}"))
