"""A wire tap: what a client really sends, read from the bytes on the socket."""

from __future__ import annotations

import asyncio
import struct

from nearcast.v1 import device_service_pb2

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_FRAME_HEADER = 9
_MESSAGE_HEADER = 5
_PADDED = 0x8


class Tap:
    """A relay on a port of its own that keeps what goes to the server."""

    def __init__(self, target: str) -> None:
        self._host, port = target.rsplit(":", 1)
        self._port = int(port)
        self.connections: list[bytearray] = []
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> str:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        return f"127.0.0.1:{port}"

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(self._host, self._port)
        kept = bytearray()
        self.connections.append(kept)
        self._writers += [writer, back]
        for source, sink, record in ((reader, back, kept), (there, writer, bytearray())):
            task = asyncio.create_task(self._relay(source, sink, record))
            self._tasks.add(task)

    async def _relay(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, record: bytearray
    ) -> None:
        while data := await source.read(65_536):
            record += data
            sink.write(data)
        sink.close()

    def cut(self) -> None:
        """Break all connections."""
        for writer in self._writers:
            writer.close()
        self._writers.clear()

    async def stop(self) -> None:
        self._server.close()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def requests(self) -> list[device_service_pb2.AttachRequest]:
        """All requests of devices on streams of their own, in order."""
        messages = [one for kept in self.connections for one in _messages(bytes(kept))]
        requests = [device_service_pb2.AttachRequest.FromString(one) for one in messages]
        return [one for one in requests if one.WhichOneof("command")]  # not those of other calls

    def doubles(self) -> set[float]:
        """Every eight bytes that were sent, wherever they begin, as a number."""
        found = set()
        for kept in self.connections:
            found |= {struct.unpack_from("<d", kept, at)[0] for at in range(len(kept) - 7)}
        return found


def _messages(data: bytes) -> list[bytes]:
    """Take gRPC messages out of HTTP/2 frames."""
    assert data.startswith(_PREFACE)
    at = len(_PREFACE)
    bodies: dict[int, bytearray] = {}
    while at + _FRAME_HEADER <= len(data):
        length = int.from_bytes(data[at : at + 3], "big")
        kind, flags = data[at + 3], data[at + 4]
        stream = int.from_bytes(data[at + 5 : at + 9], "big")
        body = data[at + _FRAME_HEADER : at + _FRAME_HEADER + length]
        at += _FRAME_HEADER + length
        if kind == 0:
            if flags & _PADDED:
                body = body[1 : len(body) - body[0]]
            bodies.setdefault(stream, bytearray()).extend(body)
    found = []
    for body in bodies.values():
        start = 0
        while start + _MESSAGE_HEADER <= len(body):
            assert body[start] == 0, "not compressed"
            length = int.from_bytes(body[start + 1 : start + 5], "big")
            start += _MESSAGE_HEADER
            found.append(bytes(body[start : start + length]))
            start += length
    return found
