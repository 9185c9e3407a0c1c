"""The sink: changes of objects go to a feed, in order, at least once.

A change is written to disk with the command that causes it, and deleted when it was written to the feed.
So a server that was killed writes the last changes again, under the same numbers or larger ones, and
loses nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

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


class Sink:
    """Writes changes to a feed.

    Parameters
    ----------
    target
        The feed.
    store
        The store with the changes.
    execute
        Executes commands.
    counters
        Count the failures.
    """

    def __init__(
        self, target: SinkFeed, store: SqliteStore, execute: Execute, counters: Counters
    ) -> None:
        self._target, self._store, self._execute = target, store, execute
        self._attempts = Attempts("sink", Feed.SINK, counters)

    async def run(self) -> None:
        """Write changes to the feed, until cancelled."""
        while True:
            try:
                if not self._store.unsent_count or not await self._send():
                    await asyncio.sleep(_WAIT_S)
                    continue
            except Exception as error:  # noqa: BLE001 - no error of a feed ends the server
                await self._attempts.failed(error)
            else:
                self._attempts.succeeded()

    async def _send(self) -> int:
        """Write the next changes to the feed; return their number."""
        happened = await asyncio.to_thread(self._store.unsent, _AT_ONCE)
        if happened:
            first, last = happened[0].number, happened[-1].number
            await asyncio.to_thread(self._target.put, first, last, _rows(happened))
            await self._execute(c.SinkSent(last))
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
