"""Runs a feed of a cluster, its source or its sink, at one node at a time.

Of the nodes that have the feed, the first one by address runs it while it has its lease, as it is the
first one that trims the log. Nodes without it do not count, so it runs as long as any node has it. This
is for efficiency only: two nodes may run it for a moment, when one of them was paused. Rows of the source
count once all the same (`cluster.entries.TakeIn`), and those of the sink may be repeated in any case.

Cost: one look at the leases every 100 ms.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from server.bridge.attempts import Attempts

_log = logging.getLogger(__name__)

_LOOK_S = 0.1


class Running(Protocol):
    """A source or a sink."""

    async def run(self) -> None:
        """Run it, until cancelled."""
        ...


class FeedKeeper:
    """Starts and stops a feed of a node.

    Parameters
    ----------
    name
        The name for the log.
    is_due
        Returns whether this node is to run it now.
    make
        Returns the source or the sink, which is not running yet.
    attempts
        Count the failures.
    """

    def __init__(
        self,
        name: str,
        is_due: Callable[[], bool],
        make: Callable[[], Awaitable[Running]],
        attempts: Attempts,
    ) -> None:
        self._name = name
        self._is_due = is_due
        self._make = make
        self._attempts = attempts

    async def run(self) -> None:
        """Run the feed whenever this node is to, until cancelled."""
        while True:
            if not self._is_due():
                await asyncio.sleep(_LOOK_S)
                continue
            try:
                feed = await self._make()
                self._attempts.succeeded()
                await self._run(feed)
            except Exception as error:  # noqa: BLE001 - no error of a feed ends the server
                await self._attempts.failed(error)

    async def _run(self, feed: Running) -> None:
        """Run a feed until another node is to run it. Raises an error of the feed."""
        _log.info("this node runs the %s", self._name)
        running = asyncio.create_task(feed.run())
        try:
            while self._is_due() and not running.done():
                await asyncio.wait([running], timeout=_LOOK_S)
            if running.done():
                running.result()
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            _log.info("this node has stopped the %s", self._name)
