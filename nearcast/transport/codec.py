"""Pack the requests of devices into messages of a stream, for a single device or a fleet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from nearcast.protocol.device_session import Response
from nearcast.protocol.request_sender import Request
from nearcast.v1 import device_service_pb2

Metadata = Sequence[tuple[str, str]]
Waiting = tuple[str, Request | None]
"""A device and its request; None detaches it from a fleet."""


@dataclass(frozen=True)
class Codec:
    """Opens a stream, packs requests of devices into its messages, and unpacks its responses."""

    open: Callable[[Any, Metadata, bool], Any]
    """Parameters: the stub, the metadata, and whether to wait for a server that cannot be reached."""
    pack: Callable[[Sequence[Waiting]], Iterable[Any]]
    unpack: Callable[[Any, str], Iterable[tuple[str, Response]]]
    """Parameters: a message, and the device of the stream if it has only one."""


_MESSAGE_BYTES_MAX = 900_000
"""Bytes of entries in one message of a fleet, a little less than the server's limit."""


def _pack_fleet(requests: Sequence[Waiting]) -> Iterable[Any]:
    message = device_service_pb2.AttachFleetRequest
    entries: list[device_service_pb2.AttachFleetRequest.Entry] = []
    size = 0
    for device_id, request in requests:
        entry = message.Entry(device_id=device_id, request=request)
        more = entry.ByteSize()
        if entries and size + more > _MESSAGE_BYTES_MAX:
            yield message(entries=entries)
            entries, size = [], 0
        entries.append(entry)
        size += more
    yield message(entries=entries)


SINGLE = Codec(
    open=lambda stub, metadata, is_patient: stub.Attach(metadata=metadata, wait_for_ready=is_patient),
    pack=lambda requests: [request for _, request in requests],
    unpack=lambda message, device_id: ((device_id, message),),
)
FLEET = Codec(
    open=lambda stub, metadata, is_patient: stub.AttachFleet(
        metadata=metadata, wait_for_ready=is_patient
    ),
    pack=_pack_fleet,
    unpack=lambda message, _: ((entry.device_id, entry.response) for entry in message.entries),
)
