"""Write HTTP/2 frames on a raw connection, as no client does that reads its responses.

Frames are written by hand (RFC 9113), header fields without indexing (RFC 7541). With a window of 0 the
server can send no byte of a response; pings and settings are acknowledged, so that the connection counts
as alive.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections import Counter

_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _WINDOW_UPDATE = 0, 1, 3, 4, 6, 8
_END_STREAM, _ACK, _END_HEADERS = 1, 1, 4
_MAX_STREAMS, _INITIAL_WINDOW = 3, 4
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_WINDOW = 65_535
"""Window of a connection, until it is updated."""
_CANCEL = struct.pack(">I", 8)
_HEADER_BYTES = 9
_STREAM_MASK = 0x7FFF_FFFF
_LITERAL_MAX = 127
_CREDIT_S = 0.002
"""Seconds between two checks whether the server accepts more."""


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Write a frame."""
    return (
        struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload
    )


def _text(value: str) -> bytes:
    data = value.encode()
    if len(data) < _LITERAL_MAX:
        return bytes([len(data)]) + data
    rest, found = len(data) - _LITERAL_MAX, bytearray([_LITERAL_MAX])
    while rest >= 128:  # noqa: PLR2004 - seven bits a byte
        found.append(rest & 127 | 128)
        rest >>= 7
    found.append(rest)
    return bytes(found) + data


def header_block(path: str, token: str = "") -> bytes:
    """Write the header fields of a gRPC call."""
    fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "nearcast"),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
    ]
    fields += [("authorization", f"Bearer {token}")] if token else []
    return b"".join(b"\x00" + _text(name) + _text(value) for name, value in fields)


class RawConnection:
    """One connection, created by `open`.

    Parameters
    ----------
    reader, writer
        Streams of the connection.
    window
        Bytes of each response that the server may send before an update of the window.
    reads
        Whether the window is updated as responses arrive.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        window: int,
        *,
        reads: bool,
    ) -> None:
        self._reader, self.writer = reader, writer
        self._reads = reads
        self._stream = -1
        self._credit = _WINDOW
        self._streams_max = _STREAM_MASK
        self._open: set[int] = set()
        """Streams of calls that the server has not ended."""
        self.sent = 0
        self.frames: Counter[int] = Counter()
        self.is_closed = False
        writer.write(_PREFACE + frame(_SETTINGS, 0, 0, struct.pack(">HI", _INITIAL_WINDOW, window)))
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def open(cls, address: str, window: int = _WINDOW, *, reads: bool = True) -> RawConnection:
        """Connect."""
        host, _, port = address.rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port)), window, reads=reads)

    @property
    def ended(self) -> int:
        """Return the number of calls that the server has ended or that were cancelled."""
        return self.sent - len(self._open)

    async def call(
        self,
        block: bytes,
        message: bytes | None = None,
        *,
        is_reset: bool = False,
        ahead_max: int = 2**31,
    ) -> None:
        """Start a call when fewer than `ahead_max` calls are pending.

        Parameters
        ----------
        block
            Header fields.
        message
            The request, after which the client's side ends; without one it stays open.
        is_reset
            Whether the call is cancelled at once.
        ahead_max
            The number of pending calls at which this one waits.

        Raises
        ------
        ConnectionError
            If the server has closed the connection.
        """
        body = b"" if message is None else b"\0" + struct.pack(">I", len(message)) + message
        await self._room(len(body), min(ahead_max, self._streams_max))
        self._stream += 2
        self._credit -= len(body)
        found = frame(_HEADERS, _END_HEADERS, self._stream, block)
        if message is not None:
            found += frame(_DATA, _END_STREAM, self._stream, body)
        if is_reset:
            found += frame(_RESET, 0, self._stream, _CANCEL)
        else:
            self._open.add(self._stream)
        self.writer.write(found)
        self.sent += 1
        if self.sent % 50 == 0:
            await self.writer.drain()
            await asyncio.sleep(0)

    async def _room(self, size: int, waiting_max: int) -> None:
        while self._credit < size or len(self._open) >= waiting_max:
            if self.is_closed:
                break
            await asyncio.sleep(_CREDIT_S)
        if self.is_closed:
            raise ConnectionResetError

    async def _read(self) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = await self._reader.readexactly(_HEADER_BYTES)
                payload = await self._reader.readexactly(int.from_bytes(head[:3], "big"))
                stream = int.from_bytes(head[5:], "big") & _STREAM_MASK
                self._take(head[3], head[4], stream, payload)
        self.is_closed = True

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        self.frames[kind] += 1
        if kind in (_SETTINGS, _PING) and not flags & _ACK:
            if kind == _SETTINGS:
                self._note_settings(payload)
            self.writer.write(frame(kind, _ACK, 0, payload if kind == _PING else b""))
        elif kind == _WINDOW_UPDATE and stream == 0:
            self._credit += int.from_bytes(payload, "big") & _STREAM_MASK
        elif kind == _RESET or (kind in (_HEADERS, _DATA) and flags & _END_STREAM):
            self._open.discard(stream)
        if kind == _DATA and payload and self._reads:
            self.writer.write(frame(_WINDOW_UPDATE, 0, 0, struct.pack(">I", len(payload))))

    def _note_settings(self, payload: bytes) -> None:
        for place in range(0, len(payload), 6):
            name, value = struct.unpack_from(">HI", payload, place)
            if name == _MAX_STREAMS:
                self._streams_max = value

    def close(self) -> None:
        """Close the connection."""
        self._reading.cancel()
        self.writer.close()
