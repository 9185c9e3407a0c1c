"""The lane aside: portions overlap, and what devices are told is as if they had spoken one by one."""

from __future__ import annotations

import asyncio
import itertools
import random

import pytest

from safe_region.frame import Area, Frame
from server.commands import command as c
from server.commands.plan import apply
from server.commands.planner import Planner
from server.core.coordinator import Coordinator
from server.limits import Limits
from server.model import NewObject, TopK
from server.runtime.command_queue import CommandQueue
from server.runtime.report_batcher import ReportBatcher
from server.session import Outbox, Pong, VersionedDelta

FRAME = Frame.of(Area(14.0, 35.0, 15.0, 36.0))
SUSHI = TopK(("sushi",), 3, 0.5)
DEVICES = [f"device-{number}" for number in range(100)]


class Crowd:
    """Devices on one connection, each with a subscription, and what carries their reports out."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.chance = random.Random(5)
        self.coordinator = Coordinator(FRAME, limits or Limits())
        self.waiting = CommandQueue(self.coordinator.limits, self.coordinator.counters)
        self.planner = Planner(self.coordinator)
        self.asides = ReportBatcher(self.coordinator, self.planner, self.waiting, self.take_note)
        self.taken_count = 0
        self.line = Outbox()
        self.place_of = dict.fromkeys(DEVICES, (14.5, 35.5))
        spots = tuple(NewObject(*self.spot(), ("sushi",), 60_000) for _ in range(300))
        self.do(c.Publish(spots))
        for name in DEVICES:
            self.do(c.Hello(self.line, name, b"n", 0, 14.5, 35.5))
            self.do(c.Subscribe(self.line, name, 1, SUSHI, 14.5, 35.5))
        self.heard()

    def do(self, command: c.Command) -> None:
        apply(self.coordinator, self.planner.plan_batch([command]))

    def take_note(self) -> None:
        self.taken_count += 1

    def spot(self) -> tuple[float, float]:
        return self.chance.uniform(14, 15), self.chance.uniform(35, 36)

    def report(self, name: str, sequence: int) -> None:
        self.place_of[name] = self.spot()
        self.waiting.put(c.Report(self.line, name, sequence, *self.place_of[name], (1,)))

    def heard(self) -> list[tuple[str, object]]:
        return self.coordinator.take(self.line, 10_000)

    def check(self) -> None:
        """Every device holds the best for where it has been last."""
        for name, (lon, lat) in self.place_of.items():
            (handle,) = self.coordinator.sessions[name].handles.values()
            held, _ = self.coordinator.matching.engine.buffer(handle)
            ranked = self.coordinator.matching.search(SUSHI, FRAME.project(lon, lat))
            assert {one.item.object_id for one in ranked} <= set(held.tolist())
        self.coordinator.check()


@pytest.fixture
def crowd():
    crowd = Crowd()
    yield crowd
    crowd.asides.close()


def looks_of(crowd: Crowd, monkeypatch: pytest.MonkeyPatch, meanwhile=lambda _: None) -> list[int]:
    """Return a list that is going to have the size of every look; `meanwhile` happens during each."""
    sizes: list[int] = []
    look = crowd.coordinator.matching.look

    def spied(places):
        sizes.append(len(places))
        meanwhile(len(sizes))
        return look(places)

    monkeypatch.setattr(crowd.coordinator.matching, "look", spied)
    return sizes


async def test_a_crowd_that_reports_at_once_is_answered_in_portions(crowd, monkeypatch):
    monkeypatch.setattr("server.runtime.report_batcher._PORTION", 35)
    looks = looks_of(crowd, monkeypatch)
    for name in DEVICES:
        crowd.report(name, 1)
    await crowd.asides.carry_out()
    assert looks == [35, 35, 30]
    assert crowd.taken_count == 3
    answers = crowd.heard()
    assert [(name, one.report_sequence) for name, one in answers] == [(name, 1) for name in DEVICES]
    crowd.check()


async def test_half_of_a_crowd_is_looked_up_first_so_that_the_other_half_can_follow(crowd, monkeypatch):
    looks = looks_of(crowd, monkeypatch)
    for name in DEVICES:
        crowd.report(name, 1)
    await crowd.asides.carry_out()
    assert looks == [50, 50]
    crowd.check()


async def test_few_are_answered_without_another_thread(crowd, monkeypatch):
    looks = looks_of(crowd, monkeypatch)
    for name in DEVICES[:5]:
        crowd.report(name, 1)
    await crowd.asides.carry_out()
    assert looks == []
    assert len(crowd.heard()) == 5
    crowd.check()


async def test_who_speaks_again_during_the_look_is_answered_twice_in_order(crowd, monkeypatch):
    """Each answer says to which report, as if there had been no portions."""
    loop = asyncio.get_running_loop()
    spoken = asyncio.Event()

    def speak_again() -> None:
        for name in [*DEVICES[50:], *DEVICES[:30]]:
            crowd.report(name, 2)
            crowd.waiting.put(c.Ping(crowd.line, name, 7))
        spoken.set()

    def meanwhile(number: int) -> None:
        if number == 1:
            asyncio.run_coroutine_threadsafe(_run(speak_again), loop).result(20.0)

    looks_of(crowd, monkeypatch, meanwhile)
    for name in DEVICES:
        crowd.report(name, 1)
    while crowd.waiting or not spoken.is_set():
        await crowd.asides.carry_out()
    told: dict[str, list[object]] = {name: [] for name in DEVICES}
    for name, event in crowd.heard():
        told[name].append(event)
    for name, events in told.items():
        deltas = [event for event in events if isinstance(event, VersionedDelta)]
        assert [delta.version for delta in deltas] == sorted({delta.version for delta in deltas})
        again = name not in DEVICES[30:50]
        # Those of the second half had not been taken: there the second report took the first one's place.
        expected = [1, 2] if name in DEVICES[:30] else [2] if again else [1]
        assert [delta.report_sequence for delta in deltas] == expected
        assert isinstance(events[-1], Pong) == again, "a ping is answered behind all before it"
    crowd.check()


async def _run(act) -> None:
    act()


async def test_a_crowd_that_never_ceases_lets_others_have_their_turn(monkeypatch):
    """While some are answered, others report: carrying out ends after a batch."""
    crowd = Crowd(Limits(batch_max=200))
    loop = asyncio.get_running_loop()
    groups = itertools.cycle(
        [DEVICES[start : start + 25] for start in range(25, 100, 25)] + [DEVICES[:25]]
    )
    sequences = itertools.count(2)

    def report() -> None:
        sequence = next(sequences)
        for name in next(groups):
            crowd.report(name, sequence)

    looks = looks_of(crowd, monkeypatch, lambda _: loop.call_soon_threadsafe(report))
    for name in DEVICES[:25]:
        crowd.report(name, 1)
    await asyncio.wait_for(crowd.asides.carry_out(), 60.0)
    assert looks == [25] * 8
    assert crowd.coordinator.counters.reports_superseded == 0
    assert crowd.waiting, "somebody has reported meanwhile"
    monkeypatch.undo()
    await crowd.asides.carry_out()
    crowd.check()
    crowd.asides.close()


async def test_in_a_flood_reading_comes_first(crowd, monkeypatch):
    """Where devices report faster than they are answered, no more is carried out than waited."""
    loop = asyncio.get_running_loop()
    sequences = itertools.count(2)

    def flood() -> None:
        sequence = next(sequences)
        for name in DEVICES:
            crowd.report(name, sequence)

    looks = looks_of(crowd, monkeypatch, lambda _: loop.call_soon_threadsafe(flood))
    for name in DEVICES:
        crowd.report(name, 1)
    await asyncio.wait_for(crowd.asides.carry_out(), 60.0)
    assert looks == [50, 50]
    assert len(crowd.waiting) == 100, "of each device its last report"
    assert crowd.coordinator.counters.reports_superseded >= 50
    monkeypatch.undo()
    await crowd.asides.carry_out()
    crowd.check()
