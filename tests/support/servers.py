"""Servers within the process of a test, which end with it however it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from server.limits import Limits
from server.main import Server
from server.settings import ServerSettings
from server.store.mutations import Mutation


@asynccontextmanager
async def serving(settings: ServerSettings, limits: Limits | None = None) -> AsyncIterator[Server]:
    """Run a server; stop it unless the block has."""
    server = Server(settings, limits)
    await server.start()
    try:
        yield server
    finally:
        if not server._loop_task.done():
            await server.stop()


class HeldCommits:
    """Lets the commits of what a server was asked begin when the test says so, and counts their rows.

    Parameters
    ----------
    server
        Of this process.
    """

    def __init__(self, server: Server) -> None:
        self.rows: list[int] = []
        self.has_begun = asyncio.Event()
        self.go_on = asyncio.Event()
        self._command_loop = server._command_loop
        self._commit = self._command_loop._commit
        self._command_loop._commit = self._hold

    async def _hold(self, mutations: list[Mutation], until_ms: int | None = None) -> None:
        if mutations:  # else of the time alone
            self.has_begun.set()
            await self.go_on.wait()
            self.rows.append(len(mutations))
        await self._commit(mutations, until_ms)
