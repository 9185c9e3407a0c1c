"""Carry out the steps of a session: what a server sends, what the device does, and time."""

from __future__ import annotations

import base64
from collections import deque

from nearcast.errors import NearcastError, RefusedError
from nearcast.protocol.clock import Clock
from nearcast.protocol.device_session import DeviceSession
from nearcast.protocol.location import Location
from nearcast.protocol.specs import spec_from
from nearcast.protocol.watcher import Watcher
from nearcast.v1 import device_service_pb2, subscriptions_pb2
from tests.vectors.notation import double, message_json, read_message
from tests.vectors.players import Player


class SessionPlayer(Player):
    """A session without a stream. Requests are kept; a clock that never jumps is set by the steps."""

    def __init__(self, given):
        self._steady_ms = int(given["steady_ms"])
        self._sent = deque()
        self._watchers = {}
        self.session = DeviceSession(
            given["device_id"],
            base64.b64decode(given["nonce"]),
            Clock(lambda: self._steady_ms),
            self._sent.append,
            Location(given["lon"], given["lat"], given["accuracy_m"]),
            given["prefetch_m"],
            take_over=given["take_over"],
        )
        self.session.on_moved = lambda _: None  # the steps connect it again

    def __call__(self, step):
        self._steady_ms = int(step.pop("steady_ms", self._steady_ms))
        failure = {}
        try:
            super().__call__(step)
        except RefusedError as error:
            failure = {"refused": error.field}
        except NearcastError:
            failure = {"lost": True}
        sent = [message_json(self._sent.popleft()) for _ in range(len(self._sent))]
        return {"sent": sent, **failure, **self._device(), "subscriptions": self._subscriptions()}

    # -- steps -----------------------------------------------------------------------------------

    def connect(self):
        self.session.connect()

    def disconnect(self):
        self.session.disconnect()

    def receive(self, message):
        self.session.receive(read_message(message, device_service_pb2.AttachResponse))

    def move(self, lon, lat, accuracy_m=0.0, heading_deg=None, speed_mps=None):
        self.session.move(lon, lat, heading_deg, speed_mps, accuracy_m)

    def pass_time(self):
        self.session.pass_time()

    def beat(self):
        self.session.beat()

    def subscribe(self, spec, name=""):
        self.session.subscribe(spec_from(read_message(spec, subscriptions_pb2.SubscriptionSpec)), name)

    def unsubscribe(self, subscription_id):
        self.session.unsubscribe(self.session.subscriptions[subscription_id])

    def set_responsive(self, is_responsive):
        self.session.set_responsive(is_responsive=is_responsive)

    # -- outputs ---------------------------------------------------------------------------------

    def _device(self):
        session = self.session
        found = {
            "now_ms": str(session.clock.now_ms()),
            "is_online": session.is_online,
            "is_caught_up": session.is_caught_up,
            "is_waiting": session.is_waiting,
            "next_expiry_ms": str(session.next_expiry_ms()),
        }
        if session.lag_offset:
            found["lag_offset"] = str(session.lag_offset)
        return {**found, "error": _reason(session.error)} if session.error else found

    def _subscriptions(self):
        """Write the subscriptions; one that has ended is written once more."""
        for one in self.session.subscriptions.values():
            if one not in self._watchers and one.error is None:
                self._watchers[one] = watcher = Watcher()
                watcher._event.set()
                one._watchers.add(watcher)
        written = [self._subscription(one, watcher) for one, watcher in self._watchers.items()]
        self._watchers = {one: each for one, each in self._watchers.items() if one.error is None}
        return sorted(written, key=lambda one: one["id"])

    def _subscription(self, one, watcher):
        changes = []
        if watcher._event.is_set():
            watcher._event.clear()
            changes = watcher.difference([item for _, item in one._found()])
        found = {
            "id": one.id,
            "name": one.name,
            "state": str(one.state),
            "results": [[str(match.object.id), match.score] for match in one.results()],
            "changes": [[str(c.kind), str(c.object.id), c.rank, str(c.reason)] for c in changes],
            "fence_m": double(one.fence_m()),
        }
        return {**found, "error": _reason(one.error)} if one.error else found


class NextFixPlayer(SessionPlayer):
    """The same, of which the output is the time to the next fix, for two speeds."""

    def __call__(self, step):
        super().__call__(step)
        return {
            "at_1_5_mps": double(self.session.next_fix_s(1.5)),
            "at_36_mps": double(self.session.next_fix_s(36.0)),
        }


class OsRegionsPlayer(SessionPlayer):
    """The same, with steps of which the output is the circles of a subscription; others have none."""

    def __call__(self, step):
        if step["op"] != "os_regions":
            super().__call__(step)
            return None
        try:
            return self._regions(**step)
        except RefusedError as error:
            return {"refused": error.field}

    def _regions(self, op, radius_m, limit, subscription_id=1):  # noqa: ARG002
        found = self.session.subscriptions[subscription_id].os_regions(radius_m, limit)
        return {
            "places": [[str(one.object.id), one.radius_m, str(one.until_ms)] for one in found.places],
            "refresh_m": found.refresh.radius_m if found.refresh else None,
            "must_stay_awake": found.must_stay_awake,
        }


def _reason(error):
    return error.reason.name if isinstance(error, RefusedError) else "CLOSED"
