"""Runs the source of a cluster at one node at a time.

Of the nodes that can read the source, the first one by address runs it while it has its lease, as it is
the first one that trims the log. Nodes without `--source` do not count, so it runs as long as any node
has it. This is for efficiency only: two nodes may run it for a moment, when one of them was paused. What
an entry of the source has read counts only if the cursor of its stream is still the one before it
(`cluster.entries.TakeIn`), so whatever nodes append, rows count once and in order.

Cost: one look at the leases every 100 ms.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from server.bridge.attempts import Attempts
from server.bridge.source import Source
from server.counters import Counters, Feed

_log = logging.getLogger(__name__)

_LOOK_S = 0.1


class SourceLease(Protocol):
    """Where a node learns whether it is to run the source."""

    @property
    def reads_source(self) -> bool:
        """Whether this node is to run the source now."""
        ...


class SourceKeeper:
    """Starts and stops the source of a node.

    Parameters
    ----------
    lease
        Knows whether this node is to run it.
    make
        Opens the feed, and returns a source that is not running yet.
    counters
        Count failures.
    """

    def __init__(self, lease: SourceLease, make: Callable[[], Source], counters: Counters) -> None:
        self._lease = lease
        self._make = make
        self._attempts = Attempts("source", Feed.SOURCE, counters)

    async def run(self) -> None:
        """Run the source whenever this node is to, until cancelled."""
        while True:
            if not self._lease.reads_source:
                await asyncio.sleep(_LOOK_S)
                continue
            try:
                source = self._make()
                self._attempts.succeeded()
                await self._run(source)
            except Exception as error:  # noqa: BLE001 - no error of a feed ends the server
                await self._attempts.failed(error)

    async def _run(self, source: Source) -> None:
        """Run a source until another node is to run it. Raises an error of the source."""
        _log.info("this node reads the source")
        running = asyncio.create_task(source.run())
        try:
            while self._lease.reads_source and not running.done():
                await asyncio.wait([running], timeout=_LOOK_S)
            if running.done():
                running.result()
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            _log.info("this node has stopped reading the source")
