"""Messages of a server and steps of a device, in the notation of the vectors."""

from __future__ import annotations

from nearcast.v1 import device_service_pb2
from tests.vectors.frames import CITY, frame_message
from tests.vectors.notation import double, message_json, read_message

NOW_MS = 1_000_000
LATE_MS = 9_007_199_254_740_991
EPOCH = 2**63 + 11
HERE = (14.5, 35.5)
TEA = {"top_k": {"keywords": ["tea"], "k": 2, "alpha": 0.5}, "region": "REGION_MODE_ANCHORED"}
NEAR = {
    "boolean": {"clauses": [{"required": ["tea"]}], "circle": {"radius_m": 500.0}, "moving": True},
    "region": "REGION_MODE_ANCHORED",
}
FIXED = {
    "boolean": {
        "clauses": [{"required": ["tea"]}],
        "rectangle": {"bounds": {"lon_min": 14.4, "lat_min": 35.4, "lon_max": 14.6, "lat_max": 35.6}},
    },
    "region": "REGION_MODE_ANCHORED",
}

_LIMITS = {"margin_m_max": 5000.0, "matches_max": 10, "name_length_max": 128}


def given(**others):
    """Return a device."""
    device = {"device_id": "phone", "nonce": "bm9uY2U=", "steady_ms": "50000"}
    place = {"lon": HERE[0], "lat": HERE[1], "accuracy_m": 0.0, "prefetch_m": 0.0, "take_over": False}
    return {**device, **place, **others}


def receive(**event):
    """Return the step of a message of the server, in the mapping's own form."""
    message = read_message(event, device_service_pb2.AttachResponse)
    return {"op": "receive", "message": message_json(message)}


def welcome(version=0, listed=(), *, resumed=False, epoch=EPOCH, time_ms=NOW_MS, frame=CITY, **others):
    """Return a welcome. `listed` has numbers with specs, and perhaps names."""
    return receive(
        welcome={
            "frame": message_json(frame_message(frame)),
            "time_ms": str(time_ms),
            "virtual_time": True,
            "limits": _LIMITS,
            "subscriptions": [
                {"subscription_id": number, "spec": spec, "name": "".join(name)}
                for number, spec, *name in listed
            ],
            "version": str(version),
            "resumed": resumed,
            "lease_ms": "0",
            "epoch": str(epoch),
            **others,
        }
    )


def delta(version, number=1, cause="REPORTED", *, at=HERE, add=(), drop=(), frame=CITY, **others):
    """Return a delta. `drop` has ids, and perhaps reasons."""
    x_m, y_m = frame.project(*at)
    return receive(
        delta={
            "version": str(version),
            "subscription_id": number,
            "anchor": {"x_m": x_m, "y_m": y_m},
            "add": list(add),
            "drop": [{"object_id": str(one), "reason": f"DROP_REASON_{reason}"} for one, reason in drop],
            "cause": f"CAUSE_{cause}",
            "time_ms": str(NOW_MS),
            **others,
        }
    )


def snapshot(version, number=1, cause="SUBSCRIBED", **others):
    """Return a delta that is a snapshot."""
    return delta(version, number, cause, snapshot=True, **others)


def reach(length_m, object_id=0):
    """Return the bound of a top-k subscription."""
    return {"length_m": double(length_m), "object_id": str(object_id)}


def slack(slack_m, *, too_many=False):
    """Return the bound of a boolean subscription."""
    return {"slack_m": double(slack_m), "too_many": too_many}


def entry(
    number, lon, lat=HERE[1], r_m=0.0, *, frame=CITY, created_ms=NOW_MS, expiry_ms=LATE_MS, **others
):
    """Return an object that is added."""
    x_m, y_m = frame.project(lon, lat)
    item = {
        "id": str(number),
        "position": {"lon": lon, "lat": lat},
        "point": {"x_m": x_m, "y_m": y_m},
        "keywords": ["tea"],
        "created_ms": str(created_ms),
        "expiry_ms": str(expiry_ms),
    }
    return {"object": {**item, **others}, "r_m": r_m}


def subscribe(spec, name=""):
    """Return the step of a subscribe."""
    return {"op": "subscribe", "spec": spec, "name": name}


def move(lon, lat=HERE[1], **others):
    """Return the step of a fix."""
    return {"op": "move", "lon": lon, "lat": lat, **others}


def pong(number):
    """Return a pong."""
    return receive(pong={"number": str(number)})


def rejection(command, number, reason, **others):
    """Return a refusal."""
    error = {"reason": f"ERROR_REASON_{reason}", "field": "f", "value": "v", "limit": "l", **others}
    return receive(rejection={"command": f"COMMAND_{command}", "number": str(number), "error": error})


def detached(reason):
    """Return the end of the conversation."""
    return receive(detached={"error": {"reason": f"ERROR_REASON_{reason}", "message": "m"}})


CONNECT = {"op": "connect"}
DISCONNECT = {"op": "disconnect"}
PASS_TIME = {"op": "pass_time"}
