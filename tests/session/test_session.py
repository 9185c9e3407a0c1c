"""The session: its table, its versions, what it keeps for those who are slow or away."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pytest

from nearcast.errors import Reason, RefusedError
from safe_region.earth.frame import Point
from server.counters import Counters, ParkReason
from server.limits import Limits
from server.model import Cause, Delta, Entry, LiveObject, Reach
from server.session import Detached, Outbox, Pong, Session, State, VersionedDelta
from server.session.events import SnapshotDue
from server.session.states import TRANSITIONS, Command

LIMITS = Limits(outbox_max=4, retained_max=6)
NONCE = b"one"


def a_delta(number: int = 0) -> Delta:
    return Delta(1, Cause.PUBLISHED, Point(0.0, 0.0), Reach(float(number), 0), number)


def a_session(state: State, counters: Counters | None = None) -> tuple[Session, Outbox]:
    counters = counters or Counters()
    session = Session("device", LIMITS, counters, parked=state is State.PARKED)
    session.handles = {1: 1}
    outbox = Outbox(counters=counters)
    if state in {State.IN_SYNC, State.CATCHING_UP}:
        session.attach(outbox, NONCE, 0, session.epoch)
    if state is State.CATCHING_UP:
        do(session, Command.OVERFLOW)
    assert session.state is state
    return session, outbox


def an_object(payload: bytes) -> LiveObject:
    return LiveObject(1, 0.0, 0.0, Point(0.0, 0.0), ("a",), 0, 1, payload, "")


def do(session: Session, command: Command) -> None:
    match command:
        case Command.ATTACH:
            session.attach(Outbox(), NONCE, 0, session.epoch)
        case Command.OVERFLOW:
            for number in range(LIMITS.outbox_max + 1):
                session.push(1, a_delta(number))
        case Command.CATCH_UP:
            session.snapshots(lambda _handle, _cause: a_delta())
        case Command.DETACH:
            session.detach()
        case Command.PARK:
            session.park(ParkReason.AWAY)


@pytest.mark.parametrize(("state", "command"), list(itertools.product(State, Command)))
def test_every_entry_of_the_table_and_every_gap(state, command):
    counters = Counters()
    session, _ = a_session(state, counters)
    if (state, command) in TRANSITIONS:
        do(session, command)
        assert session.state is TRANSITIONS[state, command]
        assert session.is_attached == (session.state in {State.IN_SYNC, State.CATCHING_UP})
    else:
        with pytest.raises(ValueError, match=f"{state.value} cannot {command.value}"):
            session.move(command)
        assert session.state is state
    assert {one: count for one, count in counters.devices.items() if count} == {session.state: 1}


def test_nothing_is_kept_for_a_device_that_is_set_aside():
    session, _ = a_session(State.PARKED)
    with pytest.raises(ValueError, match="parked cannot accept a delta"):
        session.push(1, a_delta())


def drained(session: Session, outbox: Outbox) -> list[object]:
    found = []
    while len(outbox):
        item = outbox.pop()
        if isinstance(item.event, SnapshotDue):
            found += session.snapshots(lambda _handle, _cause: a_delta(99))
        elif item.event is not None:
            session.mark_sent(item)
            found.append(item.event)
    return found


def test_versions_count_up_and_arrive_in_order():
    session, outbox = a_session(State.IN_SYNC)
    for number in range(4):
        session.push(1, a_delta(number))
    deltas = drained(session, outbox)
    assert [one.version for one in deltas] == [1, 2, 3, 4]
    assert [one.delta.time_ms for one in deltas] == [0, 1, 2, 3]


@pytest.mark.parametrize("seen", range(5))
def test_a_resume_gets_exactly_the_missed_deltas(seen):
    session, outbox = a_session(State.IN_SYNC)
    for number in range(2):
        session.push(1, a_delta(number))
    drained(session, outbox)
    session.detach()
    for number in range(2, 4):
        session.push(1, a_delta(number))
    again = Outbox()
    assert session.attach(again, NONCE, seen, session.epoch) is True
    session.resume(seen)
    assert [one.version for one in drained(session, again)] == list(range(seen + 1, 5))


def test_an_acknowledged_version_cannot_be_resumed_from_before():
    session, outbox = a_session(State.IN_SYNC)
    for number in range(4):
        session.push(1, a_delta(number))
    drained(session, outbox)
    session.ack(3)
    session.detach()
    assert session.attach(Outbox(), NONCE, 2, session.epoch) is False
    session.detach()
    assert session.attach(Outbox(), NONCE, 4, session.epoch) is True


def test_a_device_that_is_away_too_long_is_to_be_parked():
    session, _ = a_session(State.DETACHED)
    kept = [session.push(1, a_delta(number)) for number in range(7)]
    assert kept == [True] * 6 + [False]
    session.park(ParkReason.AWAY)
    assert session.attach(Outbox(), NONCE, 6, session.epoch) is False, "its differences are gone"


def test_a_version_from_before_a_restart_is_never_undercut():
    session, _ = a_session(State.PARKED)
    outbox = Outbox()
    assert session.attach(outbox, NONCE, 41, session.epoch) is False
    session.push(1, a_delta())
    assert [one.version for one in drained(session, outbox)] == [42]


def test_a_slow_device_gets_the_latest_state_in_the_place_of_the_steps():
    counters = Counters()
    session, outbox = a_session(State.IN_SYNC, counters)
    session.enqueue(Detached(RefusedError(Reason.DRAINING, "x", "y", "z")))  # any event without a version
    for number in range(50):
        assert session.push(1, a_delta(number)) is True
    assert session.state is State.CATCHING_UP
    assert counters.deltas_coalesced == 50
    first, snapshot = drained(session, outbox)
    assert session.state is State.IN_SYNC
    assert isinstance(first, Detached)
    assert isinstance(snapshot, VersionedDelta)
    assert snapshot.delta.time_ms == 99
    assert snapshot.version == session.version > LIMITS.outbox_max
    session.push(1, a_delta(50))
    (after,) = drained(session, outbox)
    assert after.version == snapshot.version + 1
    # Broken right after: who has the snapshot resumes from it, who has not gets another one.
    session.detach()
    assert session.attach(Outbox(), NONCE, snapshot.version, session.epoch) is True
    session.detach()
    assert session.attach(Outbox(), NONCE, snapshot.version - 1, session.epoch) is False


def test_the_same_instance_takes_over():
    session, first = a_session(State.IN_SYNC)
    second = Outbox()
    session.attach(second, NONCE, 0, session.epoch)
    (last,) = drained(session, first)
    assert last.error.reason is Reason.SUPERSEDED
    assert "the latest of its instance" in str(last.error)
    assert session.outbox is second
    assert first.devices == {}
    session.detach()
    session.attach(Outbox(), b"two", 0, session.epoch)


def test_only_the_instance_that_was_attached_last_is_given_differences():
    """Another one's version may come from another life of the server, and would mean something else."""
    session, outbox = a_session(State.IN_SYNC)
    for number in range(3):
        session.push(1, a_delta(number))
    drained(session, outbox)
    session.detach()
    assert session.attach(Outbox(), b"two", 2, session.epoch) is False
    session.detach()
    assert session.attach(Outbox(), NONCE, 3, session.epoch) is False
    session.detach()
    assert session.attach(Outbox(), NONCE, 3, session.epoch) is True


def test_nor_is_a_version_of_another_epoch_of_any_device():
    """A device that is restored from a backup may have had the same version in another life."""
    session, outbox = a_session(State.IN_SYNC)
    session.push(1, a_delta())
    drained(session, outbox)
    session.detach()
    before = session.epoch
    for epoch in (0, before ^ 1):
        assert session.attach(Outbox(), NONCE, 1, epoch) is False
        session.detach()
    assert session.epoch not in {0, before}
    assert session.attach(Outbox(), NONCE, 1, before) is False
    session.detach()
    assert session.attach(Outbox(), NONCE, 1, session.epoch) is True


def test_kept_deltas_are_bounded_in_bytes_too():
    big = a_delta()
    big.add = [Entry(an_object(bytes(1_000)), 0.0)]
    limits = Limits(retained_bytes_max=3 * big.size_bytes, outbox_bytes_max=10 * big.size_bytes)
    session = Session("device", limits)
    session.handles = {1: 1}
    outbox = Outbox()
    session.attach(outbox, NONCE, 0, session.epoch)
    for _ in range(5):
        session.push(1, big)
    drained(session, outbox)
    session.detach()
    assert session.attach(Outbox(), NONCE, 1, session.epoch) is False
    session.detach()
    assert session.attach(Outbox(), NONCE, 5, session.epoch) is True
    session.detach()
    assert [session.push(1, big) for _ in range(4)] == [True, True, True, False]


def test_a_few_large_deltas_coalesce_as_many_small_ones_do():
    big = a_delta()
    big.add = [Entry(an_object(bytes(1_000)), 0.0)]
    limits = Limits(outbox_bytes_max=2 * big.size_bytes)
    session = Session("device", limits)
    session.handles = {1: 1}
    outbox = Outbox()
    session.attach(outbox, NONCE, 0, session.epoch)
    states = []
    for _ in range(3):
        session.push(1, big)
        states.append(session.state)
    assert states == [State.IN_SYNC, State.IN_SYNC, State.CATCHING_UP]
    assert len(drained(session, outbox)) == 1
    for _ in range(2):  # what was taken counts no more
        session.push(1, big)
    assert session.state is State.IN_SYNC


def test_deltas_waiting_in_a_stream_that_a_device_leaves_are_not_sent_on_it():
    """A stream of many devices goes on, and the device may come back on it with another version."""
    counters = Counters()
    session, outbox = a_session(State.IN_SYNC, counters)
    for number in range(3):
        session.push(1, a_delta(number))
    session.detach()
    assert drained(session, outbox) == []
    assert counters.deltas_dropped == 3
    assert session.attach(outbox, NONCE, 0, session.epoch) is True
    session.resume(0)
    assert [one.version for one in drained(session, outbox)] == [1, 2, 3]
    assert counters.deltas_resent == 3
    do(session, Command.OVERFLOW)
    session.detach()
    assert drained(session, outbox) == [], "nor is a snapshot"


def test_every_delta_is_accounted_for():
    now_ms = 0
    counters = Counters()
    outbox = Outbox(counters=counters, clock=lambda: now_ms, late_ms=100)
    session = Session("device", LIMITS, counters)
    session.attach(outbox, NONCE, 0, session.epoch)
    session.push(1, a_delta())
    now_ms = 100
    outbox.pop()
    outbox.wrote()
    assert (counters.deltas_sent, counters.deltas_late) == (1, 0)
    session.push(1, a_delta())
    outbox.pop()
    now_ms = 201  # the stream took so long to accept it
    outbox.wrote()
    assert (counters.deltas_sent, counters.deltas_late) == (2, 1)
    session.push(1, a_delta())
    session.push(1, a_delta())
    outbox.pop()
    outbox.close()
    session.push(1, a_delta())
    assert (counters.deltas_queued, counters.deltas_sent, counters.deltas_dropped) == (5, 2, 3)
    session.detach()
    assert counters.deltas_dropped == 3, "counted once"


def test_when_the_last_snapshot_was_written_is_noted():
    now_ms = 500
    counters = Counters(serving_ms=100)
    outbox = Outbox(counters=counters, clock=lambda: now_ms)
    session = Session("device", LIMITS, counters)
    session.attach(outbox, NONCE, 0, session.epoch)
    assert counters.times() == {"first_hello_ms": 0, "last_snapshot_ms": 0}
    counters.count_hello(100)
    counters.count_hello(300)
    for written_ms, is_snapshot, noted_ms in ((600, True, 500), (700, False, 500), (800, True, 700)):
        now_ms = written_ms
        session.push(1, replace(a_delta(), snapshot=is_snapshot))
        outbox.pop()
        outbox.wrote()
        assert counters.times() == {"first_hello_ms": 1, "last_snapshot_ms": noted_ms}
    assert counters.hellos == 2


def test_responses_are_counted_until_they_are_written():
    session, outbox = a_session(State.IN_SYNC)
    for number in range(3):
        session.enqueue(Pong(number))
        session.push(1, a_delta())
    assert outbox.answers_count == 3
    for _ in range(3):
        outbox.pop()
    assert outbox.answers_count == 3
    outbox.wrote()
    assert outbox.answers_count == 1
    do(session, Command.OVERFLOW)
    drained(session, outbox)
    outbox.wrote()
    assert outbox.answers_count == 0


class Run:
    """A session and its device under random commands; the engine's state is one number, `now`.

    What the device knows must never go back or skip, and in the end be the latest.
    """

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.now = 0
        self.seen_version = 0
        self.epoch = 0
        self.seen = 0
        self.outbox: Outbox | None = None
        self.restart()

    def restart(self) -> None:
        self.outbox = None
        self.session = Session("device", LIMITS, parked=True)
        self.session.handles = {1: 1}

    def snapshot(self, _handle: int = 1, _cause: Cause = Cause.RESUMED) -> Delta:
        delta = a_delta(self.now)
        delta.snapshot = True
        return delta

    def push(self) -> None:
        if self.session.state is not State.PARKED:
            self.now += 1
            if not self.session.push(1, a_delta(self.now)):
                self.session.park(ParkReason.AWAY)

    def attach(self) -> None:
        if self.outbox is None:
            self.outbox = Outbox()
            if self.session.attach(self.outbox, NONCE, self.seen_version, self.epoch):
                self.session.resume(self.seen_version)
            else:
                self.session.push(1, self.snapshot())
            self.epoch = self.session.epoch

    def detach(self) -> None:
        if self.outbox is not None:
            self.outbox = None
            self.session.detach()

    def ack(self) -> None:
        if self.outbox is not None:
            self.session.ack(self.seen_version)

    def receive(self, count: int = 3) -> None:
        while self.outbox is not None and len(self.outbox) and count:
            count -= 1
            item = self.outbox.pop()
            if isinstance(item.event, SnapshotDue):
                for one in self.session.snapshots(self.snapshot):
                    self.apply(one)
            elif isinstance(item.event, VersionedDelta):
                self.session.mark_sent(item)
                self.apply(item.event)

    def apply(self, delta: VersionedDelta) -> None:
        if delta.version > self.seen_version:
            assert delta.delta.snapshot or delta.version == self.seen_version + 1
            self.seen_version = delta.version
            self.seen = delta.delta.time_ms


@pytest.mark.parametrize("seed", range(40))
def test_whatever_happens_the_device_ends_with_the_latest(seed):
    run = Run(seed)
    commands = [run.push] * 6 + [run.receive, run.attach, run.ack] * 2 + [run.detach]
    for step in range(300):
        run.dice.choice(commands)()
        if step % 90 == 89:
            run.restart()
    run.attach()
    run.push()
    run.receive(10_000)
    assert run.seen == run.now > 50
    assert run.seen_version == run.session.version


def test_snapshots_are_made_in_slices_and_later_changes_follow_in_another_round():
    session, sent = Session("device", replace(LIMITS, slice_bytes_max=1)), []
    session.handles = {number: number for number in (1, 2, 3)}
    session.attach(Outbox(), NONCE, 0, session.epoch)
    do(session, Command.OVERFLOW)

    def tell() -> list[int]:
        found = session.snapshots(lambda handle, _cause: a_delta(handle))
        sent.extend(one.version for one in found)
        return [one.subscription_id for one in found]

    assert tell() == [1]
    session.push(1, a_delta())
    session.push(3, a_delta())
    del session.handles[2]
    session.handles[4] = 4
    session.push(4, a_delta())
    assert session.state is State.CATCHING_UP
    assert tell() == [3]
    assert session.state is State.CATCHING_UP
    assert tell() == [1]
    assert tell() == [4]
    assert session.state is State.IN_SYNC
    assert sent == sorted(set(sent))
    session.push(3, a_delta())
    assert session.version == sent[-1] + 1


def test_a_device_whose_subscriptions_change_all_the_time_is_up_to_date_after_three_rounds():
    session = Session("device", replace(LIMITS, slice_bytes_max=1))
    session.handles = {1: 1, 2: 2}
    session.attach(Outbox(), NONCE, 0, session.epoch)
    do(session, Command.OVERFLOW)
    slices = []
    while session.state is State.CATCHING_UP:
        found = session.snapshots(lambda handle, _cause: a_delta(handle))
        slices.append([one.subscription_id for one in found])
        if session.state is State.CATCHING_UP:
            session.push(1, a_delta(1))
            session.push(2, a_delta(2))
    # The last slice has what has changed since the first one of its round.
    assert slices == [[1], [2], [1], [2], [1], [2, 1]]


def test_no_device_resumes_from_the_middle_of_the_snapshots():
    session = Session("device", replace(LIMITS, slice_bytes_max=1))
    session.handles = {1: 1, 2: 2, 3: 3}
    session.attach(Outbox(), NONCE, 0, session.epoch)
    do(session, Command.OVERFLOW)
    (first,) = session.snapshots(lambda handle, _cause: a_delta(handle))
    session.detach()
    assert session.attach(Outbox(), NONCE, first.version, session.epoch) is False
