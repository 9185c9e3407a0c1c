"""Wire types to the server's own and back. No decision is made here but whether a field is there."""

from __future__ import annotations

from enum import IntEnum
from typing import TypeVar, cast

from nearcast.v1 import (
    device_service_pb2,
    geometry_pb2,
    objects_pb2,
    subscriptions_pb2,
)
from safe_region.anchored import RegionMode
from safe_region.frame import Frame
from safe_region.scoring import Similarity, score_of
from server import session as s
from server.commands import command as c
from server.core.matching_service import Ranked
from server.errors import Reason, RefusalError
from server.limits import Limits
from server.model import Cause, DropReason, LiveObject, NewObject, TopK

_Choice = TypeVar("_Choice", bound=IntEnum)


def _missing(field: str) -> RefusalError:
    return RefusalError(Reason.INVALID_FIELD, field, "absent", "present")


def _unimplemented(field: str, limit: str, value: str = "present") -> RefusalError:
    return RefusalError(Reason.UNIMPLEMENTED, field, value, f"{limit}; more is not built yet")


# -- from the wire -------------------------------------------------------------------------------


def position_from(message: geometry_pb2.Position, field: str, *, present: bool) -> tuple[float, float]:
    """Read a required position."""
    if not present:
        raise _missing(field)
    return message.lon, message.lat


def new_object_from(message: objects_pb2.NewObject, field: str) -> NewObject:
    """Read an object that a publisher posts."""
    if message.HasField("area"):
        raise _unimplemented(f"{field}.area", "absent: an object is a point")
    lon, lat = position_from(message.position, f"{field}.position", present=message.HasField("position"))
    return NewObject(lon, lat, tuple(message.keywords), message.ttl_ms, message.payload, message.key)


def top_k_from(message: subscriptions_pb2.SubscriptionSpec) -> TopK:
    """Read what a subscription asks for."""
    kind = message.WhichOneof("kind")
    if kind == "boolean":
        raise _unimplemented("spec.boolean", "a top-k subscription")
    if kind != "top_k":
        raise _missing("spec.top_k")
    if message.HasField("window"):
        raise _unimplemented("spec.window", "absent: objects count until they expire")
    spec = message.top_k
    if spec.similarity == subscriptions_pb2.SIMILARITY_TFIDF_COSINE:
        raise _unimplemented("spec.top_k.similarity", "JACCARD, DICE or COSINE", "TFIDF_COSINE")
    similarity = _choice(Similarity, spec.similarity or Similarity.JACCARD, "spec.top_k.similarity")
    region = _choice(RegionMode, message.region or RegionMode.ANCHORED, "spec.region")
    return TopK(tuple(spec.keywords), spec.k, spec.alpha, similarity, region)


def _choice(kind: type[_Choice], value: int, field: str) -> _Choice:
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(f"{one.value} ({one.name})" for one in kind)
        raise RefusalError(Reason.INVALID_FIELD, field, value, f"one of {known}") from None


def hello_from(outbox: s.Outbox, message: device_service_pb2.Hello) -> c.Hello:
    """Read a hello."""
    lon, lat = position_from(message.position, "hello.position", present=message.HasField("position"))
    return c.Hello(
        outbox,
        message.device_id,
        message.instance_nonce,
        message.version,
        lon,
        lat,
        message.margin_m,
        message.epoch,
    )


def device_command_from(
    outbox: s.Outbox, device_id: str, message: device_service_pb2.AttachRequest
) -> c.DeviceCommand:
    """Read any command of a device."""
    match message.WhichOneof("command"):
        case "report":
            return report_from(outbox, device_id, message.report)
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
            raise _missing("command")


def report_from(outbox: s.Outbox, device_id: str, message: device_service_pb2.Report) -> c.Report:
    """Read a report."""
    position = message.position
    if not message.HasField("position"):
        raise _missing("report.position")
    return c.Report(
        outbox,
        device_id,
        message.sequence,
        position.lon,
        position.lat,
        tuple(message.subscription_ids[:]),  # a slice is made at once, an iterator takes thrice as long
        message.margin_m,
        message.heading_deg if message.HasField("heading_deg") else None,
        message.speed_mps if message.HasField("speed_mps") else None,
        message.version,
    )


def _subscribe_from(
    outbox: s.Outbox, device_id: str, message: device_service_pb2.Subscribe
) -> c.Subscribe:
    lon, lat = position_from(message.position, "subscribe.position", present=message.HasField("position"))
    spec = top_k_from(message.spec)
    return c.Subscribe(outbox, device_id, message.subscription_id, spec, lon, lat, message.margin_m)


# -- to the wire ---------------------------------------------------------------------------------


def frame_message(frame: Frame) -> geometry_pb2.Frame:
    """Write a frame."""
    return geometry_pb2.Frame(
        **frame.area._asdict(),
        lon0_deg=frame.lon0_deg,
        lat0_deg=frame.lat0_deg,
        x_m_per_deg=frame.x_m_per_deg,
        y_m_per_deg=frame.y_m_per_deg,
        maxdist_m=frame.maxdist_m,
    )


def limits_message(limits: Limits) -> device_service_pb2.Limits:
    """Write the limits that others are told."""
    names = device_service_pb2.Limits.DESCRIPTOR.fields_by_name
    return device_service_pb2.Limits(**{name: getattr(limits, name) for name in names})


def object_message(item: LiveObject) -> objects_pb2.Object:
    """Write an object."""
    return objects_pb2.Object(
        id=item.object_id,
        position=geometry_pb2.Position(lon=item.lon, lat=item.lat),
        point=geometry_pb2.Point(x_m=item.point.x_m, y_m=item.point.y_m),
        keywords=item.keywords,
        created_ms=item.created_ms,
        expiry_ms=item.expiry_ms,
        payload=item.payload,
        key=item.key,
    )


def spec_message(spec: TopK) -> subscriptions_pb2.SubscriptionSpec:
    """Write what a subscription asks for."""
    return subscriptions_pb2.SubscriptionSpec(
        top_k=subscriptions_pb2.TopK(
            keywords=spec.keywords,
            k=spec.k,
            alpha=spec.alpha,
            similarity=subscriptions_pb2.Similarity.Name(int(spec.similarity)),
        ),
        region=subscriptions_pb2.RegionMode.Name(int(spec.region)),
    )


def delta_message(versioned: s.VersionedDelta) -> subscriptions_pb2.Delta:
    """Write a delta, but for the objects it adds."""
    delta = versioned.delta
    message = subscriptions_pb2.Delta()
    message.version = versioned.version
    message.subscription_id = versioned.subscription_id
    message.anchor.x_m, message.anchor.y_m = delta.anchor
    message.reach.length_m, message.reach.object_id = delta.reach
    for object_id, reason in delta.drop.items():
        message.drop.add(object_id=object_id, reason=_DROP_REASONS[reason])
    message.cause = _CAUSES[delta.cause]
    message.snapshot = delta.snapshot
    message.report_sequence = versioned.report_sequence
    message.time_ms = delta.time_ms
    return message


_CAUSES = {cause: cast("subscriptions_pb2.Cause", int(cause)) for cause in Cause}
_DROP_REASONS = {reason: cast("subscriptions_pb2.DropReason", int(reason)) for reason in DropReason}


def search_message(
    spec: TopK, ranked: list[Ranked], frame: Frame, time_ms: int
) -> device_service_pb2.SearchResponse:
    """Write the result of a search."""
    return device_service_pb2.SearchResponse(
        matches=[
            device_service_pb2.SearchResponse.Match(
                object=object_message(found.item),
                score=score_of(found.length_m, spec.alpha, frame.maxdist_m),
                distance_m=found.length_m - found.r_m,
            )
            for found in ranked
        ],
        time_ms=time_ms,
    )
