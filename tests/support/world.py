"""A whole nearcast in one process without sockets: switchboard, store, wire messages, devices, oracle.

Devices are the SDK's own conversations; their messages pass through the server's own converters and
through protobuf bytes, so everything but grpc itself is the real thing. Positions are small integers on
a plane of one metre per degree, so that distances tie often.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass

from engine import CostModel, EngineOptions
from index.catalogue import OBJECT_INDEXES, SUBSCRIPTION_INDEXES
from nearcast.model import SubscriptionState, TopK
from nearcast.protocol.clock import Clock
from nearcast.protocol.device_session import DeviceSession
from nearcast.protocol.location import Location
from nearcast.subscription import Subscription
from nearcast.v1 import device_service_pb2
from safe_region import oracle
from safe_region.anchored import RegionMode
from safe_region.frame import Area, Frame
from safe_region.scoring import Similarity
from server.commands import command as c
from server.commands.plan import Plan, apply
from server.commands.planner import Planner
from server.core.coordinator import Coordinator
from server.errors import RefusalError
from server.limits import Limits
from server.model import NewObject
from server.session import Outbox
from server.store import SqliteStore
from server.transport.converters import device_command_from
from server.transport.event_encoder import EventEncoder

SIDE = 12
PLANE = Frame(Area(-SIDE, -SIDE, SIDE, SIDE), 0.0, 0.0, 1.0, 1.0, 34.0)
WORDS = tuple("abcdefgh")
EPOCH_MS = 1_000
ROUNDS_MAX = 1_000


@dataclass
class Stream:
    """One device's stream: what it sent and the server has not read yet, and the server's outbox."""

    outbox: Outbox
    sent: deque[bytes]


class Device:
    """A conversation and the stream it is on, if any."""

    def __init__(self, world: World, device_id: str, nonce: bytes) -> None:
        self.world = world
        self.lon, self.lat = world.position()
        # Who is private or has poor fixes has no subscription in the mode ELLIPSE, and remains so.
        number = int(device_id.rpartition("-")[2])
        self.privacy_radius_m = (0.0, 0.7, 0.0, 3.0, 0.0)[(world.seed + number) % 5]
        self.is_vague = self.privacy_radius_m > 0.0 or (world.seed + number) % 5 == 4
        self.stream: Stream | None = None
        self.given: dict[int, set[int]] = {}  # subscription -> objects it was ever given
        self.session = DeviceSession(
            device_id,
            nonce,
            "",
            world.clock,
            self._send,
            Location(self.lon, self.lat, 0.0, self.privacy_radius_m, world.random),
            world.random.choice((0.0, 0.0, 0.5, 2.0)),
        )

    def _send(self, request: device_service_pb2.AttachRequest) -> None:
        if self.stream is not None:
            self.stream.sent.append(request.SerializeToString())

    def hear(self, response: device_service_pb2.AttachResponse) -> None:
        """Check that nothing is said of objects that this instance was never given."""
        delta = response.delta
        given = self.given.setdefault(delta.subscription_id, set())
        given |= {entry.object.id for entry in delta.add}
        assert {drop.object_id for drop in delta.drop} <= given

    def open(self) -> None:
        self.stream = Stream(Outbox(), deque())
        self.session.connect()

    def cut(self) -> None:
        """Break the stream: what was on its way, either way, is lost."""
        if self.stream is None:
            return
        outbox = self.stream.outbox
        self.stream = None
        self.session.disconnect()
        outbox.close()
        self.world.carry_out(c.Detach(outbox, self.session.device_id))


class World:
    """Everything, driven step by step from one seed."""

    def __init__(
        self,
        seed: int,
        limits: Limits | None = None,
        buffer_extra: int | None = 2,
        *,
        is_line: bool = False,
    ) -> None:
        self.seed = seed
        # In some runs devices are given up that have not been heard of for as long as time leaps.
        self.lease_ms = 9 if seed % 3 == 1 else 0
        self.random = random.Random(seed)
        self.is_line = is_line  # everything on one line, two words: sums of distances tie as well
        self.limits = limits or Limits()
        # Every run has another pair of indexes.
        subscription_index = SUBSCRIPTION_INDEXES[
            sorted(SUBSCRIPTION_INDEXES)[seed % len(SUBSCRIPTION_INDEXES)]
        ]
        object_index = OBJECT_INDEXES[sorted(OBJECT_INDEXES)[seed // 7 % len(OBJECT_INDEXES)]]
        square = None if seed % 2 else (0.0, 0.0, float(SIDE))
        costs = CostModel(extra_max=6, speed_mps=1.0)
        # In some runs margins cannot be covered.
        margin_extra_max = 4 if seed % 4 == 1 else 200
        self.options = EngineOptions(
            buffer_extra, object_index, lambda: subscription_index(square), costs, margin_extra_max
        )
        self.store = SqliteStore(":memory:", PLANE)
        self.clock = Clock()
        self.clock.adjust(EPOCH_MS, is_virtual=True)
        self.objects: dict[int, oracle.OracleObject] = {}
        self.keys: dict[str, int] = {}
        self.devices: dict[str, Device] = {}
        self.vague_count = 0
        self.start()

    # -- the server ------------------------------------------------------------------------------

    def start(self) -> None:
        """Start a server on the store, as after a crash."""
        self.coordinator = Coordinator(
            PLANE, self.limits, self.options, virtual_time=True, lease_ms=self.lease_ms
        )
        self.planner = Planner(self.coordinator)
        self.coordinator.recover(self.store.recover())
        self.coordinator.advance(max(self.coordinator.matching.now_ms, self.clock.now_ms()))
        self.writer = EventEncoder(PLANE, self.limits, virtual_time=True, lease_ms=self.lease_ms)

    def restart(self) -> None:
        """Crash and come back with what the store has."""
        for device in self.devices.values():
            device.stream = None
            device.session.disconnect()
        self.start()

    def carry_out(self, command: c.Command) -> object:
        """Plan, commit, apply, as the pump does."""
        (plan,) = self.planner.plan_batch([command])
        if isinstance(plan, RefusalError):
            raise plan
        assert isinstance(plan, Plan)
        self.store.commit([*self.coordinator.late_rows, *plan.rows], self.coordinator.matching.now_ms)
        self.coordinator.late_rows.clear()
        return apply(self.coordinator, [plan])[0]

    def deliver(self, *, part: bool = False) -> None:
        """Carry messages both ways until none is left, or, in part, only some."""
        busy = True
        rounds = 0
        while busy:
            rounds += 1
            assert rounds < ROUNDS_MAX, "devices and server do not fall silent"
            busy = False
            for device in list(self.devices.values()):
                if part and self.random.random() < 0.5:
                    continue
                busy = self._deliver_to(device) or busy
            if part:
                return

    def _deliver_to(self, device: Device) -> bool:
        stream = device.stream
        if stream is None:
            return False
        busy = False
        while stream.sent:
            busy = True
            request = device_service_pb2.AttachRequest.FromString(stream.sent.popleft())
            self._receive(stream.outbox, device.session.device_id, request)
        for _, event in self.coordinator.take(stream.outbox, 3):
            busy = True
            data = self.writer.response(event)
            response = device_service_pb2.AttachResponse.FromString(data)
            device.hear(response)
            device.session.receive(response)
        return busy or bool(stream.sent) or bool(len(stream.outbox))

    def _receive(
        self,
        outbox: Outbox,
        device_id: str,
        request: device_service_pb2.AttachRequest,
    ) -> None:
        self.coordinator.heard(outbox, device_id)
        command = device_command_from(outbox, device_id, request)
        try:
            self.carry_out(command)
        except RefusalError as error:
            self.coordinator.reject(command, error)

    # -- what can happen -------------------------------------------------------------------------

    def position(self) -> tuple[float, float]:
        lat = 0 if self.is_line else self.random.randint(-SIDE, SIDE)
        return float(self.random.randint(-SIDE, SIDE)), float(lat)

    def words(self, count_max: int) -> tuple[str, ...]:
        words = WORDS[:2] if self.is_line else WORDS
        count = self.random.randint(1, min(count_max, len(words)))
        return tuple(sorted(self.random.sample(words, count)))

    def publish(self, key: str = "") -> None:
        count = 1 if key else self.random.choice((1, 1, 1, 5))
        new = [self._new_object(key) for _ in range(count)]
        now_ms = self.coordinator.matching.now_ms
        ids = self.carry_out(c.Publish(tuple(new)))
        assert isinstance(ids, list)
        for object_id, one in zip(ids, new, strict=True):
            if key and key in self.keys:
                self.objects.pop(self.keys[key], None)
            if key:
                self.keys[key] = object_id
            self.objects[object_id] = oracle.OracleObject(
                object_id,
                one.lon,
                one.lat,
                frozenset(one.keywords),
                now_ms,
                now_ms + one.ttl_ms,
            )

    def _new_object(self, key: str) -> NewObject:
        lon, lat = self.position()
        ttl_ms = self.random.choice((2, 5, 20, 1000))
        payload = self.random.randbytes(4)
        return NewObject(lon, lat, self.words(4), ttl_ms, payload, key)

    def retract(self) -> None:
        alive = sorted(self.coordinator.matching.objects)
        if alive:
            object_id = self.random.choice(alive)
            self.carry_out(c.Retract((object_id,)))
            del self.objects[object_id]

    def advance(self) -> None:
        now_ms = self.coordinator.matching.now_ms + self.random.choice((0, 1, 1, 3, 10))
        self.carry_out(c.AdvanceClock(now_ms))
        self.clock.observe(now_ms)
        self.objects = {key: one for key, one in self.objects.items() if oracle.is_alive(one, now_ms)}
        for device in self.devices.values():
            device.session.pass_time()

    def subscribe(self, device: Device) -> None:
        spec = TopK(
            frozenset(self.words(4)),
            self.random.choice((1, 2, 3, self.random.randint(1, 20))),
            self.random.choice((0.001, 0.5, 0.5, 0.999, self.random.uniform(0.001, 0.999))),
            self.random.choice(list(Similarity)),
            RegionMode.ANCHORED if device.is_vague else self.random.choice(list(RegionMode)),
        )
        device.session.subscribe(spec)

    def unsubscribe(self, device: Device) -> None:
        if device.session.subscriptions:
            number = self.random.choice(sorted(device.session.subscriptions))
            device.session.unsubscribe(device.session.subscriptions[number])

    def move(self, device: Device) -> None:
        if self.random.random() < 0.2:
            device.lon, device.lat = self.position()
        else:
            device.lon += self.random.randint(-1, 1)
            device.lat += 0 if self.is_line else self.random.randint(-1, 1)
        accuracy_m = self.random.choice((0.0, 0.5, 2.0)) if device.is_vague else 0.0
        heading_deg = self.random.choice((None, 0.0, 90.0, self.random.uniform(-360.0, 360.0)))
        speed_mps = self.random.choice((None, 0.0, 1.0, 50.0))
        device.session.move(device.lon, device.lat, heading_deg, speed_mps, accuracy_m=accuracy_m)

    def reinstall(self, device: Device) -> None:
        """Throw a device's memory away: a new instance of the app attaches under the same name."""
        device.cut()
        device_id = device.session.device_id
        self.devices[device_id] = Device(self, device_id, self.random.randbytes(8))
        self.devices[device_id].open()

    # -- what must hold --------------------------------------------------------------------------

    def audit(self) -> int:
        """Compare every list of every online device with the oracle; return how many."""
        self.deliver()
        count = 0
        for device in self.devices.values():
            if device.stream is None:
                continue
            for subscription in device.session.subscriptions.values():
                self.compare(device, subscription)
                count += 1
        return count

    def compare(self, device: Device, subscription: Subscription) -> None:
        spec = subscription.spec
        expected = oracle.top_k(
            oracle.OracleSubscription(
                frozenset(spec.keywords), spec.k, spec.alpha, spec.similarity.name.lower()
            ),
            device.lon,
            device.lat,
            PLANE.maxdist_m,
            self.objects.values(),
            self.coordinator.matching.now_ms,
        )
        if device.is_vague and subscription.state is SubscriptionState.TOO_VAGUE:
            self.vague_count += 1
            return
        assert subscription.state is SubscriptionState.EXACT
        found = subscription.results()
        assert [match.object.id for match in found] == [match.object_id for match in expected]
        lengths = [spec.alpha * match.length_m / PLANE.maxdist_m for match in expected]
        for match, score in zip(found, lengths, strict=True):
            assert abs(match.score - score) <= 1e-9 * max(1.0, score)
