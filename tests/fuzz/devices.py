"""The SDK's decoder: whatever a server sends, a device ends with an error of the SDK's, if with any."""

from __future__ import annotations

import struct

from google.protobuf.message import DecodeError

from nearcast.errors import NearcastError
from nearcast.model import Boolean, TopK
from nearcast.protocol.clock import Clock
from nearcast.protocol.device_session import DeviceSession
from nearcast.protocol.location import Location
from nearcast.v1 import device_service_pb2, subscriptions_pb2
from safe_region.earth.shapes import Circle
from tests.fuzz.target import Target

SIZE = struct.Struct("<H")
MESSAGES_MAX = 12
Response = device_service_pb2.AttachResponse


def _make():
    def run(data: bytes) -> None:
        session = DeviceSession("d", b"n", Clock(), lambda _request: None, Location(14.5, 35.5))
        session.connect()
        subscriptions = [
            session.subscribe(TopK({"a"}, k=2, distance_scale_m=700.0)),
            session.subscribe(Boolean({"a"}, Circle(500.0), moving=True)),
        ]
        for _ in range(MESSAGES_MAX):
            if len(data) < SIZE.size:
                break
            (size,) = SIZE.unpack_from(data)
            rest = data[SIZE.size :]
            try:
                session.receive(Response.FromString(rest[:size]))
                for one in subscriptions:
                    one.results()
                session.pass_time()
                if session.is_online:  # an app has the device then
                    session.move(14.5, 35.6)
                    session.geofence()
            except DecodeError:
                pass
            except NearcastError:
                return
            data = rest[size:]

    return run


def _seeds() -> list[bytes]:
    welcome = Response()
    frame = welcome.welcome.frame
    frame.lon_min, frame.lat_min, frame.lon_max, frame.lat_max = 14.0, 35.0, 15.0, 36.0
    frame.lon0_deg, frame.lat0_deg = 14.5, 35.5
    frame.x_m_per_deg, frame.y_m_per_deg, frame.maxdist_m = 90_000.0, 111_000.0, 140_000.0
    welcome.welcome.time_ms, welcome.welcome.version, welcome.welcome.epoch = 1_000, 2, 7
    welcome.welcome.limits.margin_m_max, welcome.welcome.limits.matches_max = 5_000.0, 1_000
    delta = Response()
    delta.delta.version, delta.delta.subscription_id, delta.delta.snapshot = 1, 1, True
    delta.delta.reach.length_m = 100.0
    entry = delta.delta.add.add(r_m=5.0)
    entry.object.id, entry.object.expiry_ms = 1, 9_000
    entry.object.keywords.append("a")
    slack = Response()
    slack.delta.version, slack.delta.subscription_id = 2, 2
    slack.delta.slack.slack_m = 50.0
    slack.delta.drop.add(object_id=1, reason=1)
    slack.delta.cause = subscriptions_pb2.CAUSE_PUBLISHED
    others = [Response() for _ in range(4)]
    others[0].pong.number = 1
    others[1].unsubscribed.subscription_id = 1
    others[2].locate.subscription_ids.append(1)
    others[3].rejection.number, others[3].rejection.command = 1, 2
    parts = [one.SerializeToString() for one in (welcome, delta, slack, *others)]
    framed = [SIZE.pack(len(one)) + one for one in parts]
    return [b"".join(framed), *(framed[0] + one for one in framed[1:])]


DEVICES = Target("devices", _make, _seeds, ("nearcast.protocol",), 80_000)
