"""What needs no disk: chunks overlap, and what devices are told is as if they had spoken one by one."""

from __future__ import annotations

import asyncio
import itertools
import random

import pytest

from engine import Engine
from engine.top_k.matcher import TopKMatcher
from engine.top_k.pending import Pending
from safe_region.earth.frame import Area, Frame
from server import command as c
from server.commands.acceptor import Accepted
from server.core.coordinator import Coordinator
from server.core.evaluation_batch import EvaluationBatch
from server.core.location_requests import LocationRequests
from server.core.matching_service import SearchRequest
from server.counters import ParkReason
from server.limits import Limits
from server.model import LiveObject, Place, TopK
from server.runtime.batcher import Batcher
from server.runtime.command_queue import CommandQueue
from server.session import Detached, Outbox, Pong, VersionedDelta, Welcome

FRAME = Frame.of(Area(14.0, 35.0, 15.0, 36.0))
SUSHI = TopK(("sushi",), 3, 0.5)
HERE = Place(14.5, 35.5)
DEVICES = [f"device-{number}" for number in range(100)]


class Crowd:
    """Devices on one stream, each with a subscription, and what carries out what they say."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.chance = random.Random(5)
        self.coordinator = Coordinator(FRAME, limits or Limits())
        self.queue = CommandQueue(self.coordinator.counters)
        self.batcher = Batcher(self.coordinator, self.queue, self.take_note)
        self.taken_count = 0
        self.line = Outbox()
        self.place_of = dict.fromkeys(DEVICES, HERE)
        self.publish(300)
        batch = EvaluationBatch()
        for name in DEVICES:
            self.coordinator.hello(c.Hello(self.line, name, b"n", 0, HERE), batch)
            self.coordinator.subscribe(self.coordinator.sessions[name], 1, SUSHI, HERE, batch)
        self.coordinator.evaluate(batch)
        self.received()

    def publish(self, count: int) -> None:
        objects = []
        for _ in range(count):
            number, (lon, lat) = self.coordinator.take_object_id(), self.spot()
            point = FRAME.project(lon, lat)
            objects.append(LiveObject(number, lon, lat, point, ("sushi",), 0, 60_000, b"", ""))
        self.coordinator.publish(objects, [])

    def take_note(self) -> None:
        self.taken_count += 1

    def spot(self) -> tuple[float, float]:
        return self.chance.uniform(14, 15), self.chance.uniform(35, 36)

    def report(self, name: str, sequence: int) -> None:
        self.place_of[name] = place = Place(*self.spot())
        session = self.line.devices.get(name)
        self.queue.put(c.Report(self.line, name, session, sequence, place, (1,)))

    def leave(self, *, parked: bool) -> None:
        """Let all devices be away; from now on they speak on another stream."""
        for name in DEVICES:
            self.queue.put(c.Detach(self.line, name))
            self.batcher.accept(self.queue.take_volatile(1), Accepted())
            if parked:
                self.coordinator.router.park(self.coordinator.sessions[name], ParkReason.AWAY)
        self.line = Outbox()

    def hello(self, name: str, nonce: bytes = b"n", version: int = 0) -> None:
        self.place_of[name] = place = Place(*self.spot())
        epoch = self.coordinator.sessions[name].epoch
        self.queue.put(c.Hello(self.line, name, nonce, version, place, epoch))

    def received(self) -> list[tuple[str, object]]:
        return self.coordinator.router.take(self.line, 10_000)

    def check(self) -> None:
        """Every device holds the best for where it has been last."""
        matching = self.coordinator.matching
        for name, place in self.place_of.items():
            (handle,) = self.coordinator.sessions[name].handles.values()
            held, _ = matching.engine.held(handle)
            (ranked,) = matching.search([SearchRequest(SUSHI, place.lon, place.lat)])
            assert len(ranked) == SUSHI.k
            assert {one.item.object_id for one in ranked} <= set(held.tolist())
        self.coordinator.check()


@pytest.fixture
def crowd():
    crowd = Crowd()
    yield crowd
    crowd.batcher.close()


def retrievals_of(crowd: Crowd, monkeypatch: pytest.MonkeyPatch, meanwhile=lambda _: None) -> list[int]:
    """Return a list that gets the size of every look-up; `meanwhile` happens during each."""
    sizes: list[int] = []
    retrieve = crowd.coordinator.matching.retrieve

    def spied(batch):
        sizes.append(len(batch))
        meanwhile(len(sizes))
        return retrieve(batch)

    monkeypatch.setattr(crowd.coordinator.matching, "retrieve", spied)
    return sizes


async def test_a_crowd_that_reports_at_once_gets_responses_in_batches(crowd, monkeypatch):
    monkeypatch.setattr("server.runtime.batcher._CHUNK", 35)
    sizes = retrievals_of(crowd, monkeypatch)
    for name in DEVICES:
        crowd.report(name, 1)
    await crowd.batcher.run()
    assert sizes == [35, 35, 30]
    assert crowd.taken_count == 3
    responses = crowd.received()
    assert [(name, one.report_sequence) for name, one in responses] == [(name, 1) for name in DEVICES]
    crowd.check()


async def test_half_of_a_crowd_is_looked_up_first_so_that_the_other_half_can_follow(crowd, monkeypatch):
    sizes = retrievals_of(crowd, monkeypatch)
    for name in DEVICES:
        crowd.report(name, 1)
    await crowd.batcher.run()
    assert sizes == [50, 50]
    crowd.check()


async def test_few_reports_need_no_other_thread(crowd, monkeypatch):
    sizes = retrievals_of(crowd, monkeypatch)
    for name in DEVICES[:5]:
        crowd.report(name, 1)
    await crowd.batcher.run()
    assert sizes == []
    assert len(crowd.received()) == 5
    crowd.check()


async def test_a_device_that_reports_again_during_the_look_up_gets_two_responses_in_order(
    crowd, monkeypatch
):
    """Each answer says to which report, as if there had been no chunks."""
    loop = asyncio.get_running_loop()
    spoken = asyncio.Event()

    def speak_again() -> None:
        for name in [*DEVICES[50:], *DEVICES[:30]]:
            crowd.report(name, 2)
            crowd.queue.put(c.Ping(crowd.line, name, 7))
        spoken.set()

    def meanwhile(number: int) -> None:
        if number == 1:
            asyncio.run_coroutine_threadsafe(_run(speak_again), loop).result(20.0)

    retrievals_of(crowd, monkeypatch, meanwhile)
    for name in DEVICES:
        crowd.report(name, 1)
    while crowd.queue or not spoken.is_set():
        await crowd.batcher.run()
    sent: dict[str, list[object]] = {name: [] for name in DEVICES}
    for name, event in crowd.received():
        sent[name].append(event)
    for name, events in sent.items():
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

    sizes = retrievals_of(crowd, monkeypatch, lambda _: loop.call_soon_threadsafe(report))
    for name in DEVICES[:25]:
        crowd.report(name, 1)
    await asyncio.wait_for(crowd.batcher.run(), 60.0)
    assert sizes == [25] * 8
    assert crowd.coordinator.counters.reports_superseded == 0
    assert crowd.queue, "somebody has reported meanwhile"
    monkeypatch.undo()
    await crowd.batcher.run()
    crowd.check()
    crowd.batcher.close()


async def test_in_a_flood_reading_comes_first(crowd, monkeypatch):
    """Where devices report faster than they are answered, no more is carried out than waited."""
    loop = asyncio.get_running_loop()
    sequences = itertools.count(2)

    def flood() -> None:
        sequence = next(sequences)
        for name in DEVICES:
            crowd.report(name, sequence)

    sizes = retrievals_of(crowd, monkeypatch, lambda _: loop.call_soon_threadsafe(flood))
    for name in DEVICES:
        crowd.report(name, 1)
    await asyncio.wait_for(crowd.batcher.run(), 60.0)
    assert sizes == [50, 50]
    assert len(crowd.queue) == 100, "of each device its last report"
    assert crowd.coordinator.counters.reports_superseded >= 50
    monkeypatch.undo()
    await crowd.batcher.run()
    crowd.check()


def sent(crowd: Crowd) -> dict[str, list[object]]:
    """Return what devices have been told since, each in order."""
    found: dict[str, list[object]] = {}
    for name, event in crowd.received():
        found.setdefault(name, []).append(event)
    return found


def evaluations_of(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the size of every evaluation."""
    sizes: list[int] = []
    engine = crowd.coordinator.matching.engine
    evaluate = engine.evaluate_parts

    def spied(parts):
        sizes.append(sum(len(part.positions.handles) for part in parts))
        return evaluate(parts)

    monkeypatch.setattr(engine, "evaluate_parts", spied)
    return sizes


async def test_a_device_parked_after_the_look_up_is_sent_its_whole_state(crowd, monkeypatch):
    coordinator, parked = crowd.coordinator, DEVICES[::3]
    handles = {one for name in parked for one in coordinator.sessions[name].handles.values()}
    evaluate = coordinator.evaluate

    def parking(batch, retrieved):
        assert retrieved, "it was looked up"
        coordinator.matching.park(handles.intersection(batch.places))
        evaluate(batch, retrieved)

    monkeypatch.setattr(coordinator, "evaluate", parking)
    for name in DEVICES:
        crowd.report(name, 1)
    await crowd.batcher.run()
    wholly = {name for name, event in crowd.received() if event.delta.snapshot}
    assert wholly == set(parked)
    crowd.check()


async def test_without_pending_subscriptions_positions_are_not_evaluated(crowd, monkeypatch):
    for kind, name in (
        (LocationRequests, "answered"),
        (LocationRequests, "ask"),
        (LocationRequests, "late"),
        (Coordinator, "detach_silent"),
        (Engine, "are_pending"),
        (TopKMatcher, "are_pending"),
        (Pending, "note"),
    ):
        monkeypatch.setattr(kind, name, lambda *_: pytest.fail("an unused mode is queried"))
    crowd.publish(50)
    for name in DEVICES:
        crowd.report(name, 1)
    await crowd.batcher.run()
    assert len([event for _, event in crowd.received() if event.report_sequence]) == len(DEVICES)
    crowd.check()


async def test_devices_that_come_back_together_are_evaluated_together(crowd, monkeypatch):
    crowd.leave(parked=True)
    crowd.publish(50)
    retrievals, evaluations = retrievals_of(crowd, monkeypatch), evaluations_of(crowd, monkeypatch)
    for name in DEVICES:
        crowd.hello(name, version=1)
    await crowd.batcher.run()
    assert retrievals == evaluations == [50, 50]
    for name, (welcome, delta) in sent(crowd).items():
        assert isinstance(welcome, Welcome)
        assert not welcome.resumed
        assert [one.subscription_id for one in welcome.subscriptions] == [1]
        assert delta.delta.snapshot
        assert delta.version == welcome.version == crowd.coordinator.sessions[name].version
        place = crowd.place_of[name]
        assert delta.delta.anchor == FRAME.project(place.lon, place.lat)
    crowd.check()


async def test_a_known_device_gets_its_objects_without_an_evaluation(crowd, monkeypatch):
    """Another instance of the app comes soon after the one that left: its lists are there."""
    crowd.leave(parked=False)
    evaluations = evaluations_of(crowd, monkeypatch)
    for name in DEVICES:
        crowd.hello(name, b"another instance")
    while crowd.queue:
        await crowd.batcher.run()
    assert evaluations == []
    found = sent(crowd)
    assert found.keys() == set(DEVICES)
    for welcome, delta in found.values():
        assert not welcome.resumed
        assert delta.delta.snapshot
        assert delta.version == welcome.version
        assert delta.delta.anchor == FRAME.project(HERE.lon, HERE.lat)
    crowd.coordinator.check()


@pytest.mark.parametrize("how", ["parked", "another instance", "resumed"])
async def test_hello_report_and_ping_at_once_get_one_response_each_in_order(crowd, monkeypatch, how):
    crowd.leave(parked=how == "parked")
    evaluations = evaluations_of(crowd, monkeypatch)
    for name in DEVICES[:30]:
        crowd.hello(name, b"n" if how == "resumed" else b"m", version=1)
        crowd.report(name, 1)
        crowd.queue.put(c.Ping(crowd.line, name, 7))
    for _ in range(3):
        await crowd.batcher.run()
    assert sum(evaluations) == 30
    found = sent(crowd)
    assert found.keys() == set(DEVICES[:30])
    for name, (welcome, delta, pong) in found.items():
        assert isinstance(welcome, Welcome)
        assert welcome.resumed is (how == "resumed")
        assert delta.report_sequence == 1
        assert delta.delta.snapshot is (how != "resumed")
        assert delta.version == (2 if how == "resumed" else welcome.version)
        assert pong == Pong(7)
        place = crowd.place_of[name]
        assert delta.delta.anchor == FRAME.project(place.lon, place.lat)
    for name in DEVICES[30:]:
        crowd.hello(name, b"n", version=1)
        crowd.place_of[name] = HERE if how != "parked" else crowd.place_of[name]
    await crowd.batcher.run()
    crowd.check()


@pytest.mark.parametrize("end", ["detached", "taken over"])
async def test_a_ping_gets_its_response_on_its_own_stream_or_not_at_all(crowd, end):
    """However soon the device leaves it: another one has not been asked anything."""
    name, before = DEVICES[0], crowd.line
    crowd.queue.put(c.Ping(before, name, 7))
    if end == "detached":
        crowd.queue.put(c.Detach(before, name))
    else:
        crowd.line = Outbox()
        crowd.hello(name, version=1)
    while crowd.queue:
        await crowd.batcher.run()
    events = [type(event) for _, event in crowd.coordinator.router.take(before, 10)]
    assert events == ([Detached] if end == "taken over" else [])
    assert [type(event) for _, event in crowd.received()] == [Welcome] * (end == "taken over")
    crowd.coordinator.check()


async def test_commands_of_others_are_executed_between_parts_of_an_expensive_hello(monkeypatch):
    """Its subscriptions are evaluated in parts, each once, and before its device's next report."""
    monkeypatch.setattr("server.runtime.batcher._CHUNK_US", 200.0)
    crowd, (name, *others) = Crowd(), DEVICES[:6]
    coordinator = crowd.coordinator
    session, batch = coordinator.sessions[name], EvaluationBatch()
    for number in range(2, 21):
        coordinator.subscribe(session, number, SUSHI, HERE, batch)
    coordinator.evaluate(batch)
    crowd.queue = CommandQueue(
        coordinator.counters, estimate=lambda command: 1e6 if isinstance(command, c.Hello) else 1.0
    )
    crowd.batcher = Batcher(coordinator, crowd.queue, crowd.take_note)
    coordinator.detach(crowd.line, name)
    coordinator.router.park(session, ParkReason.AWAY)
    line = Outbox()
    crowd.queue.put(c.Hello(line, name, b"n", 0, HERE, session.epoch))
    for other in others:
        crowd.report(other, 1)
    crowd.queue.put(c.Report(line, name, None, 1, HERE, (1,)))
    crowd.received()
    evaluated: list[list[str]] = []
    evaluate = coordinator.evaluate

    def spied(batch, retrieved):
        evaluated.append([coordinator.router.owner(handle)[0].device_id for handle in batch.places])
        evaluate(batch, retrieved)

    monkeypatch.setattr(coordinator, "evaluate", spied)
    await crowd.batcher.run()
    await crowd.batcher.run()
    assert evaluated == [[name] * 3, others, *[[name] * 3] * 5, [name] * 2, [name]]
    assert not crowd.queue
    welcome, *deltas = (event for _, event in coordinator.router.take(line, 100))
    assert isinstance(welcome, Welcome)
    assert sorted(one.delta.handle for one in deltas[:-1]) == sorted(session.handles.values())
    assert all(one.delta.snapshot for one in deltas[:-1])
    assert deltas[-1].report_sequence == 1
    crowd.place_of.pop(name)
    crowd.check()
    crowd.batcher.close()
