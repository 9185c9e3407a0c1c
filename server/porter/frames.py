"""Frames between a porter and the server's process: kind, stream and bytes, on a local socket.

A stream begins with OPEN and ends with END, CANCEL, or the socket. Data flows by credit: each side sends
at most WINDOW messages a stream that the other has not passed on, so a slow device fills nobody's memory.

Operations: send O(bytes), many frames a write; receive O(bytes).
"""

from __future__ import annotations

import asyncio
import json
import struct
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Sequence
from enum import IntEnum
from typing import NamedTuple

WINDOW = 32
"""Messages of a stream under way in each direction."""

_RECEIPT_EVERY = WINDOW // 4

_HEAD = struct.Struct("<IBQ")
_READ_BYTES = 1 << 18

Metadata = Sequence[tuple[str, str | bytes]]


class Kind(IntEnum):
    """What a frame is."""

    OPEN = 1
    """A call has come: its method and metadata."""
    DATA = 2
    """A message, either way."""
    HALF_CLOSE = 3
    """The client says no more."""
    CANCEL = 4
    """The client has gone."""
    CREDIT = 5
    """So many messages were passed on, either way."""
    HEADERS = 6
    """The server's initial metadata."""
    END = 7
    """The server's status and trailing metadata."""


class Frame(NamedTuple):
    """One frame."""

    kind: Kind
    stream: int
    body: bytes


class Wire:
    """One end of a local socket.

    Parameters
    ----------
    reader, writer
        The socket.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._waiting: list[bytes] = []

    def send(self, kind: Kind, stream: int, body: bytes = b"") -> None:
        """Send a frame with all others of this turn of the event loop."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._flush)
        self._waiting += (_HEAD.pack(len(body), kind, stream), body)

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting and not self._writer.is_closing():
            self._writer.write(b"".join(waiting))

    async def frames(self) -> AsyncIterator[list[Frame]]:
        """Receive frames, as many as have come, until the other side has gone."""
        rest = b""
        while True:
            try:
                data = await self._reader.read(_READ_BYTES)
            except ConnectionError:
                return
            if not data:
                return
            found, rest = _parse(rest + data if rest else data)
            if found:
                yield found

    def close(self) -> None:
        """Close the socket behind what has been sent."""
        self._flush()
        self._writer.close()


def _parse(data: bytes) -> tuple[list[Frame], bytes]:
    """Return the whole frames in some bytes, and what is left of them."""
    found = []
    place = 0
    while len(data) - place >= _HEAD.size:
        size, kind, stream = _HEAD.unpack_from(data, place)
        end = place + _HEAD.size + size
        if end > len(data):
            break
        found.append(Frame(Kind(kind), stream, data[place + _HEAD.size : end]))
        place = end
    return found, data[place:]


def packed(head: Sequence[str | int], metadata: Metadata | None) -> bytes:
    """Write some values and metadata, whose binary values are bytes."""
    pairs = [
        (key, b64encode(value).decode() if isinstance(value, bytes) else value, isinstance(value, bytes))
        for key, value in metadata or ()
    ]
    return json.dumps([*head, pairs]).encode()


def unpacked(body: bytes) -> tuple[list[str | int], Metadata]:
    """Read what `packed` wrote."""
    *head, pairs = json.loads(body)
    return head, [(key, b64decode(value) if is_binary else value) for key, value, is_binary in pairs]


class Receipts:
    """Tell the other side that messages of a stream were passed on, some at a time.

    Parameters
    ----------
    wire, stream
        Where it is told.
    """

    def __init__(self, wire: Wire, stream: int) -> None:
        self._wire = wire
        self._stream = stream
        self._count = 0

    def passed_on(self) -> None:
        """Note that one more was."""
        self._count += 1
        if self._count == _RECEIPT_EVERY:
            self._wire.send(Kind.CREDIT, self._stream, self._count.to_bytes(4, "little"))
            self._count = 0


class Window:
    """How many messages may still be sent on a stream."""

    def __init__(self) -> None:
        self._left = WINDOW
        self._more = asyncio.Event()

    async def take(self) -> None:
        """Wait until a message may be sent."""
        while self._left == 0:
            self._more.clear()
            await self._more.wait()
        self._left -= 1

    def give(self, body: bytes) -> None:
        """Note what the body of a CREDIT says: the other side has passed messages on."""
        self._left += int.from_bytes(body, "little")
        self._more.set()
