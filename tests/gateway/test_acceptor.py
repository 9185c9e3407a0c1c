"""Connections with TLS count from the time when they are accepted, whatever their handshake becomes."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import ssl

import aiohttp
import pytest
import uvloop

from gateway import acceptor
from gateway.settings import GatewaySettings
from identity.self_signed import write_self_signed
from tests.gateway.town import PATIENCE_S, running, until


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def runner(request):
    """The event loop of a gateway is uvloop's, that of most tests is Python's."""
    with asyncio.Runner(loop_factory=request.param) as runner:
        yield runner


@pytest.fixture
def settings(tmp_path):
    paths = tmp_path / "chain.pem", tmp_path / "key.pem"
    write_self_signed(*paths)
    return GatewaySettings(
        port=0,
        server="127.0.0.1:9",
        tokens=("secret",),
        tls_certificate=paths[0],
        tls_key=paths[1],
        address_connections_max=3,
    )


async def health(gateway, settings):
    trusted = ssl.create_default_context(cafile=str(settings.tls_certificate))
    address = f"https://127.0.0.1:{gateway.port}/healthz"
    async with aiohttp.ClientSession() as http, http.get(address, ssl=trusted) as response:
        return response.status


@contextlib.asynccontextmanager
async def silent(gateway, count):
    """Connections without a handshake."""
    pairs = [await asyncio.open_connection("127.0.0.1", gateway.port) for _ in range(count)]
    try:
        yield pairs
    finally:
        for _, writer in pairs:
            writer.transport.abort()


@pytest.mark.parametrize("setting", ["connections_max", "address_connections_max"])
def test_connections_in_their_handshake_are_limited(runner, settings, setting, monkeypatch):
    monkeypatch.setattr(acceptor, "_HANDSHAKE_S", 10.0 * PATIENCE_S)
    settings = settings.model_copy(update={"address_connections_max": 0, setting: 3})

    async def check():
        async with running(settings) as gateway:
            counters = gateway.counters
            async with silent(gateway, 3):
                await until(lambda: counters.connections == 3)
                async with silent(gateway, 1) as [(reader, _)], asyncio.timeout(PATIENCE_S):
                    with contextlib.suppress(ConnectionError):
                        assert await reader.read() == b""
                assert (counters.connections, counters.connections_refused) == (3, 1)
                with pytest.raises(aiohttp.ClientConnectionError):
                    await health(gateway, settings)
            await until(lambda: not counters.connections)
            assert await health(gateway, settings) == 200
            await until(lambda: not counters.connections)

    runner.run(check())


def test_a_handshake_that_fails_or_takes_long_ends_to_count(runner, settings, monkeypatch):
    monkeypatch.setattr(acceptor, "_HANDSHAKE_S", 0.1)

    async def check():
        async with running(settings) as gateway, silent(gateway, 2) as [(_, garbage), (waiting, _)]:
            garbage.write(b"GET / HTTP/1.1\r\n\r\n")
            async with asyncio.timeout(PATIENCE_S):
                with contextlib.suppress(ConnectionError):
                    assert await waiting.read() == b""
            await until(lambda: not gateway.counters.connections)
            monkeypatch.setattr(acceptor, "_HANDSHAKE_S", PATIENCE_S)
            assert await health(gateway, settings) == 200

    runner.run(check())


def test_a_lack_of_open_files_ends_no_listening(runner, settings, monkeypatch, caplog):
    monkeypatch.setattr(acceptor, "_PAUSE_S", 0.01)
    accept, failures = socket.socket.accept, [OSError(errno.EMFILE, "Too many open files")]

    def failing(listening):
        if failures:
            raise failures.pop()
        return accept(listening)

    async def check():
        async with running(settings) as gateway:
            monkeypatch.setattr(socket.socket, "accept", failing)
            assert await health(gateway, settings) == 200
        assert "no connection is accepted for 0.01 s: Too many open files" in caplog.text

    runner.run(check())


def test_a_gateway_that_stops_ends_handshakes(runner, settings):
    async def check():
        async with running(settings) as gateway:
            async with silent(gateway, 1) as [(reader, _)]:
                await until(lambda: gateway.counters.connections == 1)
                await gateway.stop()
                async with asyncio.timeout(PATIENCE_S):
                    with contextlib.suppress(ConnectionError):
                        assert await reader.read() == b""
            assert not gateway.counters.connections
            with pytest.raises(OSError, match=r"."):
                await asyncio.open_connection("127.0.0.1", gateway.port)

    runner.run(check())
