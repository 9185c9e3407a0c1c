"""The port of a gateway: frames of devices, and the bytes of HTTP requests.

A frame gives a request or a refusal. What is forwarded keeps the bounds of the server's fleet streams,
which would otherwise end with all devices on them.

An HTTP input is fed to the protocol of a connection with the application behind it, and a server that
cannot be reached. Every response has a documented status; neither it nor the log has a part of a token.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from pathlib import Path

from aiohttp import web

from gateway import frames
from gateway.application import Readiness, application
from gateway.attachment import Attachment
from gateway.calls import CALLS
from gateway.connections import Connection, Connections
from gateway.counters import Counters
from gateway.fleet_messages import FleetRequest
from gateway.fleets import Fleets
from gateway.http_api import HttpApi
from gateway.map_pages import map_routes
from gateway.watching import Watching
from identity.authenticator import Authenticator
from identity.issuer import Issuer
from identity.keys import parse_keys
from identity.principal import Role
from identity.tokens import TokenPolicy, TokenVerifier
from nearcast.errors import Reason, RefusedError
from nearcast.transport.servers import Servers
from nearcast.v1 import device_service_pb2
from server.limits import Limits
from server.transport.wire_walk import MessageTypes
from tests.fuzz.costs import COST_MS_MAX, slowness
from tests.fuzz.recipes import literal, repeated
from tests.fuzz.target import Target
from tests.fuzz.texts import KeysInMemory
from tests.fuzz.walks import BYTES, CHANGES, RECIPE, bytes_of

Request = device_service_pb2.AttachRequest
Response = device_service_pb2.AttachResponse

# -- frames --------------------------------------------------------------------------------------


def _forwarded(frame: bytes) -> bytes | None:
    """Return what a gateway forwards of a frame; None if it refuses it."""
    try:
        request = frames.request_from(frame)
    except RefusedError as error:
        assert error.reason is Reason.INVALID_FIELD
        return None
    kind = request.WhichOneof("command")
    try:
        frames.require_bounds(request, kind)
    except RefusedError as error:
        rejection = Response.FromString(frames.rejection_of(request, kind, error)).rejection
        assert rejection.error.limit
        return None
    return request.SerializeToString()


def _cost_ms(frame: bytes) -> float:
    """Return the least time of three that a frame takes, as on an idle machine."""
    found = []
    for _ in range(3):
        factor = slowness()
        begin_ns = time.thread_time_ns()
        _forwarded(frame)
        spent_ms = (time.thread_time_ns() - begin_ns) / 1e6
        found.append(spent_ms / max(factor, slowness()))
        if found[-1] <= COST_MS_MAX:
            break
    return min(found)


def _frames():
    walker = MessageTypes(Limits()).walker(
        device_service_pb2.AttachFleetRequest.DESCRIPTOR, "AttachFleet"
    )

    def run(data: bytes) -> None:
        if not data:
            return
        frame = bytes_of(data[0] % 3, data[1:], Request, frames.FRAME_BYTES_MAX)
        cost_ms = _cost_ms(frame)
        assert cost_ms <= COST_MS_MAX, f"{len(frame)} bytes: {cost_ms:.1f} ms"
        forwarded = _forwarded(frame)
        if forwarded is not None:
            message = FleetRequest()
            message.entries.add(device_id=frames.NAME_LENGTH_MAX * "é", request=forwarded)
            walker.verify(message.SerializeToString())

    return run


def _frame_seeds() -> list[bytes]:
    found = [bytes([CHANGES, seed, 0]) for seed in range(4)]
    found.append(bytes([CHANGES, 7, 1, 9, 0, 1, 255, 40, 0, 2, 8]))
    found += [
        bytes([BYTES]) + Request(report={"sequence": 3, "subscription_ids": [1]}).SerializeToString()
    ]
    return [*found, bytes([RECIPE]) + repeated(literal(b"\x12\x00"), 5_000)]


FRAMES = Target("frames", _frames, _frame_seeds, ("gateway.frames",), 60_000)

# -- HTTP ----------------------------------------------------------------------------------------

_ISSUER = Issuer()
_TOKEN = _ISSUER.token("caller", list(Role))
_SECRETS = (_TOKEN.encode(), _TOKEN.rpartition(".")[2].encode(), _TOKEN.split(".")[1].encode())
_STATUSES = frozenset({b"100", b"101", b"200", b"400", b"401", b"403", b"404", b"405", b"417", b"502"})
_STATUS = re.compile(rb"HTTP/1\.[01] (\d+) [A-Z]")
_STEPS = 30
"""Turns of the event loop in which an input is processed, if it does not come to the server."""


class _Transport(asyncio.Transport):
    """A transport in memory: keeps what is written."""

    def __init__(self) -> None:
        super().__init__({"peername": ("192.0.2.1", 1)})
        self.written = bytearray()
        self._is_closing = False

    def write(self, data: bytes) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        self._is_closing = True

    abort = close

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


class _Log(logging.Handler):
    """Keeps records that a client must not cause."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = self.format(record)
        if record.levelno >= logging.ERROR or record.exc_info or _shows_token(text.encode()):
            self.found.append(text)


def _shows_token(data: bytes) -> bool:
    return any(secret in data for secret in _SECRETS)


class _Port:
    """The application of a gateway, with connections in memory."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._log = _Log()
        logging.getLogger().addHandler(self._log)
        self._loop.run_until_complete(self._start())

    async def _start(self) -> None:
        keys = parse_keys(_ISSUER.key_set().encode(), Path("keys"))
        verifier = TokenVerifier(KeysInMemory(keys), TokenPolicy("nearcast"), {})
        authenticator, counters = Authenticator((), verifier), Counters()
        fleets = Fleets({}, self._is_serving, counters)
        attachment = Attachment(authenticator, fleets, counters, (), 60.0)
        servers = Servers(["127.0.0.1:9"], "", None, 10.0)
        watching = Watching(servers, authenticator, counters, (), 60.0)
        api = HttpApi(servers, authenticator, counters, ())
        pages = map_routes(None, authenticator)
        self._runner = web.AppRunner(
            application(attachment, watching, api, Readiness(), counters, (), pages)
        )
        await self._runner.setup()
        self._connections = Connections(counters, 1_000, 0)

    async def _is_serving(self) -> bool:
        return False

    def send(self, data: bytes) -> None:
        """Send bytes over a connection of their own."""
        written = self._loop.run_until_complete(self._send(data))
        assert not self._log.found, self._log.found
        assert not _shows_token(written), written
        for status in _STATUS.findall(written):
            assert status in _STATUSES, written

    async def _send(self, data: bytes) -> bytes:
        transport = _Transport()
        loop = asyncio.get_running_loop()
        server = self._runner.server
        protocol = Connection(
            self._connections, server, loop=loop, access_log=None, auto_decompress=False
        )
        protocol.connection_made(transport)
        protocol.data_received(data)
        for _ in range(_STEPS):
            await asyncio.sleep(0)
        protocol.connection_lost(None)
        for _ in range(_STEPS):
            await asyncio.sleep(0)
        return bytes(transport.written)


def _http():
    port = _Port()

    def run(data: bytes) -> None:
        """Send an input, in which T stands for a token and L for the length of what follows the head."""
        head, end, body = data.partition(b"\r\n\r\n")
        head = head.replace(b"{L}", str(len(body)).encode())
        port.send(head.replace(b"{T}", _TOKEN.encode()) + end + body.replace(b"{T}", _TOKEN.encode()))

    return run


def _http_seeds() -> list[bytes]:
    bodies = {
        "publish": b'{"objects":[{"position":{"lon":14.5,"lat":35.5},"keywords":["a"],"ttl_ms":"6"}]}',
        "retract": b'{"ids":["1"],"keys":["\\u00e9"]}',
        "search": b'{"spec":{"top_k":{"keywords":["a"],"k":3,"alpha":0.5}},"position":{"lon":1e1}}',
        "inspect": b'{"device_id":"d"}',
    }
    found = []
    for call in CALLS:
        head = (
            f"{call.method} {call.path} HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer {{T}}\r\n".encode()
        )
        head += b"Content-Type: application/json\r\nIdempotency-Key: k\r\nContent-Length: {L}\r\n\r\n"
        found.append(head + bodies.get(call.name, b""))
    upgrade = b"GET /v1/attach HTTP/1.1\r\nHost: g\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    upgrade += b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    upgrade += b"Sec-WebSocket-Protocol: nearcast.v1, bearer.{T}\r\nOrigin: null\r\n\r\n\x82\x80\0\0\0\0"
    found += [upgrade, upgrade.replace(b"Origin: null\r\n", b""), upgrade.replace(b", bearer.{T}", b"")]
    found.append(
        b"POST /v1/search?{T} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    )
    found.append(upgrade.replace(b"websocket", b"web\x9b"))
    return [*found, b"GET /healthz HTTP/1.1\r\n\r\nGET /v1/docs HTTP/1.0\r\n\r\n", b"{T}\r\n\r\n"]


HTTP = Target("http", _http, _http_seeds, ("gateway",), 40_000)
