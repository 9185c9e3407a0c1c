"""TLS: nobody is served in the clear, certificates change while the server runs, clients may need one."""

from __future__ import annotations

import asyncio
import contextlib

import grpc
import pytest

import nearcast
from identity import watched_file
from identity.watched_file import FileError
from nearcast.transport.roots import system_roots
from server.main import Server
from server.transport.listener import PortError
from tests.support.identity import Authority, keys_in, token
from tests.support.servers import serving
from tests.wire.conftest import served, settings

AUTHORITY = Authority()


def written(folder, authority=AUTHORITY):
    """Write a certificate and its key; return the flags for them."""
    for name, content in zip(("chain.pem", "key.pem"), authority.issue(), strict=True):
        (folder / name).write_bytes(content)
    return {"tls_certificate": str(folder / "chain.pem"), "tls_key": str(folder / "key.pem")}


async def is_let_in(port, tls, who=None):
    target = f"127.0.0.1:{port}"
    try:
        async with asyncio.timeout(20), nearcast.connect(target, token=who, tls=tls) as client:
            await client.status()
    except nearcast.UnavailableError:
        return False
    return True


async def test_no_client_is_served_in_the_clear(tmp_path):
    flags = {"jwks": str(keys_in(tmp_path)), **written(tmp_path)}
    who = token("ops", "operator")
    async with serving(settings(**flags)) as server:
        assert await is_let_in(server.port, nearcast.Tls(AUTHORITY.pem), who)
        assert not await is_let_in(server.port, None, who)
        assert not await is_let_in(server.port, nearcast.Tls(Authority().pem), who), "it is not that one"
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        async with asyncio.timeout(20):
            with contextlib.suppress(ConnectionError):
                response = await reader.read()
                assert b"grpc" not in response
        writer.close()


async def test_without_roots_of_its_own_a_client_trusts_those_of_the_machine(tmp_path, monkeypatch):
    other = Authority("other")
    async with serving(settings(**written(tmp_path))) as server:
        for authority, is_trusted in ((AUTHORITY, True), (other, False)):
            (tmp_path / "roots.pem").write_bytes(authority.pem)
            monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "roots.pem"))
            system_roots.cache_clear()
            assert await is_let_in(server.port, nearcast.Tls()) is is_trusted
    system_roots.cache_clear()


async def test_a_certificate_is_exchanged_while_the_server_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(watched_file, "LOOK_S", 0.0)
    flags = written(tmp_path)
    new = Authority("new")
    async with serving(settings(**flags)) as server:
        port = server.port
        target = f"127.0.0.1:{port}"
        async with nearcast.connect(target, tls=nearcast.Tls(AUTHORITY.pem)) as before:
            await before.status()
            written(tmp_path, new)
            assert await is_let_in(port, nearcast.Tls(new.pem))
            assert not await is_let_in(port, nearcast.Tls(AUTHORITY.pem))
            await before.status()  # who is there stays
            (tmp_path / "key.pem").write_bytes(b"broken")
            assert await is_let_in(port, nearcast.Tls(new.pem)), "a reload that fails keeps the old"


async def test_clients_show_a_certificate_where_they_must(tmp_path, monkeypatch):
    monkeypatch.setattr(watched_file, "LOOK_S", 0.0)
    clients = Authority("clients")
    roots = tmp_path / "roots.pem"
    roots.write_bytes(clients.pem)
    async with serving(settings(**written(tmp_path), tls_client_roots=str(roots))) as server:
        known = nearcast.Tls(AUTHORITY.pem, None, *clients.issue("client"))
        assert await is_let_in(server.port, known)
        assert not await is_let_in(server.port, nearcast.Tls(AUTHORITY.pem))
        foreign = nearcast.Tls(AUTHORITY.pem, None, *Authority().issue("client"))
        assert not await is_let_in(server.port, foreign)
        roots.write_bytes(Authority("others").pem)
        assert not await is_let_in(server.port, known), "its root is not known any more"


async def test_a_server_does_not_start_with_unusable_files(tmp_path):
    flags = written(tmp_path)
    (tmp_path / "key.pem").write_bytes(Authority().issue()[1])
    store = tmp_path / "store.db"
    with pytest.raises(FileError, match="does not belong to the certificate"):
        await Server(settings(**flags, store=str(store))).start()
    assert not store.exists(), "nothing was started"


async def test_a_client_without_a_handshake_is_not_waited_for(monkeypatch):
    monkeypatch.setattr("server.transport.listener._HANDSHAKE_MS", 200)
    async with serving(settings()) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"PRI * HT")
        async with asyncio.timeout(20):
            with contextlib.suppress(ConnectionError):
                while await reader.read(1000):
                    pass
        writer.close()


async def test_headers_beyond_measure_and_messages_beyond_the_limit_are_refused(tmp_path):
    flags = {"jwks": str(keys_in(tmp_path))}
    async with served(**flags) as stubs:
        channel = stubs.channel
        good = ("authorization", f"Bearer {token('one', 'publisher', 'device')}")
        bomb = [good, *((f"x-{number}", "y" * 1000) for number in range(100))]
        call = channel.stream_stream("/nearcast.v1.DeviceService/Attach")(metadata=bomb)
        with pytest.raises(grpc.aio.AioRpcError):
            await call.read()
        for method in ("DeviceService/Search", "PublisherService/Retract"):
            with pytest.raises(grpc.aio.AioRpcError) as failed:
                await channel.unary_unary(f"/nearcast.v1.{method}")(bytes(33 * 2**20), metadata=[good])
            assert failed.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        endless = channel.stream_stream("/nearcast.v1.PublisherService/Publish")()
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await endless.read()
        assert failed.value.code() is grpc.StatusCode.UNAUTHENTICATED, "no message was waited for"
        assert await is_let_in(stubs.server.port, None, token("ops", "operator"))


async def test_connections_beyond_the_bound_are_closed_and_there_is_room_again():
    async with serving(settings(connections_max=2)) as server:
        target = f"127.0.0.1:{server.port}"
        async with nearcast.connect(target) as one, nearcast.connect(target) as two:
            await one.status()
            await two.status()
            assert not await is_let_in(server.port, None)
            await one.status()
        async with asyncio.timeout(20):
            while not await is_let_in(server.port, None):
                pass


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])  # noqa: S104
def test_nothing_is_served_beyond_this_machine_without_tls_and_tokens(tmp_path, host):
    tls, keys = written(tmp_path), {"jwks": str(keys_in(tmp_path))}
    for flags in ({}, tls, keys, {"tokens": ["secret"]}):
        with pytest.raises(ValueError, match="insecure"):
            settings(host=host, **flags)
        assert settings(host=host, insecure=True, **flags).host == host
    assert settings(host=host, **tls, **keys).host == host
    assert settings(host=host, **tls, tokens=["secret"]).host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "localhost", "::1", "[::1]"])
def test_this_machine_may_do_without(host):
    assert settings(host=host).host == host.strip("[]")


async def test_a_port_that_is_taken_is_an_error_with_tls_too(tmp_path):
    async with serving(settings()) as server:
        with pytest.raises(PortError, match=str(server.port)):
            await Server(settings(port=server.port, **written(tmp_path))).start()
