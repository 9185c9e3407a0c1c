"""The sink: changes of objects go to a feed, in order, at least once.

A change is written to disk with the command that causes it, and deleted when it was written to the feed.
So a server that was killed writes the last changes again, under the same numbers or larger ones, and
loses nothing. In a cluster, the changes that wait are in the state that all nodes share (`LogSink`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

import pyarrow as pa

from feeds.schemas import MESSAGES
from server import command as c
from server.bridge.attempts import Attempts
from server.bridge.feeds import SinkFeed
from server.counters import Counters, Feed
from server.store import SqliteStore
from server.store.mutations import Happened

_AT_ONCE = 5_000
_WAIT_S = 0.05
"""Interval between two checks for changes."""

Execute = Callable[[c.Command], Awaitable[Any]]


class Changes(Protocol):
    """The changes that wait for the sink, in order."""

    @property
    def waiting_count(self) -> int:
        """The number of changes that wait."""
        ...

    async def next(self, count_max: int) -> list[Happened]:
        """Return the next changes, at most `count_max`. They keep waiting."""
        ...

    async def sent(self, number: int) -> None:
        """Delete the changes up to a number."""
        ...


class StoredChanges:
    """The changes in the store of a single server; see `Changes`.

    Parameters
    ----------
    store
        The store.
    execute
        Executes commands.
    """

    def __init__(self, store: SqliteStore, execute: Execute) -> None:
        self._store, self._execute = store, execute

    @property
    def waiting_count(self) -> int:
        """The number of changes that wait."""
        return self._store.unsent_count

    async def next(self, count_max: int) -> list[Happened]:
        """Return the next changes."""
        return await asyncio.to_thread(self._store.unsent, count_max)

    async def sent(self, number: int) -> None:
        """Delete the changes up to a number."""
        await self._execute(c.SinkSent(number))


class Sink:
    """Writes changes to a feed.

    Parameters
    ----------
    target
        The feed.
    changes
        The changes that wait.
    counters
        Count the failures.
    """

    def __init__(self, target: SinkFeed, changes: Changes, counters: Counters) -> None:
        self._target, self._changes = target, changes
        self._attempts = Attempts("sink", Feed.SINK, counters)

    async def run(self) -> None:
        """Write changes to the feed, until cancelled."""
        try:
            while True:
                await self._step()
        finally:
            self._attempts.ended()

    async def _step(self) -> None:
        """Write the next changes; wait if there are none, or if it fails."""
        try:
            if not self._changes.waiting_count or not await self._send():
                await asyncio.sleep(_WAIT_S)
                return
        except Exception as error:  # noqa: BLE001 - no error of a feed ends the server
            await self._attempts.failed(error)
        else:
            self._attempts.succeeded()

    async def _send(self) -> int:
        """Write the next changes to the feed; return their number."""
        happened = await self._changes.next(_AT_ONCE)
        if happened:
            first, last = happened[0].number, happened[-1].number
            await asyncio.to_thread(self._target.put, first, last, _rows(happened))
            await self._changes.sent(last)
        return len(happened)


def _rows(happened: Sequence[Happened]) -> pa.Table:
    """Return the rows of changes for the feed."""
    rows = []
    for one in happened:
        row: dict[str, Any] = {
            "action": one.action,
            "object_id": one.object_id,
            "time_ms": one.time_ms,
        }
        if one.about:
            names = ("lon", "lat", "keywords", "ttl_ms")
            row |= zip(names, json.loads(one.about), strict=True)
            row["payload"] = one.payload
        rows.append(row)
    return pa.Table.from_pylist(rows, MESSAGES)
