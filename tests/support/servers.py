"""Servers within the process of a test, which end with it however it ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from server.limits import Limits
from server.main import Server
from server.settings import ServerSettings
from server.store import SqliteStore
from server.store.mutations import Mutation

_PATIENCE_S = 600.0
"""Nothing takes that long: who waits longer waits for ever."""


@asynccontextmanager
async def serving(settings: ServerSettings, limits: Limits | None = None) -> AsyncIterator[Server]:
    """Run a server; stop it unless the block has."""
    server = Server(settings, limits)
    await server.start()
    try:
        yield server
    finally:
        if server.is_running:
            await server.stop()


class HeldCommits:
    """Lets commits of a store begin when the test says so, and counts their rows.

    Parameters
    ----------
    store
        Of a server of this process.
    also_of_time
        Whether those are held, too, that have no rows.
    """

    def __init__(self, store: SqliteStore, *, also_of_time: bool = False) -> None:
        self.rows: list[int] = []
        self.held = 0
        """The rows of the commit that is held, or was last."""
        self.has_begun = asyncio.Event()
        self.go_on = threading.Event()
        self._also_of_time = also_of_time
        self._loop = asyncio.get_running_loop()
        self._commit = store.commit
        store.commit = self._hold

    async def begun(self) -> None:
        """Wait until a commit is held."""
        async with asyncio.timeout(_PATIENCE_S):
            await self.has_begun.wait()

    def _hold(self, mutations: Sequence[Mutation], *times_ms: int) -> None:
        if mutations or self._also_of_time:
            self.held = len(mutations)
            self._loop.call_soon_threadsafe(self.has_begun.set)
            if not self.go_on.wait(_PATIENCE_S):
                raise AssertionError("a commit was held up and never released")
            self.rows.append(len(mutations))
        self._commit(mutations, *times_ms)
