"""Strangers at the port: origins, addresses, garbage, giant frames, silence, numbers."""

from __future__ import annotations

import asyncio
import contextlib

import aiohttp
import pytest

from gateway import connections, first_frames
from gateway.frames import FRAME_BYTES_MAX
from gateway.settings import GatewaySettings
from nearcast.v1 import device_service_pb2, subscriptions_pb2
from tests.gateway.town import Request, a_town, reason_of, running, until
from tests.wire.test_bad_input import HERE, a_spec, hello, subscribe

PAGE = "https://app.example.com"


async def handshake_status(town, **options):
    try:
        async with town.http.ws_connect(town.address(), **options):
            return 101
    except aiohttp.WSServerHandshakeError as error:
        return error.status


@pytest.mark.parametrize(
    ("allowed", "origin", "status"),
    [
        ((), None, 101),
        ((), PAGE, 403),
        ((PAGE,), PAGE, 101),
        ((PAGE,), "https://evil.example.com", 403),
        ((PAGE,), f"{PAGE}.evil.com", 403),
        ((PAGE,), "null", 403),
        (("*",), PAGE, 101),
    ],
)
async def test_origins(tmp_path, allowed, origin, status):
    async with a_town(tmp_path, origins=allowed) as town:
        protocols = ("nearcast.v1",)
        assert await handshake_status(town, protocols=protocols, origin=origin) == status
        if status == 403:
            headers = {"Origin": origin}
            async with town.http.get(town.address("/v1/status"), headers=headers) as response:
                assert response.status == 403
                assert (await response.json())["reason"] == "PERMISSION_DENIED"


@pytest.mark.parametrize("way", ["a WebSocket", "a call", "a preflight request"])
async def test_a_refused_origin_is_logged_but_not_each_time(caplog, way):
    origin = f"http://127.0.0.1:8000/\x80{'x' * 1000}"
    headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}
    settings = GatewaySettings(port=0, server="127.0.0.1:9", origins=("http://localhost:8000",))
    async with running(settings) as gateway, aiohttp.ClientSession(headers=headers) as http:
        base = f"http://127.0.0.1:{gateway.port}/v1"
        for _ in range(3):
            if way == "a WebSocket":
                with pytest.raises(aiohttp.WSServerHandshakeError):
                    await http.ws_connect(f"{base}/attach", protocols=("nearcast.v1",))
            else:
                method = "GET" if way == "a call" else "OPTIONS"
                async with http.request(method, f"{base}/status") as response:
                    assert response.status == (403 if way == "a call" else 405)
    (line,) = [one for one in caplog.messages if "origin" in one]
    assert line.startswith("a page of the origin 'http://127.0.0.1:8000/\\x80xxx")
    assert line.endswith(" is refused: --origin does not allow it")
    assert len(line) < 200


@pytest.mark.parametrize(
    ("flags", "host", "is_refused"),
    [
        ({}, "evil.example:7480", True),
        ({}, "localhost.evil.example", True),
        ({}, "192.0.2.7:7480", True),
        ({}, "localhost:8000", False),
        ({}, "LOCALHOST.", False),
        ({}, "127.0.0.1", False),
        ({}, "[::1]:7480", False),
        ({"origins": (PAGE,)}, "app.example.com", False),
        ({"origins": (PAGE,)}, "evil.example", True),
        ({"origins": ("*",)}, "evil.example", False),
        ({"tokens": ("secret",)}, "evil.example", False),
        ({"host": "0.0.0.0", "insecure": True}, "evil.example", False),  # noqa: S104
    ],
)
async def test_a_foreign_name_that_resolves_to_this_machine_reads_nothing(
    tmp_path, flags, host, is_refused
):
    roads = tmp_path / "roads.geojson"
    roads.write_text("{}")
    settings = GatewaySettings(port=0, server="127.0.0.1:9", map_file=roads, **flags)
    async with running(settings) as gateway, aiohttp.ClientSession(headers={"Host": host}) as http:
        base = f"http://127.0.0.1:{gateway.port}"
        for path in ("/v1/status", "/map/base", "/map/", "/v1/watch"):
            async with http.get(base + path) as response:
                reason = (await response.json()).get("reason") if response.status == 403 else None
                assert (reason == "PERMISSION_DENIED") == is_refused, path
        for path in ("/healthz", "/readyz"):
            async with http.get(base + path) as response:
                assert response.status in (200, 503)
        assert gateway.counters.refused["PERMISSION_DENIED"] == (4 if is_refused else 0)


@pytest.mark.parametrize("protocols", [(), ("nearcast.v2",), ("bearer.x",)])
async def test_another_subprotocol(town, protocols):
    assert await handshake_status(town, protocols=protocols) == 400
    assert town.gateway.counters.handshakes_refused == 1


async def test_garbage_ends_the_connection_of_its_sender_only(town):
    async with town.client(name="other") as other, town.client() as client:
        await other.attach("other")
        await client.attach()
        await client.send(b"\xff" * 100)
        assert reason_of((await client.receive()).go_away.error) == "INVALID_FIELD"
        assert await client.closed() == 1008
        assert not await other.ping()


@pytest.mark.parametrize(("size", "code"), [(FRAME_BYTES_MAX, 1008), (FRAME_BYTES_MAX + 1, 1009)])
async def test_giant_frames(town, size, code):
    async with town.client() as client:
        await client.attach()
        await client.send(b"\xff" * size)
        assert await client.closed() == code


async def test_a_text_frame(town):
    async with town.client() as client:
        await client.attach()
        await client.socket.send_str("hello")
        assert await client.closed() == 1003


def many_clauses():
    clauses = [subscriptions_pb2.Clause(required=["a"])] * 600
    boolean = subscriptions_pb2.Boolean(clauses=clauses)
    return Request(subscribe=subscribe(3, subscriptions_pb2.SubscriptionSpec(boolean=boolean)))


TOO_LARGE = {
    "ids": (
        Request(
            report=device_service_pb2.Report(sequence=3, position=HERE, subscription_ids=range(1, 600))
        ),
        "subscription_ids",
    ),
    "clauses": (many_clauses(), "spec.boolean.clauses"),
    "keywords": (Request(subscribe=subscribe(3, a_spec(keywords=["a"] * 200))), "spec.top_k.keywords"),
    "a keyword": (
        Request(subscribe=subscribe(3, a_spec(keywords=["a" * 2000]))),
        "spec.top_k.keywords[0]",
    ),
}


@pytest.mark.parametrize("name", TOO_LARGE)
async def test_what_would_end_the_stream_of_all_is_refused_here(town, name):
    request, field = TOO_LARGE[name]
    async with town.client(name="other") as other, town.client() as client:
        await other.attach("other")
        await client.attach()
        await client.send(request)
        rejection = (await client.receive()).rejection
        assert reason_of(rejection.error) == "INVALID_FIELD"
        assert (rejection.number, rejection.error.field.endswith(field)) == (3, True)
        assert not await client.ping()
        assert not await other.ping()
        assert town.gateway.counters.streams == 1


@pytest.mark.parametrize("device_id", ["", "x" * 129])
async def test_a_device_id_out_of_its_bounds(town, device_id):
    async with town.client("gateway") as client:
        await client.send(hello(device_id=device_id))
        assert (await client.receive()).rejection.error.field == "hello.device_id"


async def test_who_sends_no_hello_is_closed(tmp_path, monkeypatch):
    monkeypatch.setattr(first_frames, "_FIRST_FRAME_S", 0.1)
    async with a_town(tmp_path) as town:
        for connect in (town.client(), town.connect()):
            async with connect as client:
                assert reason_of((await client.receive()).go_away.error) == "RECOVERING"
                assert await client.closed() == 1008


async def test_a_connection_without_a_request_is_closed(tmp_path, monkeypatch):
    monkeypatch.setattr(connections, "_REQUEST_S", 0.1)
    async with a_town(tmp_path) as town:
        silent = [await asyncio.open_connection("127.0.0.1", town.gateway.port) for _ in range(20)]
        silent[0][1].write(b"GET /healthz HTTP/1.1\r\n")  # and no end of the head
        for reader, writer in silent:
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
            writer.close()
        async with town.http.get(town.address("/healthz")) as response:
            assert response.status == 200


@pytest.mark.parametrize("setting", ["connections_max", "address_connections_max"])
async def test_connections_are_limited(tmp_path, setting):
    async with a_town(tmp_path, **{setting: 2}) as town:
        async with town.client(name="a") as a, town.client(name="b") as b:
            await a.attach("a")
            await b.attach("b")
            with pytest.raises(aiohttp.ClientConnectionError):
                async with town.client(name="c"):
                    pass
            assert not await a.ping()
        await until(lambda: not town.gateway.counters.connections)
        async with town.client(name="c") as client:
            await client.attach("c")
        assert town.gateway.counters.connections_refused >= 1
