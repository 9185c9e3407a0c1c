"""Connections that speak bytes, and an honest device beside them."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from nearcast.v1 import control_service_pb2, device_service_pb2
from tests.gateway.town import PATIENCE_S, until
from tests.support.identity import bearer, token
from tests.wire.city import publish
from tests.wire.test_bad_input import HERE, a_spec, an_object

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
CONTINUATION = 0
PUBLISHER = token("publisher", "publisher")
OPERATOR = token("operator", "operator")
K = 50
_SHORT_MAX, _MEDIUM_MAX = 125, 2**16 - 1


def frame(opcode, payload=b"", *, fin=True, reserved=0, is_masked=True, size=None):
    """The bytes of a frame; `size` is what its head says."""
    size = len(payload) if size is None else size
    head = bytes([fin << 7 | reserved << 4 | opcode])
    mark = is_masked << 7
    if size <= _SHORT_MAX:
        head += bytes([mark | size])
    elif size <= _MEDIUM_MAX:
        head += bytes([mark | 126]) + size.to_bytes(2, "big")
    else:
        head += bytes([mark | 127]) + size.to_bytes(8, "big")
    return head + bytes(4 * is_masked) + payload  # a mask of zeros


def upgrade(*protocols, lines=(), path="/v1/attach"):
    """The bytes of a handshake."""
    head = (
        f"GET {path} HTTP/1.1",
        "Host: gateway",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
        f"Sec-WebSocket-Protocol: {', '.join(('nearcast.v1', *protocols))}",
        *lines,
    )
    return "\r\n".join((*head, "", "")).encode()


class Raw:
    """A connection that sends and reads bytes."""

    def __init__(self, reader, writer):
        self._reader = reader
        self._writer = writer

    async def send(self, *parts):
        """Send bytes; a gateway that has closed is no failure."""
        with contextlib.suppress(ConnectionError):
            for part in parts:
                self._writer.write(part)
                await self._writer.drain()

    async def head(self):
        """Return the status and the head of a response."""
        async with asyncio.timeout(PATIENCE_S):
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode()
        return int(head.split(" ", 2)[1]), head

    async def frame(self):
        """Return the opcode and the payload of the next frame."""
        async with asyncio.timeout(PATIENCE_S):
            first, size = await self._reader.readexactly(2)
            if size > _SHORT_MAX:
                size = int.from_bytes(await self._reader.readexactly(2 if size == 126 else 8), "big")
            return first & 15, await self._reader.readexactly(size)

    async def close_code(self):
        """Return the code of the close frame; None if it is lost. What comes before it is discarded."""
        with contextlib.suppress(ConnectionError):
            while True:
                opcode, payload = await self.frame()
                if opcode == CLOSE:
                    return int.from_bytes(payload[:2], "big")
        return None

    async def content(self, size):
        """Return some bytes."""
        async with asyncio.timeout(PATIENCE_S):
            return await self._reader.readexactly(size)

    async def rest(self):
        """Return all bytes up to the end of the connection."""
        async with asyncio.timeout(PATIENCE_S):
            with contextlib.suppress(ConnectionError):
                return await self._reader.read()
            return b""


@contextlib.asynccontextmanager
async def raw(town, *parts):
    """A connection to the gateway, which sends some bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", town.gateway.port)
    found = Raw(reader, writer)
    try:
        await found.send(*parts)
        yield found
    finally:
        writer.transport.abort()


@contextlib.asynccontextmanager
async def raw_socket(town, name="intruder", roles=("device",), **claims):
    """A WebSocket whose frames are bytes, with a token of its own."""
    async with raw(town, upgrade(f"bearer.{token(name, *roles, **claims)}")) as found:
        assert (await found.head())[0] == 101
        yield found


class Honest:
    """A device that must stay exact, whatever others do.

    Parameters
    ----------
    town, client
        Where it is, and its connection.
    """

    def __init__(self, town, client):
        self._town = town
        self._client = client
        self._held = set()

    async def begin(self):
        await self._client.attach("honest")
        self._process(await self._client.subscribe(k=K))

    def _process(self, delta):
        if delta.snapshot:
            self._held.clear()
        self._held |= {one.object.id for one in delta.add}
        self._held -= {one.object_id for one in delta.drop}

    async def require_exact(self):
        """Publish, and compare what the device holds with a search."""
        town = self._town
        await publish(town, PUBLISHER, an_object())
        await town.control.Sync(control_service_pb2.SyncRequest(), metadata=bearer(OPERATOR))
        for response in await self._client.ping():
            assert response.HasField("delta"), response
            self._process(response.delta)
        request = device_service_pb2.SearchRequest(spec=a_spec(k=K), position=HERE)
        found = await town.devices.Search(request, metadata=bearer(OPERATOR))
        assert found.matches
        assert self._held == {one.object.id for one in found.matches}


def length_of(head):
    """Return the length of the content that follows a head."""
    return int(head.lower().partition("content-length: ")[2].partition("\r\n")[0])


def file_count():
    """The open files of this process."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@contextlib.asynccontextmanager
async def undisturbed(town, caplog):
    """An honest device beside intruders; afterwards nothing of theirs is left, nor in the log."""
    counters = town.gateway.counters
    async with town.client(name="honest") as client:
        honest = Honest(town, client)
        await honest.begin()
        await honest.require_exact()
        files = file_count()
        yield honest
        await honest.require_exact()
        await until(lambda: (counters.sockets, counters.devices) == (1, 1))
        await until(lambda: file_count() <= files)
        assert counters.streams == 1
    require_clean(caplog)


def require_clean(caplog):
    """The log has neither a traceback nor a part of a token."""
    assert not [one.getMessage() for one in caplog.records if one.exc_info]
    assert "eyJ" not in caplog.text  # with which every signed token starts
