"""A device's session without a server: what it says, and what it is told."""

from __future__ import annotations

import random

from nearcast.protocol.clock import Clock
from nearcast.protocol.device_session import DeviceSession
from nearcast.protocol.location import Location
from nearcast.v1 import device_service_pb2, subscriptions_pb2
from nearcast.wire.geometry import frame_message
from safe_region.earth.frame import Area, Frame

FRAME = frame_message(Frame.of(Area(14.0, 35.0, 15.0, 36.0)))


class Channel:
    """A session, and what it has said."""

    def __init__(self, privacy_radius_m=0.0, steady=None) -> None:
        """`steady` is the clock of a device whose server has real time."""
        self.sent = []
        self.is_virtual = steady is None
        where = Location(14.5, 35.5, 0.0, privacy_radius_m, random.Random(1))
        clock = Clock(steady) if steady else Clock()
        self.device = DeviceSession("d", b"nonce", clock, self.sent.append, where)
        self.version = 0

    def kinds(self):
        found = [request.WhichOneof("command") for request in self.sent]
        self.sent.clear()
        return found

    def receive(self, **event):
        self.device.receive(device_service_pb2.AttachResponse(**event))

    def welcome(self, listed, *, name="", resumed=False):
        self.device.connect()
        self.version += 0 if resumed else len(listed)
        self.receive(
            welcome=device_service_pb2.Welcome(
                frame=FRAME,
                time_ms=1_000,
                virtual_time=self.is_virtual,
                subscriptions=[
                    subscriptions_pb2.Subscription(subscription_id=number, spec=spec, name=name)
                    for number, spec in listed.items()
                ],
                version=self.version,
                limits=device_service_pb2.Limits(name_length_max=128),
                resumed=resumed,
                epoch=7,
            )
        )

    def delta(self, number, version, **fields):
        self.version = version
        self.receive(delta=subscriptions_pb2.Delta(subscription_id=number, version=version, **fields))
