"""The session: its table, its versions, what it keeps for those who are slow or away."""

from __future__ import annotations

import itertools
import random

import pytest

from safe_region.frame import Point
from server.errors import Reason, RefusalError
from server.limits import Limits
from server.model import Cause, Delta, Reach
from server.session import Connection, Detached, Session, State, VersionedDelta
from server.session.events import SnapshotDue
from server.session.session import TRANSITIONS, Command

LIMITS = Limits(outbox_max=4, retained_max=6)
NONCE = b"one"


def a_delta(number: int = 0) -> Delta:
    return Delta(1, Cause.PUBLISHED, Point(0.0, 0.0), Reach(float(number), 0), number)


def a_session(state: State) -> tuple[Session, Connection]:
    session = Session("device", LIMITS, parked=state is State.PARKED)
    session.handles = {1: 1}
    connection = Connection()
    if state is State.ATTACHED:
        session.attach(connection, NONCE, 0)
    return session, connection


def do(session: Session, command: Command) -> None:
    match command:
        case Command.ATTACH:
            session.attach(Connection(), NONCE, 0)
        case Command.DETACH:
            session.detach()
        case Command.PARK:
            session.park()


@pytest.mark.parametrize(("state", "command"), list(itertools.product(State, Command)))
def test_every_entry_of_the_table_and_every_gap(state, command):
    session, _ = a_session(state)
    if (state, command) in TRANSITIONS:
        do(session, command)
        assert session.state is TRANSITIONS[state, command]
        assert (session.connection is not None) == (session.state is State.ATTACHED)
    else:
        with pytest.raises(ValueError, match=f"{state.value} cannot {command.value}"):
            do(session, command)
        assert session.state is state


def drained(session: Session, connection: Connection) -> list[object]:
    found = []
    while len(connection):
        item = connection.pop()
        if isinstance(item.event, SnapshotDue):
            found += session.snapshots(lambda _handle, _cause: a_delta(99))
        elif item.event is not None:
            session.sent(item)
            found.append(item.event)
    return found


def test_versions_count_up_and_arrive_in_order():
    session, connection = a_session(State.ATTACHED)
    for number in range(4):
        session.push(1, a_delta(number))
    deltas = drained(session, connection)
    assert [one.version for one in deltas] == [1, 2, 3, 4]
    assert [one.delta.time_ms for one in deltas] == [0, 1, 2, 3]


@pytest.mark.parametrize("seen", range(5))
def test_a_resume_gets_exactly_what_it_missed(seen):
    session, connection = a_session(State.ATTACHED)
    for number in range(2):
        session.push(1, a_delta(number))
    drained(session, connection)
    session.detach()
    for number in range(2, 4):
        session.push(1, a_delta(number))
    again = Connection()
    assert session.attach(again, NONCE, seen) is True
    session.resume(seen)
    assert [one.version for one in drained(session, again)] == list(range(seen + 1, 5))


def test_what_is_acknowledged_cannot_be_resumed_from_before():
    session, connection = a_session(State.ATTACHED)
    for number in range(4):
        session.push(1, a_delta(number))
    drained(session, connection)
    session.ack(3)
    session.detach()
    assert session.attach(Connection(), NONCE, 2) is False
    session.detach()
    assert session.attach(Connection(), NONCE, 4) is True


def test_a_device_that_is_away_too_long_is_to_be_parked():
    session, _ = a_session(State.DETACHED)
    kept = [session.push(1, a_delta(number)) for number in range(7)]
    assert kept == [True] * 6 + [False]
    session.park()
    assert session.attach(Connection(), NONCE, 6) is False, "its differences are gone"


def test_a_version_from_before_a_restart_is_never_undercut():
    session, _ = a_session(State.PARKED)
    connection = Connection()
    assert session.attach(connection, NONCE, 41) is False
    session.push(1, a_delta())
    assert [one.version for one in drained(session, connection)] == [42]


def test_a_slow_device_gets_the_latest_state_in_the_place_of_the_steps():
    session, connection = a_session(State.ATTACHED)
    session.say(Detached(RefusalError(Reason.DRAINING, "x", "y", "z")))  # any event without a version
    for number in range(50):
        assert session.push(1, a_delta(number)) is True
    assert session.coalesced_count == LIMITS.outbox_max + 1
    first, snapshot = drained(session, connection)
    assert isinstance(first, Detached)
    assert isinstance(snapshot, VersionedDelta)
    assert snapshot.delta.time_ms == 99
    assert snapshot.version == session.version > LIMITS.outbox_max
    session.push(1, a_delta(50))
    (after,) = drained(session, connection)
    assert after.version == snapshot.version + 1
    # Broken right after: who has the snapshot resumes from it, who has not gets another one.
    session.detach()
    assert session.attach(Connection(), NONCE, snapshot.version) is True
    session.detach()
    assert session.attach(Connection(), NONCE, snapshot.version - 1) is False


def test_the_same_instance_takes_over_and_another_is_refused():
    session, first = a_session(State.ATTACHED)
    with pytest.raises(RefusalError, match="instance_nonce") as refused:
        session.attach(Connection(), b"two", 0)
    assert refused.value.reason is Reason.DEVICE_IN_USE
    assert session.connection is first
    second = Connection()
    session.attach(second, NONCE, 0)
    (last,) = drained(session, first)
    assert last.error.reason is Reason.SUPERSEDED
    assert session.connection is second
    assert first.devices == {}
    session.detach()
    session.attach(Connection(), b"two", 0)


class Run:
    """A session and its device under random commands; the engine's state is one number, `now`.

    What the device knows must never go back or skip, and in the end be the latest.
    """

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.now = 0
        self.seen_version = 0
        self.seen = 0
        self.connection: Connection | None = None
        self.restart()

    def restart(self) -> None:
        self.connection = None
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
                self.session.park()

    def attach(self) -> None:
        if self.connection is None:
            self.connection = Connection()
            if self.session.attach(self.connection, NONCE, self.seen_version):
                self.session.resume(self.seen_version)
            else:
                self.session.push(1, self.snapshot())

    def detach(self) -> None:
        if self.connection is not None:
            self.connection = None
            self.session.detach()

    def ack(self) -> None:
        if self.connection is not None:
            self.session.ack(self.seen_version)

    def receive(self, count: int = 3) -> None:
        while self.connection is not None and len(self.connection) and count:
            count -= 1
            item = self.connection.pop()
            if isinstance(item.event, SnapshotDue):
                for one in self.session.snapshots(self.snapshot):
                    self.apply(one)
            elif isinstance(item.event, VersionedDelta):
                self.session.sent(item)
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
