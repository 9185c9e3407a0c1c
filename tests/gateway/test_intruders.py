"""Intruders at the port: an honest device beside them stays exact, and nothing of theirs is left."""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource

import pytest

from gateway import connections, device_socket, first_frames
from gateway.frames import FRAME_BYTES_MAX
from identity.issuer import Issuer
from nearcast.v1 import device_service_pb2
from tests.gateway.intruder import (
    BINARY,
    CONTINUATION,
    PING,
    PONG,
    TEXT,
    frame,
    length_of,
    raw,
    raw_socket,
    undisturbed,
    upgrade,
)
from tests.gateway.test_slow import a_slow_town, replace
from tests.gateway.town import Request, Response, a_town, reason_of, until
from tests.support.amounts import examples
from tests.support.identity import token
from tests.wire.test_bad_input import hello

MIB = 1024 * 1024
HELLO = frame(BINARY, hello(device_id="intruder").SerializeToString())
PING_REQUEST = Request(ping=device_service_pb2.Ping(number=7)).SerializeToString()
OWN = token("intruder", "device")

RESET = None
"""Not all that was sent is read, so that the close frame may be lost."""

FRAMES = {
    "garbage": ([frame(BINARY, b"\xff" * 100)], 1008),
    "no command": ([frame(BINARY)], 0),
    "text": ([frame(TEXT, b"hello")], 1003),
    "text that is no UTF-8": ([frame(TEXT, b"\xff")], 1007),
    "a byte above the limit": ([frame(BINARY, bytes(FRAME_BYTES_MAX + 1))], 1009),
    "16 MiB": ([frame(BINARY, bytes(16 * MIB))], RESET),
    "8 EiB": ([frame(BINARY, b"a", size=2**63 - 1)], 1009),
    "compressed": ([frame(BINARY, PING_REQUEST, reserved=4)], 1002),
    "another reserved bit": ([frame(BINARY, PING_REQUEST, reserved=1)], 1002),
    "a reserved opcode": ([frame(3, b"a")], 1002),
    "a reserved control opcode": ([frame(11, b"a")], 1002),
    "a long ping": ([frame(PING, bytes(126))], 1002),
    "a ping in parts": ([frame(PING, b"a", fin=False)], 1002),
    "a continuation of nothing": ([frame(CONTINUATION, b"a")], 1002),
    "a message within a message": ([frame(BINARY, b"a", fin=False), frame(BINARY, b"b")], 1002),
    "10,000 parts that are too long": (
        [frame(BINARY, bytes(7), fin=False), *[frame(CONTINUATION, bytes(7), fin=False)] * 10_000],
        1009,
    ),
    "pings": ([b"".join(frame(PING, b"a") for _ in range(300))], 0),
    "pongs": ([b"".join(frame(PONG, bytes(125)) for _ in range(300))], 0),
    "without a mask": ([frame(BINARY, PING_REQUEST, is_masked=False)], 0),
}
"""Frames, and the code with which the gateway closes; 0 if it does not."""


@pytest.mark.parametrize("name", FRAMES)
async def test_frames(town, caplog, name):
    parts, code = FRAMES[name]
    async with undisturbed(town, caplog), raw_socket(town) as intruder:
        await intruder.send(HELLO)
        assert Response.FromString((await intruder.frame())[1]).HasField("welcome")
        await intruder.send(*parts)
        if code != 0:
            assert await intruder.close_code() in {code, 1009 if code is RESET else code}
        else:
            await intruder.send(frame(BINARY, PING_REQUEST))
            async with asyncio.timeout(60):
                while (await intruder.frame())[0] == PONG:
                    pass


@pytest.mark.parametrize("name", FRAMES)
async def test_frames_before_a_token(town, caplog, name):
    parts, _ = FRAMES[name]
    async with undisturbed(town, caplog), raw(town, upgrade()) as intruder:
        assert (await intruder.head())[0] == 101
        await intruder.send(*parts, frame(BINARY))
        assert await intruder.close_code() in {1002, 1007, 1008, 1009, RESET}


async def test_a_message_in_10_000_parts_is_a_message(town, caplog):
    async with undisturbed(town, caplog), raw_socket(town) as intruder:
        await intruder.send(HELLO)
        await intruder.frame()
        first, *rest = PING_REQUEST
        parts = [frame(BINARY, bytes([first]), fin=False), *[frame(CONTINUATION, fin=False)] * 10_000]
        await intruder.send(b"".join(parts), frame(CONTINUATION, bytes(rest)))
        assert Response.FromString((await intruder.frame())[1]).pong.number == 7


async def test_pings_of_a_client_that_does_not_read_are_not_kept(tmp_path, caplog):
    async with (
        a_town(tmp_path, device_rate=1e6) as town,
        undisturbed(town, caplog),
        raw_socket(town) as intruder,
    ):
        flood = frame(PING, bytes(125)) * 1000
        transport = next(
            one.socket._transport  # noqa: SLF001 - nothing else shows what waits
            for one in town.gateway._attachment.conversations  # noqa: SLF001
            if one.device_id != "honest"
        )
        most = 0
        for _ in range(100):  # 13 MB
            await intruder.send(flood)
            most = max(most, transport.get_write_buffer_size())
        assert most < device_socket.BYTES_MAX


async def test_pings_are_operations_of_the_device(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(first_frames, "_FIRST_FRAME_S", 0.5)
    async with (
        a_town(tmp_path, device_rate=0.1) as town,
        undisturbed(town, caplog),
        raw_socket(town) as intruder,
    ):
        await intruder.send(frame(PING) * 200)
        count = 0
        while (await intruder.frame())[0] == PONG:
            count += 1
        assert count == 1
        assert await intruder.close_code() == 1008


async def test_a_slow_device_that_breaks_the_protocol_is_closed(tmp_path, caplog):
    """What waits for it must not hold up the close."""
    async with (
        a_slow_town(tmp_path) as (town, slow_town),
        undisturbed(town, caplog),
        slow_town.client() as slow,
    ):
        await slow.attach()
        await slow.subscribe(k=20)
        (transport,) = (
            one.socket._transport  # noqa: SLF001 - nothing else shows what waits
            for one in town.gateway._attachment.conversations  # noqa: SLF001
            if one.device_id == "device"
        )
        while transport.get_write_buffer_size() <= 100_000:
            await replace(town)
        slow.socket._writer.transport.write(frame(3))  # noqa: SLF001 - a reserved opcode
        await until(lambda: town.gateway.counters.sockets == 1)


# -- slowness and silence ------------------------------------------------------------------------


async def send_slowly(intruder, data):
    for byte in data:
        await intruder.send(bytes([byte]))
        await asyncio.sleep(0.02)


async def test_a_handshake_a_byte_at_a_time(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(connections, "_REQUEST_S", 0.2)
    async with a_town(tmp_path) as town, undisturbed(town, caplog), raw(town) as intruder:
        sending = asyncio.create_task(send_slowly(intruder, upgrade()))
        assert await intruder.rest() == b""
        await sending


async def test_a_frame_a_byte_at_a_time(tmp_path, monkeypatch, caplog):
    async with a_town(tmp_path) as town, undisturbed(town, caplog), raw_socket(town) as intruder:
        monkeypatch.setattr(first_frames, "_FIRST_FRAME_S", 0.2)
        async with raw(town, upgrade()) as stranger:
            assert (await stranger.head())[0] == 101
            sending = asyncio.create_task(send_slowly(stranger, frame(TEXT, bytes(120))))
            assert await stranger.close_code() == 1008
            await sending
        await intruder.send(HELLO)  # in time before: it has ten seconds


async def test_a_client_that_reads_no_responses(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(connections, "_RESPONSE_S", 0.2)
    async with a_town(tmp_path) as town, undisturbed(town, caplog), raw(town) as intruder:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(5.0):
                await intruder.send(b"GET /v1/docs HTTP/1.1\r\nHost: g\r\n\r\n" * 5_000)
        await until(lambda: town.gateway.counters.connections == 1)


def silent_count():
    """As many as this machine's limit of files allows, both ends being in this process."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(examples(300), (limit - 1_000) // 2)


async def test_silent_sockets(tmp_path, caplog):
    async with a_town(tmp_path, address_connections_max=0) as town, undisturbed(town, caplog) as honest:
        async with contextlib.AsyncExitStack() as stack:
            silent = [await stack.enter_async_context(raw(town)) for _ in range(silent_count())]
            await until(lambda: town.gateway.counters.connections > len(silent))
            await honest.require_exact()
        await until(lambda: town.gateway.counters.connections == 1)


# -- handshakes and tokens -----------------------------------------------------------------------

TOKENS = {
    "expired": token("intruder", "device", ttl_s=-60),
    "of another key": token("intruder", "device", by=Issuer()),
    "of another tenant": token("intruder", "device", tenant="nowhere"),
    "of a tenant that is not served": token("intruder", "device", tenant="other"),
    "of a publisher": token("intruder", "publisher"),
    "of an operator": token("intruder", "operator"),
    "without roles": token("intruder"),
}


@pytest.mark.parametrize("place", ["subprotocol", "header", "first frame"])
@pytest.mark.parametrize("name", TOKENS)
async def test_tokens(town, caplog, name, place):
    who = TOKENS[name]
    protocols = [f"bearer.{who}"] if place == "subprotocol" else []
    lines = [f"Authorization: Bearer {who}"] if place == "header" else []
    async with undisturbed(town, caplog), raw(town, upgrade(*protocols, lines=lines)) as intruder:
        _, head = await intruder.head()
        assert who not in head, "it selects the subprotocol that has no token"
        if place == "first frame":
            await intruder.send(frame(TEXT, who.encode()))
        opcode, payload = await intruder.frame()
        error = Response.FromString(payload).go_away.error
        assert (opcode, reason_of(error)) in {
            (BINARY, one) for one in ("TOKEN_EXPIRED", "UNAUTHENTICATED", "PERMISSION_DENIED")
        }
        assert who.encode() not in payload
        assert await intruder.close_code() == 1008


async def test_a_token_of_another_device(town, caplog):
    async with undisturbed(town, caplog), raw_socket(town) as intruder:
        await intruder.send(frame(BINARY, hello(device_id="honest").SerializeToString()))
        rejection = Response.FromString((await intruder.frame())[1]).rejection
        assert reason_of(rejection.error) == "PERMISSION_DENIED"
        assert await intruder.close_code() == 1008


TWICE = {
    "two subprotocols": ([f"bearer.{OWN}", f"bearer.{OWN}"], []),
    "a subprotocol and a header": ([f"bearer.{OWN}"], [f"Authorization: Bearer {OWN}"]),
    "two headers": ([], [f"Authorization: Bearer {OWN}"] * 2),
    "with other characters": ([], [f"Authorization: Bearer {OWN}\u00e9"]),
}


@pytest.mark.parametrize("name", TWICE)
async def test_two_tokens(town, caplog, name):
    protocols, lines = TWICE[name]
    async with undisturbed(town, caplog), raw(town, upgrade(*protocols, lines=lines)) as intruder:
        await intruder.head()
        error = Response.FromString((await intruder.frame())[1]).go_away.error
        assert reason_of(error) == "UNAUTHENTICATED"
        assert await intruder.close_code() == 1008


async def test_a_token_in_the_subprotocol_and_in_the_first_frame(town, caplog):
    async with undisturbed(town, caplog), raw_socket(town) as intruder:
        await intruder.send(frame(TEXT, OWN.encode()))
        assert await intruder.close_code() == 1003


HANDSHAKES = {
    "a wrong origin": (upgrade(lines=["Origin: https://evil.example.com"]), 403),
    "the origin null": (upgrade(lines=["Origin: null"]), 403),
    "a token in the address": (upgrade(path=f"/v1/attach?token={OWN}"), 400),
    "a token in the path": (upgrade(path=f"/v1/attach/{OWN}"), 404),
    "a key of other characters": (upgrade().replace(b"AAAA", b"\xff", 1), 400),
    "an upgrade to no text": (upgrade().replace(b"Upgrade: websocket", b"Upgrade: web\x9b\x8b"), 400),
    "no key": (upgrade().replace(b"Sec-WebSocket-Key", b"X"), 400),
    "another version": (upgrade().replace(b"Version: 13", b"Version: 12"), 400),
    "another subprotocol": (upgrade().replace(b"nearcast.v1", b"nearcast.v9"), 400),
}


@pytest.mark.parametrize("name", HANDSHAKES)
async def test_handshakes(town, caplog, name):
    data, status = HANDSHAKES[name]
    async with undisturbed(town, caplog), raw(town, data) as intruder:
        await require_problem(intruder, {status})


# -- HTTP ----------------------------------------------------------------------------------------

OBJECT = b'{"objects":[{"position":{"lon":14.5,"lat":35.5},"keywords":["tea"],"ttl_ms":"60000"}]}'
PUBLISHER = token("somebody", "publisher")


def post(body, *lines, target="/v1/publish"):
    head = [f"POST {target} HTTP/1.1", "Host: g", f"Content-Length: {len(body)}", *lines]
    head += ["Content-Type: application/json", f"Authorization: Bearer {PUBLISHER}", "", ""]
    return "\r\n".join(head).encode(errors="surrogateescape") + body


HTTP = {
    "two lengths": (post(OBJECT, "Content-Length: 1"), 400),
    "a length and chunks": (post(OBJECT, "Transfer-Encoding: chunked"), 400),
    "a chunk without a size": (
        post(b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked") + b"zz\r\n",
        400,
    ),
    "a giant header": (post(OBJECT, f"X: {20_000 * 'a'}"), 400),
    "1,000 headers": (post(OBJECT, *[f"X{i}: a" for i in range(1_000)]), 400),
    "a giant address": (post(OBJECT, target="/" + 20_000 * "a"), 400),
    "an address that is none": (post(OBJECT, target="http://[::1"), 400),
    "an address with a query": (post(OBJECT, target=f"/v1/publish?token={PUBLISHER}"), 400),
    "another host's address with a query": (post(OBJECT, target="http://evil.example/v1/publish?a"), 400),
    "a header without a colon": (post(OBJECT, f"X-Token {PUBLISHER}"), 400),
    "a header with a control character": (post(OBJECT, f"X-Token: {PUBLISHER}\x00"), 400),
    "a token and no request": (f"{PUBLISHER}\r\n\r\n".encode(), 400),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64) + b"\r\n\r\n", 400),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "an expectation": (post(OBJECT, "Expect: 200-nothing"), 417),
    "a method that is none": (post(OBJECT).replace(b"POST", b"DELETE"), 405),
    "a key that is no text": (post(OBJECT, "Idempotency-Key: \udc80"), 400),
    "names that are no text": (post(b'{"objects": [{"\\ud800": 1}]}'), 400),
    "texts that are no text": (post(b'{"objects": [{"key": "\\ud800"}]}'), 400),
    "a giant name": (post(b'{"%s": 1}' % (1_000_000 * b"a")), 400),
    "a million objects": (post(b'{"objects": [%s{}]}' % (1_000_000 * b"{},")), 400),
    "depth": (post(b"[" * 90_000), 400),
}


async def require_problem(intruder, statuses):
    """Require a problem document that shows no token."""
    status, head = await intruder.head()
    assert status in statuses, head
    assert "application/problem+json" in head
    size = length_of(head)
    body = await intruder.content(size)
    assert json.loads(body)["status"] == status
    assert b"eyJ" not in body
    assert size < 2_000


@pytest.mark.parametrize("name", HTTP)
async def test_http(town, caplog, name):
    data, status = HTTP[name]
    async with undisturbed(town, caplog), raw(town, data) as intruder:
        await require_problem(intruder, {status})


async def test_half_a_body(town, caplog):
    async with undisturbed(town, caplog):
        for size in (1, len(OBJECT) - 1):
            async with raw(town, post(OBJECT)[:-size]):
                await until(lambda: town.gateway.counters.requests)
        await until(lambda: town.gateway.counters.connections == 1)


async def test_pipelined_requests(town, caplog):
    async with undisturbed(town, caplog), raw(town) as intruder:
        await intruder.send(b"GET /healthz HTTP/1.1\r\nHost: g\r\n\r\n" * 100, upgrade(f"bearer.{OWN}"))
        for _ in range(100):
            status, head = await intruder.head()
            assert status == 200
            await intruder.content(length_of(head))
        assert (await intruder.head())[0] == 101
        await intruder.send(HELLO)
        assert Response.FromString((await intruder.frame())[1]).HasField("welcome")
