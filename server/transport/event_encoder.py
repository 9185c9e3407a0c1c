"""Events of sessions in wire form. Constant parts are serialized once.

A message with length-delimited fields is the bytes of each field after its number and length, in any
order. So constant parts (an object, a response that differs in its envelope only) are not serialized
again.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from identity.lru_cache import LruCache
from identity.principal import local_name
from nearcast.v1 import device_service_pb2, subscriptions_pb2
from nearcast.wire.errors import error_message
from nearcast.wire.geometry import frame_message
from safe_region.earth.frame import Frame
from server import session as s
from server.limits import Limits
from server.model import LiveObject
from server.transport.converters import (
    delta_message,
    limits_message,
    object_message,
)
from server.transport.specs import spec_message
from server.transport.status import go_away_message

_OBJECTS_MAX = 32768
"""Objects cached in wire form, in each of two generations: many devices get the same objects.

When 10,000 devices reconnect they get 191,000 objects, 66,000 different ones. With a quarter of this
number, 124,000 were serialized.
"""

_RESPONSE = device_service_pb2.AttachResponse.DESCRIPTOR.fields_by_name
_DELTA = subscriptions_pb2.Delta.DESCRIPTOR.fields_by_name
_ENTRY = subscriptions_pb2.Entry.DESCRIPTOR.fields_by_name
_FLEET = device_service_pb2.AttachFleetResponse.DESCRIPTOR.fields_by_name
_FLEET_ENTRY = device_service_pb2.AttachFleetResponse.Entry.DESCRIPTOR.fields_by_name

_IN_RESPONSE = _RESPONSE["delta"].number
_GO_AWAY = _RESPONSE["go_away"].number
_IN_DELTA = _DELTA["add"].number
_OBJECT = _ENTRY["object"].number
_R_M = struct.Struct("<Bd")
_R_M_TAG = _ENTRY["r_m"].number << 3 | 1
_IN_FLEET = _FLEET["entries"].number
_FLEET_GO_AWAY = _FLEET["go_away"].number
_DEVICE_ID = _FLEET_ENTRY["device_id"].number
_IN_ENTRY = _FLEET_ENTRY["response"].number

_LENGTH_DELIMITED = 2
_SHORT = 0x80
"""A varint below this is one byte."""
_MIDDLE = 0x4000
"""A varint below this is two bytes at most."""


class EventEncoder:
    """Serializes events as responses.

    Parameters
    ----------
    frame, limits, virtual_time, lease_ms
        The constant content of every welcome.
    """

    def __init__(self, frame: Frame, limits: Limits, *, virtual_time: bool, lease_ms: int = 0) -> None:
        self._frame = frame_message(frame)
        self._limits = limits_message(limits)
        self._virtual_time = virtual_time
        self._lease_ms = lease_ms
        self._entries: LruCache[int, bytes] = LruCache(_OBJECTS_MAX)

    def response(self, event: s.Event) -> bytes:
        """Return one event as a serialized AttachResponse."""
        if isinstance(event, s.VersionedDelta):
            return field(_IN_RESPONSE, self._delta(event))
        if isinstance(event, s.GoAway):
            return field(_GO_AWAY, go_away_message(event.error).SerializeToString())
        return self._message(event).SerializeToString()

    def fleet_response(self, events: Iterable[tuple[str, s.Event]]) -> bytes:
        """Return events of many devices as a serialized AttachFleetResponse."""
        return b"".join(
            field(
                _IN_FLEET,
                field(_DEVICE_ID, local_name(device_id).encode())
                + field(_IN_ENTRY, self.response(event)),
            )
            if not isinstance(event, s.GoAway)
            else field(_FLEET_GO_AWAY, go_away_message(event.error).SerializeToString())
            for device_id, event in events
        )

    def _delta(self, event: s.VersionedDelta) -> bytes:
        head = delta_message(event).SerializeToString()
        if not event.delta.add:
            return head
        entry, share = self._entry, _R_M.pack
        return head + b"".join([entry(item) + share(_R_M_TAG, r_m) for item, r_m in event.delta.add])

    def _entry(self, item: LiveObject) -> bytes:
        """Return a serialized entry of a delta up to its share, which is the last of its fields."""
        found = self._entries.get(item.object_id)
        if found is None:
            content = field(_OBJECT, object_message(item).SerializeToString())
            found = head_of(_IN_DELTA, len(content) + _R_M.size) + content
            self._entries.put(item.object_id, found)
        return found

    def _message(self, event: s.Event) -> device_service_pb2.AttachResponse:
        response = device_service_pb2.AttachResponse
        match event:
            case s.Welcome():
                return response(welcome=self._welcome(event))
            case s.Unsubscribed():
                unsubscribed = device_service_pb2.Unsubscribed(
                    subscription_id=event.subscription_id,
                    reason=device_service_pb2.EndReason.Name(int(event.reason)),
                )
                return response(unsubscribed=unsubscribed)
            case s.Pong():
                return response(pong=device_service_pb2.Pong(number=event.number))
            case s.Rejection():
                rejection = device_service_pb2.Rejection(
                    number=event.number,
                    command=device_service_pb2.Rejection.Command.Name(int(event.command)),
                    error=error_message(event.error),
                )
                return response(rejection=rejection)
            case s.Detached():
                detached = device_service_pb2.Detached(error=error_message(event.error))
                return response(detached=detached)
            case _:
                return self._notice(event)

    @staticmethod
    def _notice(event: s.Event) -> device_service_pb2.AttachResponse:
        """Return a notice that responds to no command."""
        response = device_service_pb2.AttachResponse
        match event:
            case s.Lag(offset):
                return response(lag=device_service_pb2.Lag(offset=offset))
            case s.Locate(subscription_ids):
                return response(locate=device_service_pb2.Locate(subscription_ids=subscription_ids))
            case _:
                raise TypeError(f"{type(event).__name__} is never sent")

    def _welcome(self, event: s.Welcome) -> device_service_pb2.Welcome:
        return device_service_pb2.Welcome(
            frame=self._frame,
            time_ms=event.time_ms,
            virtual_time=self._virtual_time,
            limits=self._limits,
            subscriptions=[
                subscriptions_pb2.Subscription(
                    subscription_id=one.subscription_id, spec=spec_message(one.spec), name=one.name
                )
                for one in event.subscriptions
            ],
            version=event.version,
            resumed=event.resumed,
            lease_ms=self._lease_ms,
            epoch=event.epoch,
            lag_offset=event.lag_offset,
        )


def field(number: int, content: bytes) -> bytes:
    """Return a length-delimited field: a message, a text, bytes. `number` is at most 15."""
    return head_of(number, len(content)) + content


def head_of(number: int, size: int) -> bytes:
    """Return what precedes the content of a length-delimited field of some bytes."""
    tag = number << 3 | _LENGTH_DELIMITED
    if size < _SHORT:
        return bytes((tag, size))
    if size < _MIDDLE:
        return bytes((tag, size & 0x7F | _SHORT, size >> 7))
    return bytes((tag,)) + _varint(size)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value >= _SHORT:
        found.append(value & 0x7F | _SHORT)
        value >>= 7
    found.append(value)
    return bytes(found)
