"""The delivery rule, against a model: random commands to the session table, and devices in plain Python.

A device here is nothing but the rule as docs/protocol.md states it: a version, and for each subscription
the ids that it was told to hold. Instances forget, go back to an older backup, claim versions of another
life, lose what was sent, are sent things twice, read slowly, and take turns; servers crash.
"""

from __future__ import annotations

import copy
import sys
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)

from engine import EngineOptions
from index.catalogue import OBJECT_INDEXES, SUBSCRIPTION_INDEXES
from nearcast.errors import Reason, RefusedError
from safe_region.earth.frame import Area, Frame
from server import command as c
from server.clock import Clock
from server.commands.acceptor import Accepted, Acceptor
from server.commands.plan import slices
from server.commands.planner import Planner
from server.core.coordinator import Coordinator
from server.limits import Limits
from server.model import NewObject, Place, TopK
from server.session import (
    Detached,
    Outbox,
    Pong,
    State,
    Unsubscribed,
    VersionedDelta,
    Welcome,
)
from server.store import SqliteStore
from tests.support.amounts import examples
from tests.support.stored import subscriptions_of

PLANE = Frame(Area(-9.0, -9.0, 9.0, 9.0), 0.0, 0.0, 1.0, 1.0, 26.0)
LEASE_MS = 40
TAKE_OVER_MS, TAKE_OVER_MS_MAX = 10, 25
LIMITS = Limits(
    outbox_max=4,
    retained_max=6,
    slice_bytes_max=1,
    take_over_ms=TAKE_OVER_MS,
    take_over_ms_max=TAKE_OVER_MS_MAX,
)
WORDS = ("a", "b")
DEVICES = ("d1", "d2")

devices = st.sampled_from(DEVICES)
instances = st.sampled_from((0, 1))
numbers = st.integers(1, 2)
places = st.tuples(st.integers(-9, 9), st.integers(-9, 9))


@dataclass
class Memory:
    """What an instance of an app remembers."""

    version: int = 0
    epoch: int = 0
    held: dict[int, set[int]] = field(default_factory=dict)
    given: dict[int, set[int]] = field(default_factory=dict)


class App:
    """One instance of a device's app: the rule of docs/protocol.md, and nothing else."""

    def __init__(self, nonce: bytes) -> None:
        self.nonce = nonce
        self.memory = Memory()
        self.backups = [Memory()]
        self.outbox: Outbox | None = None
        self.sequence = 0
        self.heard: list[VersionedDelta] = []
        self.applied_count = 0
        self.ignored_count = 0
        self.fresh: set[int] | None = None  # subscriptions that must begin with a snapshot

    def receive(self, event: object) -> None:
        match event:
            case Welcome():
                self.memory.epoch = event.epoch
                listed = {one.subscription_id for one in event.subscriptions}
                self.memory.held = {n: ids for n, ids in self.memory.held.items() if n in listed}
                self.fresh = None if event.resumed else set(listed)
                if not event.resumed and not listed:
                    self.memory.version = event.version
            case VersionedDelta():
                self.heard.append(event)
                self.apply(event)
            case Unsubscribed():
                self.memory.held.pop(event.subscription_id, None)
                if self.fresh is not None:
                    self.fresh.discard(event.subscription_id)
            case Detached():
                self.outbox = None
            case Pong():
                pass
            case _:
                raise AssertionError(event)

    def apply(self, event: VersionedDelta) -> None:
        memory, delta, number = self.memory, event.delta, event.subscription_id
        if event.version <= memory.version:
            self.ignored_count += 1
            return
        assert delta.snapshot or event.version == memory.version + 1, "a gap"
        assert delta.snapshot or number not in (self.fresh or ()), "a difference to nothing"
        if self.fresh is not None:
            self.fresh.discard(number)
        self.applied_count += 1
        self.backups.append(copy.deepcopy(memory))
        memory.version = event.version
        held = memory.held.setdefault(number, set())
        given = memory.given.setdefault(number, set())
        if delta.snapshot:
            held.clear()
        added = {entry.item.object_id for entry in delta.add}
        given |= added
        assert delta.drop.keys() <= given, "a change names an object that the device never held"
        held |= added
        held.difference_update(delta.drop)


class DeliveryRule(RuleBasedStateMachine):
    """Everything that can happen to sessions."""

    @initialize()
    def begin(self) -> None:
        self.store = SqliteStore(":memory:", PLANE)
        self.apps = {name: [App(b"one"), App(b"two")] for name in DEVICES}
        self.subscriptions: dict[str, dict[int, TopK]] = {name: {} for name in DEVICES}
        self.expiry_ms: dict[int, int] = {}
        self.lost_count = 0
        self.now_ms = 1_000
        self.start()

    def start(self) -> None:
        options = EngineOptions(1, OBJECT_INDEXES["naive"], lambda: SUBSCRIPTION_INDEXES["naive"](None))
        self.coordinator = Coordinator(
            PLANE, LIMITS, options, clock=Clock(is_virtual=True), lease_ms=LEASE_MS
        )
        self.planner, self.acceptor = Planner(self.coordinator), Acceptor(self.coordinator)
        self.coordinator.recover(self.store.recover())
        self.coordinator.advance(self.now_ms)
        self.last_nonce: dict[str, bytes] = {}
        self.took_over_ms: dict[str, tuple[int, int]] = {}
        """When the instance that is there took over, and how long it cannot be replaced."""
        self.reported: dict[str, int] = {}
        self.missed: dict[str, int | None] = dict.fromkeys(DEVICES)
        # How many deltas a detached device has missed, as long as all of them should be at hand.
        for app in self.everyone():
            app.applied_count = app.ignored_count = 0
        self.lost_count = 0

    def everyone(self) -> list[App]:
        return [app for pair in self.apps.values() for app in pair]

    def carry_out(self, command: c.Command) -> object:
        """Plan, commit and apply one command, or accept it if it needs no disk, as the loop does."""
        coordinator, accepted, reply = self.coordinator, Accepted(), None
        (plan,) = self.planner.plan_batch([command])
        if isinstance(plan, RefusedError):
            raise plan
        mutations = [] if plan is None else plan.mutations
        late = coordinator.take_late(sys.maxsize)
        self.store.commit([*late, *mutations], coordinator.matching.now_ms)
        if plan is None:
            self.acceptor.accept(command, None, accepted)
        else:
            reply = plan.apply(accepted.evaluation)
            if plan.publication is not None:
                for fresh, replaced in slices([plan.publication], 2):
                    coordinator.publish(fresh, replaced)
        self.acceptor.finish(accepted)
        return reply

    def attached(self, name: str) -> App | None:
        return next((app for app in self.apps[name] if app.outbox is not None), None)

    def attached_session(self, name: str) -> App:
        """Return the instance that is attached; if there is none, the first attaches."""
        if self.attached(name) is None:
            self.hello(name, 0, "right")
        app = self.attached(name)
        assert app is not None
        return app

    def state(self, name: str) -> State | None:
        session = self.coordinator.sessions.get(name)
        return None if session is None else session.state

    # -- devices ---------------------------------------------------------------------------------

    @rule(
        name=devices,
        which=instances,
        kind=st.sampled_from(["right", "right", "backup", "future"]),
        back=st.integers(0, 8),
    )
    def greet(self, name: str, which: int, kind: str, back: int) -> None:
        self.hello(name, which, kind, back)

    @rule(name=devices, which=instances)
    def insist(self, name: str, which: int) -> None:
        """Attach, whoever is attached: unless that one has just done so, too."""
        self.hello(name, which, "right", take_over=True)

    def hello(self, name: str, which: int, kind: str, back: int = 0, *, take_over: bool = False) -> None:
        app, other = self.apps[name][which], self.attached(name)
        if kind == "backup":
            app.memory = copy.deepcopy(app.backups[-1 - back % len(app.backups)])
        version = app.memory.version + (100 if kind == "future" else 0)
        outbox = self.outbox()
        place, epoch = Place(0.0, 0.0), app.memory.epoch
        command = c.Hello(outbox, name, app.nonce, version, place, epoch, take_over)
        state = self.state(name)
        is_another = other is not None and other is not app
        if is_another and self.is_refused(command):
            return
        if state is None:  # the server has forgotten that it ever was there
            self.took_over_ms.pop(name, None)
        self.note_take_over(name, app, is_another=is_another)
        if kind == "future":
            app.memory = Memory(version)  # whatever it holds is of another life
        was_at_hand = self.missed[name]
        before = app.outbox
        self.carry_out(command)
        if is_another:
            self.read_to_the_end(other)
        if before is not None:
            before.close()
        app.outbox = outbox
        (_, welcome), *_ = self.coordinator.router.take(outbox, 1)
        assert isinstance(welcome, Welcome)
        if self.last_nonce.get(name) != app.nonce or state in {None, State.PARKED}:
            assert not welcome.resumed
            self.reported[name] = 0
        if state is State.PARKED:
            self.reported[name] = self.coordinator.sessions[name].report_sequence
        is_right = kind == "right" and self.last_nonce.get(name) == app.nonce
        if is_right and state is State.DETACHED and was_at_hand is not None:
            assert welcome.resumed, "all that it missed is kept"
        self.last_nonce[name] = app.nonce
        self.missed[name] = None
        app.receive(welcome)

    def is_refused(self, hello: c.Hello) -> bool:
        """Let another instance say hello, if it cannot take the place of the one there is."""
        name, state = hello.device_id, self.state(hello.device_id)
        left_ms = sum(self.took_over_ms.get(name, (0, 0))) - self.now_ms
        if hello.take_over and left_ms <= 0:
            return False
        with pytest.raises(RefusedError) as refused:
            self.carry_out(hello)
        assert refused.value.reason is Reason.DEVICE_IN_USE
        assert self.state(name) is state
        if hello.take_over:
            assert refused.value.retry_after_ms == left_ms
        return True

    def note_take_over(self, name: str, app: App, *, is_another: bool) -> None:
        """Note when this instance took the place of another one, if it is a new one and did."""
        if is_another:
            since_ms, hold_ms = self.took_over_ms.get(name, (0, 0))
            again = hold_ms and self.now_ms - since_ms < 2 * hold_ms
            longer_ms = min(2 * hold_ms, TAKE_OVER_MS_MAX)
            self.took_over_ms[name] = (self.now_ms, longer_ms if again else TAKE_OVER_MS)
        elif self.last_nonce.get(name) != app.nonce:
            self.took_over_ms.pop(name, None)

    @rule(name=devices, number=numbers, word=st.sampled_from(WORDS), place=places)
    def subscribe(self, name: str, number: int, word: str, place: tuple[int, int]) -> None:
        app = self.attached_session(name)
        spec = TopK((word,), 4, 0.5)
        self.subscriptions[name][number] = spec
        self.enqueue(c.Subscribe(self.line(app), name, number, spec, Place(*map(float, place))))

    @rule(name=devices, number=numbers)
    def unsubscribe(self, name: str, number: int) -> None:
        app = self.attached_session(name)
        if self.subscriptions[name].pop(number, None) is not None:
            self.enqueue(c.Unsubscribe(self.line(app), name, number))

    @rule(name=devices, place=places, kind=st.sampled_from(["next", "next", "repeated", "late"]))
    def report(self, name: str, place: tuple[int, int], kind: str) -> None:
        app = self.attached_session(name)
        last = self.reported.get(name, 0)
        if kind == "next":
            app.sequence += 1
            sequence = app.sequence
        else:
            sequence = last if kind == "repeated" else last - 1
        if sequence < 1:
            return
        numbers = tuple(self.subscriptions[name])
        counters = self.coordinator.counters
        before = (counters.deltas_queued, counters.reports_repeated)
        session = self.coordinator.sessions[name]
        here = Place(*map(float, place))
        self.enqueue(c.Report(self.line(app), name, session, sequence, here, numbers))
        after = (counters.deltas_queued, counters.reports_repeated)
        if sequence <= last:
            assert after == (before[0], before[1] + 1), "it changes nothing"
        else:
            assert after == (before[0] + len(numbers), before[1])
            self.reported[name] = sequence

    @rule(name=devices, how=st.sampled_from(["ack", "ping"]))
    def acknowledge(self, name: str, how: str) -> None:
        app = self.attached_session(name)
        line, version = self.line(app), app.memory.version
        self.enqueue(c.Ack(line, name, version) if how == "ack" else c.Ping(line, name, 1, version))

    @rule(name=devices)
    def leave(self, name: str) -> None:
        """Half-close: what is queued may still be read, or not."""
        app = self.attached(name)
        if app is not None:
            self.note_departure(name, app)
            self.carry_out(c.Detach(self.line(app), name))
            app.outbox = None

    @rule(name=devices)
    def cut(self, name: str) -> None:
        app = self.attached(name)
        if app is not None:
            self.note_departure(name, app)
            self.line(app).close()
            self.carry_out(c.Detach(self.line(app), name))
            app.outbox = None

    @rule(name=devices, count=st.integers(1, 9))
    def read(self, name: str, count: int) -> None:
        app = self.attached(name)
        if app is None:
            return
        outbox = self.line(app)
        for _, event in self.coordinator.router.take(outbox, count):
            app.receive(event)
        outbox.wrote()

    @rule(name=devices, count=st.integers(1, 4), heard=st.integers(0, 2))
    def lose_what_was_written(self, name: str, count: int, heard: int) -> None:
        """The network takes it and breaks: the server has sent it, and only the first is heard."""
        app = self.attached(name)
        if app is None:
            return
        outbox = self.line(app)
        events = [event for _, event in self.coordinator.router.take(outbox, count)]
        outbox.wrote()
        for event in events[:heard]:
            app.receive(event)
        self.lost_count += sum(isinstance(event, VersionedDelta) for event in events[heard:])
        app.outbox = None
        self.missed[name] = None
        outbox.close()
        if name in self.coordinator.sessions:
            self.carry_out(c.Detach(outbox, name))

    @rule(name=devices)
    def forget(self, name: str) -> None:
        """Somebody deletes it: nothing of it is left, and it is sent the reason and no delta."""
        app, known = self.attached(name), self.state(name) is not None
        deleted = self.coordinator.counters.devices_deleted
        assert self.carry_out(c.ForgetDevice(name)) == len(self.subscriptions[name])
        assert self.coordinator.counters.devices_deleted == deleted + known
        assert self.state(name) is None
        assert name not in {row.device_id for row in subscriptions_of(self.store.recover())}
        self.subscriptions[name] = {}
        self.missed[name] = None
        self.reported[name] = 0
        if app is None:
            return
        outbox = self.line(app)
        events = [event for _, event in self.coordinator.router.take(outbox, 1_000)]
        outbox.wrote()
        assert isinstance(events[-1], Detached)
        assert events[-1].error.reason is Reason.FORGOTTEN
        for event in events:
            assert not isinstance(event, VersionedDelta)
            app.receive(event)

    # -- what seldom comes together by chance ----------------------------------------------------

    @rule(name=devices, place=places)
    def overflow(self, name: str, place: tuple[int, int]) -> None:
        """It asks and asks and does not read."""
        self.subscribe(name, 1, "a", place)
        for _ in range(LIMITS.outbox_max + 1):
            self.report(name, place, "next")

    @rule(name=devices, number=numbers, word=st.sampled_from(WORDS), place=places)
    def change_its_mind(self, name: str, number: int, word: str, place: tuple[int, int]) -> None:
        """One subscription ends, and another one begins under its number."""
        self.unsubscribe(name, number)
        self.subscribe(name, number, word, place)

    @rule(name=devices, count=st.integers(1, 9), place=places)
    def miss(self, name: str, count: int, place: tuple[int, int]) -> None:
        """It is away while something happens near it."""
        for number in (1, 2):
            self.subscribe(name, number, "a", place)
        self.leave(name)
        self.publish([place] * count, "a", 30)

    @rule(name=devices, back=st.integers(0, 8), place=places)
    def go_back(self, name: str, back: int, place: tuple[int, int]) -> None:
        """It has acknowledged, and is restored from a backup of before."""
        app = self.attached_session(name)
        self.subscribe(name, 1, "a", place)
        self.report(name, place, "next")
        self.read(name, 9)
        if app.outbox is not None:
            self.acknowledge(name, "ack")
            self.leave(name)
            self.hello(name, self.apps[name].index(app), "backup", back)

    @rule(name=devices, which=instances, index=st.integers(0, 1_000))
    def duplicate(self, name: str, which: int, index: int) -> None:
        """What was delivered once is delivered again: nothing changes."""
        app = self.apps[name][which]
        old = [one for one in app.heard if one.version <= app.memory.version]
        if old:
            before = copy.deepcopy(app.memory)
            app.apply(old[index % len(old)])
            app.ignored_count -= 1
            assert app.memory == before

    # -- objects, time, crashes ------------------------------------------------------------------

    @rule(
        at=st.lists(places, min_size=1, max_size=8),
        word=st.sampled_from(WORDS),
        ttl_ms=st.sampled_from([3, 30, 300]),
    )
    def publish(self, at: list[tuple[int, int]], word: str, ttl_ms: int) -> None:
        for place in at:
            self.publish_one(place, word, ttl_ms)

    def publish_one(self, place: tuple[int, int], word: str, ttl_ms: int) -> None:
        new = NewObject(float(place[0]), float(place[1]), (word,), ttl_ms)
        before = self.versions()
        (object_id,) = self.carry_out(c.Publish((new,)))
        self.expiry_ms[object_id] = self.now_ms + ttl_ms
        self.count_missed(before)

    @rule(index=st.integers(0, 1_000))
    def retract(self, index: int) -> None:
        alive = sorted(self.coordinator.matching.objects)
        if alive:
            object_id = alive[index % len(alive)]
            holders = {
                (name, number)
                for name, session in self.coordinator.sessions.items()
                for number, handle in session.handles.items()
                if object_id in self.buffer(handle)
            }
            before, queued = self.versions(), self.coordinator.counters.deltas_queued
            self.carry_out(c.Retract((object_id,)))
            sent = {name for name, version in self.versions().items() if version != before.get(name)}
            assert sent <= {name for name, _ in holders}, (
                "a change names an object that the device does not hold"
            )
            assert self.coordinator.counters.deltas_queued - queued <= len(holders)
            self.count_missed(before)

    @rule(by_ms=st.sampled_from([1, 5, 25]))
    def advance(self, by_ms: int) -> None:
        """Objects expire without a word; devices that have said nothing for a lease are set aside."""
        self.now_ms += by_ms
        expected = {
            name
            for name, session in self.coordinator.sessions.items()
            if session.is_attached and self.now_ms - session.last_seen_ms >= LEASE_MS
        }
        before = {name: self.attached(name) for name in DEVICES}
        self.carry_out(c.AdvanceClock(self.now_ms))
        for name in expected:
            assert self.state(name) in {None, State.PARKED}
            app = before[name]
            assert app is not None
            self.read_to_the_end(app)

    @rule(is_time=st.integers(0, 7))
    def crash(self, is_time: int) -> None:
        if is_time:
            return
        for app in self.everyone():
            app.outbox = None
        self.start()

    # -- what must hold --------------------------------------------------------------------------

    @invariant()
    def the_server_agrees_with_itself(self) -> None:
        self.coordinator.check()

    @invariant()
    def every_delta_is_accounted_for(self) -> None:
        counters = self.coordinator.counters
        waiting = sum(app.outbox.delta_count for app in self.everyone() if app.outbox is not None)
        gone = counters.deltas_sent + counters.deltas_coalesced + counters.deltas_dropped
        assert counters.deltas_queued == gone + waiting
        heard = sum(app.applied_count + app.ignored_count for app in self.everyone())
        assert counters.deltas_sent == heard + self.lost_count

    @invariant()
    def who_has_read_everything_holds_what_the_server_says(self) -> None:
        for name in DEVICES:
            app = self.attached(name)
            if app is None or len(self.line(app)):
                continue
            session = self.coordinator.sessions[name]
            assert session.state is State.IN_SYNC
            if session.handles:  # without, the next delta is a first one, and may jump
                assert app.memory.version == session.version
            assert not app.fresh, "every subscription has its snapshot"
            assert session.handles.keys() == self.subscriptions[name].keys()
            for number, handle in session.handles.items():
                held = {one for one in app.memory.held[number] if self.expiry_ms[one] > self.now_ms}
                assert held == self.buffer(handle)

    @invariant()
    def what_is_kept_is_bounded(self) -> None:
        for session in self.coordinator.sessions.values():
            if session.outbox is not None:
                assert session.outbox.delta_count <= LIMITS.outbox_max * len(session.outbox.devices)
            assert session.kept_count <= LIMITS.retained_max
            assert session.state is not State.PARKED or session.kept_count == 0

    def read_to_the_end(self, app: App) -> None:
        """Let an instance read all there is; it is told that it is not attached any more."""
        outbox = self.line(app)
        for _, event in self.coordinator.router.take(outbox, 1_000):
            app.receive(event)
        outbox.wrote()
        assert app.outbox is None, "it is notified"

    # -- help ------------------------------------------------------------------------------------

    def outbox(self) -> Outbox:
        return Outbox(counters=self.coordinator.counters)

    def line(self, app: App) -> Outbox:
        assert app.outbox is not None
        return app.outbox

    def enqueue(self, command: c.DeviceCommand) -> None:
        self.coordinator.renew_lease(command.outbox, command.device_id)
        self.carry_out(command)

    def buffer(self, handle: int) -> set[int]:
        return set(self.coordinator.matching.engine.held(handle)[0].tolist())

    def versions(self) -> dict[str, int]:
        return {name: session.version for name, session in self.coordinator.sessions.items()}

    def note_departure(self, name: str, app: App) -> None:
        """Note that all will be at hand for this instance, if it has read everything."""
        is_up_to_date = not len(app.outbox) and self.state(name) is State.IN_SYNC
        self.missed[name] = 0 if is_up_to_date else None

    def count_missed(self, before: dict[str, int]) -> None:
        for name, version in self.versions().items():
            missed = self.missed[name]
            if missed is not None:
                missed += version - before.get(name, version)
                self.missed[name] = missed if missed <= LIMITS.retained_max else None


TestDeliveryRule = DeliveryRule.TestCase
TestDeliveryRule.settings = settings(
    max_examples=examples(30),
    stateful_step_count=60,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def test_a_subscription_that_ends_before_its_snapshot_leaves_no_gap() -> None:
    life = DeliveryRule()
    life.begin()
    life.miss(count=1, name="d1", place=(0, 0))
    life.change_its_mind(name="d1", number=1, place=(0, 0), word="a")
    life.read(count=1, name="d1")
    assert life.coordinator.sessions["d1"].state is State.CATCHING_UP

    life.unsubscribe(name="d1", number=1)
    life.read(count=2, name="d1")
    life.publish([(0, 0)], "a", 30)
    life.read(count=9, name="d1")

    life.who_has_read_everything_holds_what_the_server_says()
    life.the_server_agrees_with_itself()
