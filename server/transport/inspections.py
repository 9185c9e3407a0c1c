"""Inspections on the wire."""

from __future__ import annotations

from typing import cast

from identity.principal import Principal, local_name, local_names
from nearcast.errors import Reason, RefusedError
from nearcast.v1 import control_service_pb2 as pb
from nearcast.v1 import geometry_pb2, subscriptions_pb2
from nearcast.wire.specs import write_bound
from server import command as c
from server.core import inspection as i
from server.session import State
from server.transport.converters import object_message
from server.transport.fields import missing
from server.transport.specs import spec_message

STATES = {
    State.IN_SYNC: pb.DEVICE_STATE_IN_SYNC,
    State.CATCHING_UP: pb.DEVICE_STATE_CATCHING_UP,
    State.DETACHED: pb.DEVICE_STATE_DETACHED,
    State.PARKED: pb.DEVICE_STATE_PARKED,
}


def inspect_from(request: pb.InspectRequest, caller: Principal) -> c.Inspect:
    """Return the inspection in a request.

    Raises
    ------
    RefusedError
        Naming the field that is missing or out of its limits.
    """
    match request.WhichOneof("subject"):
        case "device_id":
            device_id = _named(request.device_id, "device_id", caller)
            return c.Inspect(caller, device_id)
        case "subscription":
            subject = request.subscription
            device_id = _named(subject.device_id, "subscription.device_id", caller)
            object_id = _counted(subject.object_id, "subscription.object_id", 0)
            key = subject.object_key
            if object_id and key:
                limit = "absent: object_id already selects the object"
                raise RefusedError(Reason.INVALID_FIELD, "subscription.object_key", repr(key), limit)
            key = _named(key, "subscription.object_key", caller) if key else ""
            return c.Inspect(caller, device_id, subject.subscription_id, object_id, key)
        case "object_id":
            return c.Inspect(caller, object_id=_counted(request.object_id, "object_id", 1))
        case "object_key":
            return c.Inspect(caller, object_key=_named(request.object_key, "object_key", caller))
        case _:
            raise missing("subject")


def _named(name: str, field: str, caller: Principal) -> str:
    """Return the qualified name of a device or an object of the caller's tenant."""
    if not name:
        raise missing(field)
    return caller.qualified(name)


def _counted(number: int, field: str, least: int) -> int:
    if number < least:
        raise RefusedError(Reason.INVALID_FIELD, field, number, f"at least {least}")
    return number


def inspect_message(found: i.Inspected, time_ms: int) -> pb.InspectResponse:
    """Return the response to an inspection."""
    match found:
        case i.InspectedDevice():
            return pb.InspectResponse(time_ms=time_ms, device=_device(found))
        case i.InspectedSubscription():
            return pb.InspectResponse(time_ms=time_ms, subscription=_subscription(found))
        case i.InspectedObject():
            return pb.InspectResponse(time_ms=time_ms, object=_object(found))


def _device(found: i.InspectedDevice) -> pb.InspectedDevice:
    return pb.InspectedDevice(
        device_id=local_name(found.device_id),
        state=STATES[found.state],
        version=found.version,
        kept_count=found.kept_count,
        waiting_count=found.waiting_count,
        report_sequence=found.report_sequence,
        silent_ms=found.silent_ms or 0,
        lease_ms=found.lease_ms,
        subscriptions=[_subscription(one) for one in found.subscriptions],
    )


def _subscription(found: i.InspectedSubscription) -> pb.InspectedSubscription:
    message = pb.InspectedSubscription(
        device_id=local_name(found.device_id),
        subscription_id=found.subscription_id,
        name=found.name,
        spec=spec_message(found.spec),
        awake=found.is_awake,
        pending=found.is_pending,
        held=[_held(one) for one in found.held],
    )
    if found.bound is not None:
        message.anchor.CopyFrom(geometry_pb2.Point(x_m=found.anchor[0], y_m=found.anchor[1]))
        lon, lat = found.place
        message.anchor_position.CopyFrom(geometry_pb2.Position(lon=lon, lat=lat))
        delta = subscriptions_pb2.Delta()
        write_bound(found.bound, delta)
        if delta.HasField("reach"):
            message.reach.CopyFrom(delta.reach)
        else:
            message.slack.CopyFrom(delta.slack)
    if found.judgement is not None:
        judgement = found.judgement
        message.judgement.CopyFrom(
            pb.Judgement(
                object_id=judgement.object_id,
                verdict=cast("pb.Verdict", int(judgement.verdict)),
                rank=judgement.rank,
                length_m=judgement.length_m,
                r_m=judgement.r_m,
            )
        )
    return message


def _held(one: i.Held) -> pb.HeldObject:
    item = one.item
    return pb.HeldObject(
        object_id=one.object_id,
        rank=one.rank,
        length_m=one.length_m,
        r_m=one.r_m,
        key=local_name(item.key),
        keywords=local_names(item.keywords),
        position=geometry_pb2.Position(lon=item.lon, lat=item.lat),
    )


def _object(found: i.InspectedObject) -> pb.InspectedObject:
    return pb.InspectedObject(
        object=object_message(found.item._replace(payload=b"")),
        payload_bytes=len(found.item.payload),
        holder_count=found.holder_count,
        holders=[
            pb.Holder(device_id=local_name(one.device_id), subscription_id=one.subscription_id)
            for one in found.holders
        ],
    )
