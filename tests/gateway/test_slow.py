"""A device that does not read: it is set aside, and nobody else waits."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket

import aiohttp

from gateway import device_socket
from nearcast.v1 import control_service_pb2
from tests.gateway.town import PATIENCE_S, a_town, reason_of, until
from tests.support.identity import bearer, token
from tests.wire.city import publish
from tests.wire.test_bad_input import an_object

PUBLISHER = token("publisher", "publisher")
OPERATOR = token("operator", "operator")
KEYS = 10
ROUNDS = itertools.count()


async def replace(town):
    """Replace ten objects, of 16 KiB each: devices get them all."""
    payload = next(ROUNDS).to_bytes(8, "big") * 2048
    await publish(town, PUBLISHER, *[an_object(key=f"k{i}", payload=payload) for i in range(KEYS)])


def narrow(_address):
    """Return a socket that takes little before its program reads."""
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    found.setblocking(False)
    return found


@contextlib.asynccontextmanager
async def a_slow_town(folder):
    """A town, and the same for clients that take little."""
    connector = aiohttp.TCPConnector(socket_factory=narrow)
    async with a_town(folder) as town, aiohttp.ClientSession(connector=connector) as http:
        yield town, town.with_http(http)


def added(responses):
    return sum(len(one.delta.add) for one in responses)


async def test_a_slow_device_is_detached_and_says_hello_again(tmp_path):
    async with (
        a_slow_town(tmp_path) as (town, slow_town),
        town.client(name="quick") as quick,
        slow_town.client() as slow,
    ):
        await quick.attach("quick")
        await quick.subscribe(k=20)
        epoch = (await slow.attach()).epoch
        version = (await slow.subscribe(k=20)).version
        count = seen = 0
        async with asyncio.timeout(PATIENCE_S):
            while not town.gateway.counters.slow:
                await replace(town)
                count += KEYS
                seen += added(await quick.ping())
        session = town.server.coordinator.sessions["device"]
        await until(lambda: not session.is_attached)
        await replace(town)  # which it misses
        count += KEYS
        while not (response := await slow.receive()).HasField("detached"):
            assert response.delta.version == version + 1
            version = response.delta.version
        assert reason_of(response.detached.error) == "SILENT"
        welcome = await slow.attach(version=version, epoch=epoch)
        while version < welcome.version:
            delta = (await slow.receive()).delta
            assert delta.snapshot or delta.version == version + 1
            version = delta.version
        assert sorted(one.object.key for one in delta.add) == sorted(f"k{i}" for i in range(KEYS))
        assert session.is_attached
        await town.control.Sync(control_service_pb2.SyncRequest(), metadata=bearer(OPERATOR))
        seen += added(await quick.ping())
        assert seen == count
        assert town.gateway.counters.slow == 1


async def test_a_device_that_never_reads_is_closed(tmp_path, monkeypatch):
    monkeypatch.setattr(device_socket, "_DRAIN_S", 0.1)
    async with a_slow_town(tmp_path) as (town, slow_town), slow_town.client() as slow:
        await slow.attach()
        await slow.subscribe(k=20)
        async with asyncio.timeout(PATIENCE_S):
            while town.gateway.counters.sockets:
                await replace(town)
        assert town.gateway.counters.slow == 1
