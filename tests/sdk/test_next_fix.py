"""Between the fixes of `next_fix_in`, a device that moves has nothing to report."""

from __future__ import annotations

import math

import pytest

from nearcast.errors import RefusedError
from nearcast.protocol.clock import Clock
from nearcast.protocol.device_session import DeviceSession
from nearcast.protocol.location import Location
from nearcast.protocol.specs import spec_from
from nearcast.v1 import device_service_pb2, subscriptions_pb2
from tests.support.amounts import examples
from tests.vectors.draws import Draws
from tests.vectors.frames import CITY
from tests.vectors.notation import message_json, read_message
from tests.vectors.sessions.messages import NEAR, NOW_MS, TEA
from tests.vectors.sessions.server import Server

SPEED_MPS = 20.0
SECONDS = 400
TOP_K = {**TEA, "top_k": {**TEA["top_k"], "k": 3, "distance_scale_m": 1000.0}}
SPECS = {"top-k": TOP_K, "a range": NEAR, "a window": {**TEA, "window": {"duration_ms": "40000"}}}


class Walk:
    """A device that looks only when it has to, on a way of its own, in steps of a second."""

    def __init__(self, seed, spec):
        self.draws = Draws(seed)
        self.server = Server(CITY, self.draws)
        self.x_m = self.y_m = 0.0
        self.steady_ms = 0
        self.fixes = 0
        location = Location(*self.place())
        clock = Clock(lambda: self.steady_ms)
        self.device = DeviceSession("d", b"nonce", clock, self.receive, location)
        for _ in range(40):
            self.publish()
        self.device.connect()
        self.deliver()
        self.subscription = self.device.subscribe(
            spec_from(read_message(spec, subscriptions_pb2.SubscriptionSpec))
        )
        self.deliver()

    def place(self):
        return CITY.unproject(self.x_m, self.y_m)

    def receive(self, request):
        self.server.receive(message_json(request))

    def deliver(self):
        """Deliver what the server has sent. Its time is real."""
        while self.server.stream:
            message = self.server.stream.popleft()
            if "welcome" in message:
                message = {"welcome": {**message["welcome"], "virtual_time": False}}
            self.device.receive(read_message(message, device_service_pb2.AttachResponse))

    def publish(self):
        lon, lat = CITY.unproject(
            self.x_m + self.draws.between(-2e3, 2e3), self.y_m + self.draws.between(-2e3, 2e3)
        )
        constant_m = self.draws.one_of((0.0, self.draws.between(0.0, 500.0)))
        self.server.publish(lon, lat, constant_m, self.draws.whole(5_000, 600_000))

    def pass_second(self):
        """Move as far as the device can in a second; timers run when something ends."""
        angle = self.draws.between(0.0, 2.0 * math.pi)
        self.x_m += SPEED_MPS * math.cos(angle)
        self.y_m += SPEED_MPS * math.sin(angle)
        self.steady_ms += 1000
        self.server.pass_time(1000)
        self.device.pass_time()
        self.deliver()

    def look(self):
        self.fixes += 1
        self.device.move(*self.place())
        self.deliver()


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_nothing_is_missed_between_fixes(spec):
    for seed in range(examples(3)):
        walk = Walk(seed, spec)
        for _ in range(SECONDS):
            walk.pass_second()
            if walk.draws.random() < 0.1:
                walk.publish()
                walk.deliver()
            if walk.device.next_fix_s(SPEED_MPS) == 0.0:
                walk.look()
            point = CITY.project(*walk.place())
            now_ms = walk.device.clock.now_ms()
            assert now_ms == walk.server.now_ms
            found = walk.subscription.region.evaluate(point.x_m, point.y_m, now_ms)
            assert found.exact, "the device has left its region, and does not know it"
            assert [one for _, one in found.best] == walk.server.result(walk.server.queries[1], point)
        assert 0 < walk.fixes < SECONDS, "the device looks now and then"


def test_speeds_that_are_none():
    walk = Walk(1, TEA)
    assert walk.server.now_ms == NOW_MS
    for speed in (0.0, -1.0, math.nan, math.inf, 10_001.0, "1", None):
        with pytest.raises(RefusedError, match="v_max_mps"):
            walk.device.next_fix_s(speed)
