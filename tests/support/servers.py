"""Servers within the process of a test, which end with it however it ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from server.limits import Limits
from server.main import Server
from server.settings import ServerSettings


@asynccontextmanager
async def serving(settings: ServerSettings, limits: Limits | None = None) -> AsyncIterator[Server]:
    """Run a server; stop it unless the block has."""
    server = Server(settings, limits)
    await server.start()
    try:
        yield server
    finally:
        if not server._pumping.done():
            await server.stop()
