"""A real server that can be stopped, killed off its port, and started again on the same store."""

from __future__ import annotations

import asyncio

import pytest

import nearcast
from server.main import Server
from server.settings import load_settings
from tests.support.ports import free_port
from tests.support.tap import Tap

PATIENCE_S = 20.0


class Place:
    """Where a server runs: one port, one store."""

    def __init__(self, store, **flags) -> None:
        port = free_port()
        self.flags = {"area": "14,35,15,36", "store": str(store), "port": port, **flags}
        self.target = f"127.0.0.1:{port}"

    async def start(self):
        self.server = Server(load_settings(self.flags))
        await self.server.start()

    async def stop(self):
        await self.server.stop()


@pytest.fixture
async def place(tmp_path):
    place = Place(tmp_path / "store.db")
    await place.start()
    yield place
    await place.stop()


@pytest.fixture
async def client(place):
    async with nearcast.connect(place.target) as client:
        yield client


@pytest.fixture
async def proxy(place):
    proxy = Tap(place.target)
    proxy.target = await proxy.start()
    yield proxy
    await proxy.stop()


@pytest.fixture
async def far(proxy):
    """A client behind the proxy; `client` is on the server's own port."""
    async with nearcast.connect(proxy.target) as client:
        yield client


@pytest.fixture
async def virtual_place(tmp_path):
    place = Place(tmp_path / "store.db", virtual_time=True)
    await place.start()
    yield place
    if place.server.is_running:
        await place.stop()


@pytest.fixture
async def virtual(virtual_place):
    async with nearcast.connect(virtual_place.target) as client:
        await client.advance_clock(1_000)
        yield client


async def until(condition):
    """Wait for something that happens by itself; fail if it does not."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event to offer
            await asyncio.sleep(0.01)


async def refusal_of(device):
    """Wait until a device has ended; return why."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                await device.move(14.5, 35.5)
            except nearcast.RefusedError as refused:
                return refused
            await asyncio.sleep(0.01)
