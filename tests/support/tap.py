"""A wire tap: what a client really sends, read from the bytes on the socket."""

from __future__ import annotations

import struct

from nearcast.v1 import device_service_pb2
from tests.support.proxy import Pair, Proxy

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_FRAME_HEADER = 9
_MESSAGE_HEADER = 5
_PADDED = 0x8


class Tap(Proxy):
    """A relay on a port of its own that keeps what goes to the server."""

    def __init__(self, target: str) -> None:
        super().__init__(target)
        self._kept: dict[Pair, bytearray] = {}

    @property
    def connections(self) -> list[bytearray]:
        """What was sent to the server, a connection each."""
        return list(self._kept.values())

    def passing(self, pair: Pair, data: bytes, *, to_server: bool) -> None:
        kept = self._kept.setdefault(pair, bytearray())
        if to_server:
            kept += data

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
