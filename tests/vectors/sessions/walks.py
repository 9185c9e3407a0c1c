"""Long random sessions: a device that moves, a server that publishes, and a stream that fails.

Each walk ends with all deltas delivered. The results are then those of the definition, which is asserted
while the walk is made.
"""

from __future__ import annotations

import copy

from nearcast.v1 import device_service_pb2
from tests.vectors.draws import Draws
from tests.vectors.frames import CITY, COUNTRY, Y_M_PER_DEG
from tests.vectors.notation import message_json, read_message
from tests.vectors.session_player import SessionPlayer
from tests.vectors.sessions.messages import CONNECT, DISCONNECT, NEAR, TEA, given, receive
from tests.vectors.sessions.server import Server

_TOP_K = {"top_k": {**TEA["top_k"], "k": 3, "distance_scale_m": 1000.0}, "region": TEA["region"]}
_WINDOW = {**TEA, "window": {"duration_ms": "4000"}}
_STEPS = 60


def cases():
    all_kinds = [_TOP_K, NEAR, _WINDOW]
    walks = {
        "top-k, in a city": (CITY, 1.0, [_TOP_K]),
        "a range that moves, in a city": (CITY, 1.0, [NEAR]),
        "three subscriptions, in a city": (CITY, 1.0, all_kinds),
        "three subscriptions, in a country": (COUNTRY, 40.0, list(map(_wider, all_kinds))),
    }
    for seed, (name, (frame, scale, specs)) in enumerate(walks.items()):
        yield {"name": name, "given": given(), "steps": _Walk(seed, frame, scale).steps(specs)}


def _wider(spec):
    """Return a spec with a range of twenty kilometres."""
    spec = copy.deepcopy(spec)
    if "boolean" in spec:
        spec["boolean"]["circle"]["radius_m"] = 20_000.0
    return spec


class _Walk:
    """One session while it is made: the steps so far, and both sides after them."""

    def __init__(self, seed, frame, scale):
        self._draws = Draws(seed)
        self._scale_deg = scale * 100.0 / Y_M_PER_DEG
        self._server = Server(frame, self._draws)
        self._player = SessionPlayer(given())
        self._steps = []
        self._lon, self._lat = frame.lon0_deg, frame.lat0_deg
        self._is_connected = False

    def steps(self, specs):
        for _ in range(12):
            self._publish()
        self._move()
        for spec in specs:
            self._do({"op": "subscribe", "spec": spec, "name": ""})
        for _ in range(_STEPS):
            self._event()
        self._settle()
        return self._steps

    def _event(self):
        """Let something happen."""
        kind = self._draws.random()
        if self._server.stream and kind < 0.5:
            self._deliver()
        elif kind < 0.54 and self._draws.random() < 0.5:
            self._cut()
        elif kind < 0.8:
            self._move()
        elif kind < 0.88:
            self._publish()
        elif kind < 0.93 and self._server.objects:
            self._server.retract(self._draws.one_of(sorted(self._server.objects)))
        elif kind < 0.97:
            self._server.pass_time(self._draws.whole(1, 1500))
        else:
            self._server.coalesce()

    def _settle(self):
        """Deliver everything, and compare the results with the definition."""
        self._cut()
        while self._server.stream:
            self._deliver()
        point = self._player.session.point
        for number, subscription in self._player.session.subscriptions.items():
            assert subscription.state == "exact", subscription.state
            found = [match.object.id for match in subscription.results()]
            assert found == self._server.result(self._server.queries[number], point)

    def _do(self, step):
        """Carry out a step on the device; the server gets what the device sends."""
        self._steps.append(step)
        output = self._player(copy.deepcopy(step))
        for request in output["sent"]:
            if self._is_connected:
                self._server.receive(request)
        if output.get("lost"):
            self._cut()

    def _move(self):
        self._lon += self._draws.between(-3.0, 3.0) * self._scale_deg
        self._lat += self._draws.between(-3.0, 3.0) * self._scale_deg
        self._do({"op": "move", "lon": self._lon, "lat": self._lat})

    def _publish(self):
        lon = self._lon + self._draws.between(-12.0, 12.0) * self._scale_deg
        lat = self._lat + self._draws.between(-12.0, 12.0) * self._scale_deg
        constant_m = self._draws.one_of((0.0, self._draws.between(0.0, 500.0)))
        self._server.publish(lon, lat, constant_m, self._draws.whole(500, 20_000))

    def _deliver(self):
        """Deliver the next message, perhaps twice; or lose it and deliver the difference after it."""
        stream = self._server.stream
        if not stream:
            return
        message = stream.popleft()
        is_followed = bool(stream) and "delta" in message and not stream[0]["delta"]["snapshot"]
        if is_followed and self._draws.random() < 0.05:
            message = stream.popleft()
        self._receive(message)
        if "delta" in message and self._draws.random() < 0.1:
            self._receive(message)

    def _receive(self, message):
        plain = message_json(read_message(message, device_service_pb2.AttachResponse))
        self._do({"op": "receive", "message": plain} if plain else receive())

    def _cut(self):
        """Break the stream, and start another one; the server may have forgotten the conversation."""
        self._is_connected = False
        self._server.stream.clear()
        if self._draws.random() < 0.3:
            self._server.forget()
        self._do(DISCONNECT)
        if self._draws.random() < 0.3:
            self._move()
        self._is_connected = True
        self._do(CONNECT)
