"""Conversion of messages to commands, and of results to messages.

This module decides whether a field is present, the meaning of its absence, and whether this server
implements the request; `nearcast.wire` converts, and `server/commands/validation.py` decides all else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import cast

from identity.principal import Principal, local_name, local_names
from nearcast.errors import Reason, RefusedError
from nearcast.v1 import (
    device_service_pb2,
    geometry_pb2,
    objects_pb2,
    publisher_service_pb2,
    subscriptions_pb2,
)
from nearcast.wire import objects
from nearcast.wire.specs import write_bound
from safe_region.earth.frame import Frame
from safe_region.earth.ground import ground_distance_m
from safe_region.earth.shapes import Polygon
from server import command as c
from server import session as s
from server.commands.validation import check_count
from server.core.matching_service import Ranked
from server.limits import Limits
from server.model import Cause, DropReason, LiveObject, NewObject, Place, Spec
from server.transport.fields import missing
from server.transport.specs import score, spec_from

OBJECTS_AT_ONCE = 32
"""Objects to convert at a time. With areas of 64 corners, the maximum, they take half a millisecond."""

_MATCHES_AT_ONCE = 64
"""Matches of a search to convert at a time, some two milliseconds."""

_NUMBERS_BYTES = 256
"""Bytes of a match at most, without texts, payload and corners of its object."""
_KEYWORD_BYTES, _CHARACTER_BYTES, _CORNER_BYTES = 4, 4, 20
"""Bytes at most of a keyword without its characters, of a character in UTF-8, and of a corner."""

_Placed = device_service_pb2.Hello | device_service_pb2.Subscribe

# -- from the wire -------------------------------------------------------------------------------


def position_from(message: geometry_pb2.Position, field: str, *, present: bool) -> tuple[float, float]:
    """Return a required position."""
    if not present:
        raise missing(field)
    return message.lon, message.lat


def new_object_from(message: objects_pb2.NewObject, field: str) -> NewObject:
    """Return the object that a publisher posts."""
    if message.HasField("area"):
        if message.HasField("position"):
            limit = "absent: the object has an area"
            raise RefusedError(Reason.INVALID_FIELD, f"{field}.position", "present", limit)
        if message.area.WhichOneof("shape") is None:
            raise missing(f"{field}.area.shape")
    elif not message.HasField("position"):
        raise missing(f"{field}.position")
    return objects.new_object_from(message)


def objects_from(
    message: publisher_service_pb2.PublishRequest, limits: Limits
) -> Iterator[list[NewObject]]:
    """Yield the objects of a request in batches of a fixed size.

    Raises
    ------
    RefusedError
        TOO_MANY, or naming the field that is missing.
    """
    check_count(len(message.objects), "objects", limits.objects_per_request_max)
    for begin in range(0, len(message.objects), OBJECTS_AT_ONCE):
        some = message.objects[begin : begin + OBJECTS_AT_ONCE]
        yield [new_object_from(one, f"objects[{i}]") for i, one in enumerate(some, begin)]


def retract_from(message: publisher_service_pb2.RetractRequest, caller: Principal) -> c.Retract:
    """Return the retraction in a message."""
    return c.Retract(tuple(message.ids), caller, tuple(map(caller.qualified, message.keys)))


def place_from(message: _Placed, field: str) -> Place:
    """Return the position of a device, and its margin."""
    if not message.HasField("position"):
        raise missing(field)
    return Place(message.position.lon, message.position.lat, message.margin_m)


def hello_from(outbox: s.Outbox, message: device_service_pb2.Hello) -> c.Hello:
    """Return the hello in a message."""
    return c.Hello(
        outbox,
        outbox.principal.qualified(message.device_id),
        message.instance_nonce,
        message.version,
        place_from(message, "hello.position"),
        message.epoch,
        message.take_over,
    )


def device_command_from(
    outbox: s.Outbox, device_id: str, message: device_service_pb2.AttachRequest
) -> c.DeviceCommand:
    """Return the command of a device in a message."""
    match message.WhichOneof("command"):
        case "report":
            return report_from(outbox, None, device_id, message.report)
        case "hello":
            return hello_from(outbox, message.hello)
        case "subscribe":
            return _subscribe_from(outbox, device_id, message.subscribe)
        case "unsubscribe":
            return c.Unsubscribe(outbox, device_id, message.unsubscribe.subscription_id)
        case "ack":
            return c.Ack(outbox, device_id, message.ack.version)
        case "ping":
            return c.Ping(outbox, device_id, message.ping.number, message.ping.version)
        case _:
            raise missing("command")


def report_from(
    outbox: s.Outbox, session: s.Session | None, device_id: str, message: device_service_pb2.Report
) -> c.Report:
    """Return the report in a message; `session` is the device's session if it is attached."""
    position = message.position
    if not message.HasField("position"):
        raise missing("report.position")
    place = Place(
        position.lon,
        position.lat,
        message.margin_m,
        _number(message.heading_deg, "heading_deg") if message.HasField("heading_deg") else math.nan,
        _number(message.speed_mps, "speed_mps") if message.HasField("speed_mps") else math.nan,
    )
    return c.Report(
        outbox,
        device_id,
        session,
        message.sequence,
        place,
        tuple(message.subscription_ids[:]),  # a slice is made at once, an iterator takes thrice as long
        message.version,
    )


def _number(value: float, field: str) -> float:
    """Return a number, which must not be NaN: NaN stands for an absent value, and is not sent."""
    if math.isnan(value):
        raise RefusedError(Reason.INVALID_FIELD, field, value, "a finite number, or absent")
    return value


def _subscribe_from(
    outbox: s.Outbox, device_id: str, message: device_service_pb2.Subscribe
) -> c.Subscribe:
    place = place_from(message, "subscribe.position")
    number, spec = message.subscription_id, spec_from(message.spec)
    return c.Subscribe(outbox, device_id, number, spec, place, message.name)


# -- to the wire ---------------------------------------------------------------------------------


def limits_message(limits: Limits) -> device_service_pb2.Limits:
    """Return the message of the limits that clients get."""
    names = device_service_pb2.Limits.DESCRIPTOR.fields_by_name
    return device_service_pb2.Limits(**{name: getattr(limits, name) for name in names})


def object_message(item: LiveObject) -> objects_pb2.Object:
    """Return the message of an object, with the names of the tenant."""
    return objects.object_message(item, local_names(item.keywords), local_name(item.key))


def delta_message(versioned: s.VersionedDelta) -> subscriptions_pb2.Delta:
    """Return the message of a delta, without the objects it adds."""
    delta = versioned.delta
    message = subscriptions_pb2.Delta()
    message.version = versioned.version
    message.subscription_id = versioned.subscription_id
    message.anchor.x_m, message.anchor.y_m = delta.anchor
    if delta.bound is not None:
        write_bound(delta.bound, message)
    for object_id, reason in delta.drop.items():
        message.drop.add(object_id=object_id, reason=_DROP_REASONS[reason])
    message.cause = _CAUSES[delta.cause]
    message.snapshot = delta.snapshot
    message.report_sequence = versioned.report_sequence
    message.time_ms = delta.time_ms
    return message


_CAUSES = {cause: cast("subscriptions_pb2.Cause", int(cause)) for cause in Cause}
_DROP_REASONS = {reason: cast("subscriptions_pb2.DropReason", int(reason)) for reason in DropReason}


def search_bytes_max(ranked: list[Ranked]) -> int:
    """Return how many bytes the response to a search has at most, without building it."""
    return _NUMBERS_BYTES + sum(_NUMBERS_BYTES + _texts_bytes_max(found.item) for found in ranked)


def _texts_bytes_max(item: LiveObject) -> int:
    """Return how many bytes the fields of an object that are no numbers have at most."""
    characters = len(item.key) + sum(map(len, item.keywords))
    corners = len(item.area.outer) if isinstance(item.area, Polygon) else 0
    names_bytes = _CHARACTER_BYTES * characters + _KEYWORD_BYTES * len(item.keywords)
    return len(item.payload) + names_bytes + _CORNER_BYTES * corners


def search_parts(
    spec: Spec, ranked: list[Ranked], frame: Frame, place: tuple[float, float], time_ms: int
) -> list[Callable[[], device_service_pb2.SearchResponse]]:
    """Return functions that build the parts of the response to a search at a longitude and latitude."""

    def part(begin: int) -> device_service_pb2.SearchResponse:
        return device_service_pb2.SearchResponse(
            matches=[
                device_service_pb2.SearchResponse.Match(
                    object=object_message(found.item),
                    score=score(spec, found.length_m, frame.maxdist_m),
                    distance_m=ground_distance_m(*place, found.item.lon, found.item.lat),
                )
                for found in ranked[begin : begin + _MATCHES_AT_ONCE]
            ],
            time_ms=time_ms if begin == 0 else 0,
        )

    return [partial(part, begin) for begin in range(0, max(1, len(ranked)), _MATCHES_AT_ONCE)]
