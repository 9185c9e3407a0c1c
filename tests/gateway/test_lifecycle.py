"""Start, readiness, drain, metrics, certificates; a server that goes and comes back."""

from __future__ import annotations

import asyncio
import contextlib
import ssl

import aiohttp
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from pydantic import ValidationError

from gateway import fleet_link
from gateway.conversation import EARLY_BYTES_MAX
from gateway.main import PortError
from gateway.settings import GatewaySettings
from gateway.upstream import Upstream
from identity.self_signed import write_self_signed
from identity.watched_file import FileError
from nearcast.v1 import device_service_pb2
from tests.gateway.town import (
    PATIENCE_S,
    Client,
    Request,
    a_town,
    gateway_settings,
    reason_of,
    running,
    until,
)
from tests.sdk.conftest import Place
from tests.support.identity import Authority, token
from tests.wire.test_bad_input import a_spec, hello, subscribe


async def status_of(http, address):
    async with http.get(address) as response:
        return response.status


async def test_readiness_follows_the_server(tmp_path, caplog):
    place = Place(tmp_path / "store.db")
    settings = GatewaySettings(port=0, server=place.target)
    async with running(settings) as gateway, aiohttp.ClientSession() as http:
        base = f"http://127.0.0.1:{gateway.port}"
        assert await status_of(http, f"{base}/healthz") == 200
        assert await status_of(http, f"{base}/readyz") == 503
        lost = (
            f"the server {place.target} cannot be reached or does not serve; devices wait; "
            "is a server running at this address?"
        )
        await until(lambda: lost in caplog.messages)
        await place.start()
        await until(lambda: gateway.readiness.is_ready)
        assert await status_of(http, f"{base}/readyz") == 200
        await place.stop()
        await until(lambda: not gateway.readiness.is_ready)
        assert await status_of(http, f"{base}/readyz") == 503


async def test_devices_of_a_server_that_restarts_stay_connected(tmp_path, monkeypatch):
    monkeypatch.setattr(fleet_link, "_PATIENCE_S", PATIENCE_S)
    place = Place(tmp_path / "store.db")
    await place.start()
    settings = GatewaySettings(port=0, server=place.target)
    async with running(settings) as gateway, aiohttp.ClientSession() as http:
        address = f"http://127.0.0.1:{gateway.port}/v1/attach"
        async with http.ws_connect(address, protocols=("nearcast.v1",)) as socket:
            client = Client(socket)
            epoch = (await client.attach()).epoch
            version = (await client.subscribe()).version
            await place.stop()
            assert reason_of((await client.receive()).detached.error) == "SILENT"
            attaching = asyncio.create_task(client.attach(version=version, epoch=epoch))
            await place.start()
            welcome = await attaching
            assert [one.subscription_id for one in welcome.subscriptions] == [1]
            assert (await client.receive()).delta.snapshot
    await place.stop()


async def test_devices_of_a_server_that_does_not_come_back_are_sent_away(tmp_path, monkeypatch):
    monkeypatch.setattr(fleet_link, "_PATIENCE_S", 0.1)
    place = Place(tmp_path / "store.db")
    settings = GatewaySettings(port=0, server=place.target)
    async with running(settings) as gateway, aiohttp.ClientSession() as http:
        address = f"http://127.0.0.1:{gateway.port}/v1/attach"
        async with http.ws_connect(address, protocols=("nearcast.v1",)) as socket:
            client = Client(socket)
            with contextlib.suppress(AssertionError):
                await client.attach()
            assert await client.closed() == 1012
        assert gateway.counters.refused == {"RECOVERING": 1}
        assert gateway.counters.streams == 0


@contextlib.asynccontextmanager
async def before_a_server(folder, monkeypatch):
    """A gateway whose server is not there yet: the gateway, a function that connects, and the server."""
    monkeypatch.setattr(fleet_link, "_PATIENCE_S", PATIENCE_S)
    place = Place(folder / "store.db")
    settings = GatewaySettings(port=0, server=place.target)
    async with running(settings) as gateway, aiohttp.ClientSession() as http:
        address = f"http://127.0.0.1:{gateway.port}/v1/attach"

        @contextlib.asynccontextmanager
        async def connected(nonce=b"nonce"):
            """A connection whose hello waits, unless it is refused."""
            count = gateway.counters.frames_received
            async with http.ws_connect(address, protocols=("nearcast.v1",)) as socket:
                client = Client(socket)
                await client.send(hello(nonce=nonce))
                await until(lambda: gateway.counters.frames_received > count)
                yield client

        yield gateway, connected, place
    await place.stop()


async def test_connections_that_have_ended_do_not_keep_a_device_from_its_next_one(tmp_path, monkeypatch):
    async with before_a_server(tmp_path, monkeypatch) as (gateway, connected, place):
        for _ in range(5):
            async with connected():
                pass
            await until(lambda: not gateway.counters.sockets)
        async with connected() as client:
            await place.start()
            assert (await client.receive()).HasField("welcome")
            assert (await client.subscribe()).snapshot
            assert not await client.ping()
            assert (gateway.counters.devices, gateway.counters.streams) == (1, 1)
            assert not gateway.counters.refused


async def test_a_connection_that_waits_yields_to_a_later_one_of_the_same_instance(tmp_path, monkeypatch):
    async with (
        before_a_server(tmp_path, monkeypatch) as (gateway, connected, place),
        connected() as lost,
        connected() as other,
        connected() as last,
    ):
        for client in (lost, other):
            assert reason_of((await client.receive()).detached.error) == "SUPERSEDED"
            assert await client.closed() == 1008
        await place.start()
        assert (await last.receive()).HasField("welcome")
        assert not await last.ping()
        assert (gateway.counters.devices, gateway.counters.streams) == (1, 1)


async def test_an_instance_beside_two_that_wait_is_asked_to_try_again(tmp_path, monkeypatch):
    async with (
        before_a_server(tmp_path, monkeypatch) as (_gateway, connected, place),
        connected(b"one") as one,
        connected(b"two") as two,
    ):
        async with connected(b"three") as third:
            rejection = (await third.receive()).rejection
            assert rejection.command == device_service_pb2.Rejection.COMMAND_HELLO
            assert reason_of(rejection.error) == "RECOVERING"
            assert rejection.error.retry_after_ms == 1_000
            assert await third.closed() == 1008
        await place.start()
        responses = [await client.receive() for client in (one, two)]
        assert sorted(one.WhichOneof("event") for one in responses) == ["rejection", "welcome"]


@contextlib.asynccontextmanager
async def flooding(client, request, count):
    """Send a request many times meanwhile."""

    async def send():
        for _ in range(count):
            await client.send(request)

    task = asyncio.create_task(send())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def look_around(gateway):
    """Give a gateway time to read what it reads: call it many times."""
    async with aiohttp.ClientSession() as http:
        for _ in range(200):
            assert await status_of(http, f"http://127.0.0.1:{gateway.port}/healthz") == 200


async def test_a_device_that_waits_for_the_server_is_not_read_without_end(tmp_path, monkeypatch):
    large = Request(subscribe=subscribe(1, a_spec()))
    large.subscribe.name = "x" * 60_000
    async with (
        before_a_server(tmp_path, monkeypatch) as (gateway, connected, place),
        connected() as client,
        flooding(client, large, 300),
    ):
        await look_around(gateway)
        assert gateway.counters.bytes_received < EARLY_BYTES_MAX + large.ByteSize() + 100
        await place.start()
        assert (await client.receive()).HasField("welcome")
        for _ in range(300):
            assert (await client.receive()).rejection.number == 1


async def test_requests_that_wait_for_the_server_are_bounded_by_their_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(fleet_link, "_QUEUE_BYTES_MAX", 1_000)
    ping = Request(ping=device_service_pb2.Ping(number=1))
    async with (
        before_a_server(tmp_path, monkeypatch) as (gateway, connected, place),
        connected() as client,
        flooding(client, ping, 2_000) as flood,
    ):
        await flood
        await look_around(gateway)
        assert gateway.counters.bytes_received < 1_100
        await place.start()
        assert (await client.receive()).HasField("welcome")
        for _ in range(2_000):
            assert (await client.receive()).HasField("pong")


async def test_a_gateway_that_stops_sends_its_devices_away(town):
    async with town.client() as polite, town.client(name="other") as other:
        await polite.attach()
        await other.attach("other")
        stopping = asyncio.create_task(town.gateway.stop())
        for client in (polite, other):
            assert reason_of((await client.receive()).go_away.error) == "DRAINING"
        await polite.socket.close()
        assert await other.closed() == 1001
        await stopping
        assert not any(one.is_attached for one in town.server.coordinator.sessions.values())
        with pytest.raises(aiohttp.ClientConnectionError):
            async with town.connect():
                pass


async def test_metrics(tmp_path):
    async with a_town(tmp_path, metrics_port=0) as town, town.client() as client:
        await client.attach()
        address = f"http://127.0.0.1:{town.gateway.metrics_port}/metrics"
        async with town.http.get(address) as response:
            text = await response.text()
        assert "nearcast_gateway_devices 1.0" in text
        assert "nearcast_gateway_frames_received_total 1.0" in text
        async with town.http.get(town.address("/metrics")) as response:
            assert response.status == 404


async def test_tls(tmp_path):
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    write_self_signed(chain, key)
    async with a_town(tmp_path, tls_certificate=chain, tls_key=key) as town:
        trusted = ssl.create_default_context(cafile=str(chain))
        offered = ("nearcast.v1", f"bearer.{token('device', 'device')}")
        address = town.address(scheme="https")
        async with town.http.ws_connect(address, protocols=offered, ssl=trusted) as socket:
            assert (await Client(socket).attach()).epoch
        with pytest.raises(aiohttp.ClientError):
            async with town.http.ws_connect(town.address(), protocols=offered):
                pass


def write_pair(paths, pair):
    for path, content in zip(paths, pair, strict=True):
        path.write_bytes(content)


async def served_certificate(gateway):
    """Return the certificate that new connections get, PEM."""
    return await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", gateway.port))


async def test_a_certificate_that_openssl_refuses_changes_nothing(tmp_path, caplog):
    authority, paths = Authority(), (tmp_path / "chain.pem", tmp_path / "key.pem")
    first = authority.issue()
    write_pair(paths, first)
    short = rsa.generate_private_key(public_exponent=65537, key_size=1024)  # noqa: S505 - what is refused
    place = Place(tmp_path / "store.db")
    await place.start()
    settings = GatewaySettings(
        port=0, server=place.target, tls_certificate=paths[0], tls_key=paths[1], tokens=("secret",)
    )
    async with running(settings) as gateway:
        await until(lambda: gateway.readiness.is_ready)
        write_pair(paths, authority.issue(key=short))
        await until(lambda: "the previous certificate stays in force: OpenSSL cannot use" in caplog.text)
        assert (await served_certificate(gateway)).strip() == first[0].decode().strip()
        await place.stop()
        await until(lambda: not gateway.readiness.is_ready)
        other_kind = authority.issue(key=rsa.generate_private_key(public_exponent=65537, key_size=2048))
        write_pair(paths, other_kind)
        async with asyncio.timeout(PATIENCE_S):
            while (await served_certificate(gateway)).strip() != other_kind[0].decode().strip():  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        assert caplog.text.count("the previous certificate stays in force") == 1
    write_pair(paths, authority.issue(key=short))
    with pytest.raises(FileError, match="OpenSSL cannot use"):
        async with running(settings):
            pass


async def test_a_check_that_fails_does_not_end_the_checks(monkeypatch, caplog):
    failures = [OSError(24, "Too many open files")]

    async def is_serving(_upstream):
        if failures:
            raise failures.pop()
        return True

    monkeypatch.setattr(Upstream, "is_serving", is_serving)
    async with running(GatewaySettings(port=0, server="127.0.0.1:9")) as gateway:
        await until(lambda: gateway.readiness.is_ready)
    assert "a check of the server and of the certificates has failed" in caplog.text


async def test_own_tokens_are_verified_at_the_start(tmp_path, town):
    for who, flaw in (
        (token("gateway", "device"), "without the role gateway"),
        (token("gateway", "gateway", ttl_s=-60), "in the past"),
        ("garbage", "not known"),
    ):
        path = tmp_path / "own.token"
        path.write_text(who, encoding="utf-8")
        settings = gateway_settings(tmp_path, town.server, server_token_file=[path])
        with pytest.raises(FileError, match=flaw):
            async with running(settings):
                pass


async def test_a_port_in_use(tmp_path, town):
    settings = gateway_settings(tmp_path, town.server, port=town.gateway.port)
    with pytest.raises(PortError, match="port is"):
        async with running(settings):
            pass


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        ({"host": "0.0.0.0"}, "without TLS and tokens"),  # noqa: S104
        ({"server": "10.0.0.7"}, "tokens would be in the clear"),
        ({"server": "http://10.0.0.7"}, "server is"),
        ({"origins": ("example.com",)}, "origins has"),
        ({"origins": ("https://example.com/path",)}, "origins has"),
        ({"tls_certificate": __file__}, "tls_certificate needs"),
        ({"jwks": __file__}, "server_token_file is none"),
    ],
)
def test_wrong_settings(flags, text):
    with pytest.raises(ValidationError, match=text):
        GatewaySettings(**flags)
