"""The framing of device streams: `Attach` is read and written as a fleet of one device.

A framing yields the request of each device in a message, and puts events into messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from identity.principal import Principal
from nearcast.v1 import device_service_pb2
from server.session import Event, VersionedDelta
from server.transport.event_encoder import EventEncoder

_ADDED_MAX = 2_000
"""Maximum number of objects in the deltas of a message: writing them takes a few milliseconds."""

Entry = tuple[str, device_service_pb2.AttachRequest | None]
"""A device and its request; None if the device leaves the stream."""

Events = Sequence[tuple[str, Event]]
"""Events, each with its device."""


class Framing(Protocol):
    """Reads and writes the messages of one stream."""

    device_id: str | None
    """The only device of the stream, once it has been named; None in a fleet."""

    def count(self, request: Any) -> int:  # noqa: ANN401 - the message of either method
        """Return the number of entries of a message."""

    def entries(self, request: Any) -> Iterable[Entry]:  # noqa: ANN401
        """Yield the request of each device."""

    def messages(self, events: Events) -> Iterator[tuple[Events, bytes]]:
        """Yield messages, each with the events in it."""


class SingleFraming:
    """The framing of `Attach`: the first message names the device.

    Parameters
    ----------
    encoder
        Serializes events.
    caller
        The principal of the stream.
    """

    def __init__(self, encoder: EventEncoder, caller: Principal) -> None:
        self.device_id: str | None = None
        self._encoder = encoder
        self._caller = caller

    def count(self, _request: device_service_pb2.AttachRequest) -> int:
        """Return the number of entries of a message."""
        return 1

    def entries(self, request: device_service_pb2.AttachRequest) -> Iterable[Entry]:
        """Return the request of the device."""
        if self.device_id is None:
            self.device_id = self._caller.qualified(request.hello.device_id)
        return ((self.device_id, request),)

    def messages(self, events: Events) -> Iterator[tuple[Events, bytes]]:
        """Yield a message for each event."""
        for one in events:
            yield (one,), self._encoder.response(one[1])


class FleetFraming:
    """The framing of `AttachFleet`.

    Parameters
    ----------
    encoder
        Serializes events.
    caller
        The principal of the stream.
    """

    def __init__(self, encoder: EventEncoder, caller: Principal) -> None:
        self.device_id: str | None = None
        self._encoder = encoder
        self._caller = caller

    def count(self, request: device_service_pb2.AttachFleetRequest) -> int:
        """Return the number of entries of a message."""
        return len(request.entries)

    def entries(self, request: device_service_pb2.AttachFleetRequest) -> Iterable[Entry]:
        """Yield the request of each device."""
        for entry in request.entries:
            own_request = entry.request if entry.HasField("request") else None
            yield self._caller.qualified(entry.device_id), own_request

    def messages(self, events: Events) -> Iterator[tuple[Events, bytes]]:
        """Yield messages, each with as many events as can be written in a few milliseconds."""
        begin = size = 0
        for i, (_, event) in enumerate(events):
            more = len(event.delta.add) if isinstance(event, VersionedDelta) else 0
            if size + more > _ADDED_MAX and i > begin:
                yield events[begin:i], self._encoder.fleet_response(events[begin:i])
                begin, size = i, 0
            size += more
        if begin < len(events):
            yield events[begin:], self._encoder.fleet_response(events[begin:])
