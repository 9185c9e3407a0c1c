"""The command loop: durable first, then true; commands of one batch do not trip over each other."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3

import pytest

from nearcast.errors import Reason, RefusedError
from safe_region.earth.frame import Area, Frame
from server import clock as server_clock
from server import command as c
from server.core.coordinator import Coordinator
from server.errors import StoreError
from server.limits import Limits
from server.model import NewObject, Place, TopK
from server.runtime.command_loop import _AHEAD_MS, _LATE_MAX, CommandLoop
from server.runtime.command_queue import CommandQueue
from server.session import Outbox, Rejection, VersionedDelta, Welcome
from server.store import SqliteStore
from server.store.mutations import PutSubscription
from tests.support.full_disk import full_disk
from tests.support.servers import HeldCommits
from tests.support.stored import ids_of, subscriptions_of

FRAME = Frame.of(Area(14.0, 35.0, 15.0, 36.0))
SUSHI = TopK(("sushi",), 3, 0.5)
HERE = Place(14.5, 35.5)


def an_object(key: str = "", payload: bytes = b"", ttl_ms: int = 60_000) -> NewObject:
    return NewObject(14.5, 35.5, ("sushi",), ttl_ms, payload, key)


def report(
    line: Outbox, sequence: int, lon: float = 14.5, lat: float = 35.5, numbers: tuple[int, ...] = (1,)
) -> c.Report:
    place = Place(lon, lat)
    return c.Report(line, "device", line.devices.get("device"), sequence, place, numbers)


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def steady_clock():
    return Clock()


@pytest.fixture
async def command_loop(tmp_path, clock, steady_clock):
    store = SqliteStore(tmp_path / "store.db", FRAME)
    coordinator = Coordinator(FRAME, Limits(queue_max=50), clock=server_clock.Clock(clock, steady_clock))
    command_loop = CommandLoop(coordinator, store)
    command_loop.running = asyncio.create_task(command_loop.run())
    yield command_loop
    command_loop.stop()
    await command_loop.running
    store.close()


def ids_on_disk(command_loop: CommandLoop) -> list[int]:
    return ids_of(command_loop.store.recover())


def rows_of(command_loop: CommandLoop) -> list[int]:
    """Return the ids in the file, those of expired objects included."""
    with contextlib.closing(sqlite3.connect(command_loop.store.path)) as reader:
        return [row[0] for row in reader.execute("SELECT object_id FROM objects ORDER BY object_id")]


async def test_a_response_means_that_it_is_on_disk(command_loop):
    ids = await command_loop.execute(c.Publish((an_object(), an_object())))
    assert ids_on_disk(command_loop) == ids


async def test_the_same_key_twice_at_once_is_published_once(command_loop):
    requests = [command_loop.execute(c.Publish((an_object("key"),))) for _ in range(10)]
    responses = await asyncio.gather(*requests)
    assert responses == [responses[0]] * 10
    assert ids_on_disk(command_loop) == responses[0]


async def test_replacements_that_meet_in_a_batch_leave_the_last(command_loop):
    requests = [
        command_loop.execute(c.Publish((an_object("key", payload=bytes([i])),))) for i in range(10)
    ]
    responses = await asyncio.gather(*requests)
    assert len({ids[0] for ids in responses}) == 10
    assert ids_on_disk(command_loop) == responses[-1]
    assert list(command_loop.coordinator.matching.objects) == responses[-1]
    command_loop.coordinator.check()


async def test_retracting_twice_at_once_refuses_the_second(command_loop):
    (object_id,) = await command_loop.execute(c.Publish((an_object(),)))
    responses = await asyncio.gather(
        command_loop.execute(c.Retract((object_id,))),
        command_loop.execute(c.Retract((object_id,))),
        return_exceptions=True,
    )
    assert responses[0] is None
    assert isinstance(responses[1], RefusedError)
    assert responses[1].reason is Reason.UNKNOWN_OBJECT
    assert str(object_id) in responses[1].value


async def test_a_device_may_send_everything_at_once(command_loop):
    """Hello, subscribe and report arrive before the first of them was looked at."""
    ids = await command_loop.execute(c.Publish((an_object(),)))
    line = Outbox()
    await command_loop.enqueue(c.Hello(line, "device", b"n", 0, HERE))
    await command_loop.enqueue(c.Subscribe(line, "device", 1, SUSHI, HERE))
    await command_loop.enqueue(report(line, 1, 14.6, 35.6))
    await command_loop.execute(c.Sync())
    events = [event for _, event in command_loop.coordinator.router.take(line, 100)]
    # Where it is last counts: subscribe and report are evaluated together, with one answer to both.
    assert [type(event) for event in events] == [Welcome, VersionedDelta]
    assert events[-1].report_sequence == 1
    assert events[-1].delta.snapshot
    assert [entry.item.object_id for entry in events[-1].delta.add] == ids
    assert events[-1].delta.anchor == FRAME.project(14.6, 35.6)


async def test_a_device_that_leaves_can_come_back_at_once_as_another_instance(command_loop):
    line, other = Outbox(), Outbox()
    await command_loop.enqueue(c.Hello(line, "device", b"one", 0, HERE))
    command_loop.enqueue_detach(c.Detach(line, "device"))
    await command_loop.enqueue(c.Hello(other, "device", b"two", 0, HERE))
    await command_loop.execute(c.Sync())
    assert [type(event) for _, event in command_loop.coordinator.router.take(other, 10)] == [Welcome]


async def test_a_full_disk_refuses_and_changes_nothing(command_loop):
    (kept,) = await command_loop.execute(c.Publish((an_object("kept"),)))
    line = Outbox()
    await command_loop.enqueue(c.Hello(line, "device", b"n", 0, HERE))
    await command_loop.execute(c.Sync())
    command_loop.coordinator.router.take(line, 10)
    big = tuple(an_object(payload=bytes(16_000)) for _ in range(50))
    with full_disk(command_loop.store.path):
        with pytest.raises(RefusedError) as refused:
            await command_loop.execute(c.Publish(big))
        assert refused.value.reason is Reason.INTERNAL
        assert ids_on_disk(command_loop) == [kept]
        assert list(command_loop.coordinator.matching.objects) == [kept]
        # What needs no disk goes on, and so does everything once there is room again.
        assert len((await command_loop.execute(c.Search(SUSHI, 14.5, 35.5)))[0]) == 1
    (after,) = await command_loop.execute(c.Publish((an_object("after"),)))
    assert ids_on_disk(command_loop) == [kept, after]
    assert after > kept


async def test_a_refused_command_of_a_device_is_a_message(command_loop):
    line = Outbox()
    await command_loop.enqueue(report(line, 7))
    await command_loop.execute(c.Sync())
    ((device_id, rejection),) = command_loop.coordinator.router.take(line, 10)
    assert device_id == "device"
    assert isinstance(rejection, Rejection)
    assert (rejection.number, rejection.error.reason) == (7, Reason.OUT_OF_ORDER)


@pytest.mark.parametrize("leap_ms", [-500_000, 500_000])
async def test_a_wall_clock_that_leaps_changes_nothing(command_loop, clock, steady_clock, leap_ms):
    """A lifetime is a duration; and devices hear nothing of the leap."""
    await command_loop.execute(c.Publish((an_object(ttl_ms=1_000),)))
    before = await command_loop.execute(c.Sync())
    assert before == clock.now_ms, "time begins with the wall clock"
    clock.now_ms += leap_ms
    steady_clock.now_ms += 999
    assert len((await command_loop.execute(c.Search(SUSHI, 14.5, 35.5)))[0]) == 1
    steady_clock.now_ms += 1
    assert (await command_loop.execute(c.Search(SUSHI, 14.5, 35.5)))[0] == []
    assert await command_loop.execute(c.Sync()) == before + 1_000


async def test_more_than_the_queue_holds_waits_for_room(command_loop):
    responses = await asyncio.gather(
        *(command_loop.execute(c.Publish((an_object(),))) for _ in range(500))
    )
    assert len({ids[0] for ids in responses}) == 500
    assert len(ids_on_disk(command_loop)) == 500


async def test_a_hello_of_an_ended_stream_attaches_no_device(command_loop):
    """The stream breaks while the hello waits: nothing would ever detach the device."""
    line, other = Outbox(), Outbox()
    await command_loop.enqueue(c.Hello(line, "device", b"one", 0, HERE))
    line.close()
    await command_loop.enqueue(c.Hello(other, "device", b"two", 0, HERE))
    await command_loop.execute(c.Sync())
    assert [type(event) for _, event in command_loop.coordinator.router.take(other, 10)] == [Welcome]


async def waiting(command_loop: CommandLoop, count: int) -> None:
    """Wait until so many commands wait."""
    async with asyncio.timeout(20.0):
        while command_loop.waiting_count != count:  # noqa: ASYNC110 - what is waited for has no event to offer
            await asyncio.sleep(0)


async def test_publishers_that_wait_share_a_commit(command_loop):
    await command_loop.execute(c.Publish((an_object(),)))
    disk = HeldCommits(command_loop.store)
    first = asyncio.create_task(command_loop.execute(c.Publish((an_object(),))))
    await disk.begun()
    others = [asyncio.create_task(command_loop.execute(c.Publish((an_object(),)))) for _ in range(40)]
    await waiting(command_loop, 40)
    assert not first.done()
    assert ids_on_disk(command_loop) == [1], "nothing is acknowledged before it is on disk"
    disk.go_on.set()
    answers = await asyncio.gather(first, *others)
    assert disk.rows == [1, 40]
    assert ids_on_disk(command_loop) == [1, *(ids[0] for ids in answers)]


async def test_a_disk_that_stands_still_keeps_commands_waiting_and_bounded(command_loop):
    await command_loop.execute(c.Publish((an_object(),)))
    disk = HeldCommits(command_loop.store)
    asked = [asyncio.create_task(command_loop.execute(c.Publish((an_object(),)))) for _ in range(300)]
    queue_max = command_loop.coordinator.limits.queue_max
    await waiting(command_loop, queue_max)
    for _ in range(100):
        await asyncio.sleep(0)
        assert command_loop.waiting_count <= queue_max
    assert not any(one.done() for one in asked)
    disk.go_on.set()
    answers = await asyncio.gather(*asked)
    assert len({ids[0] for ids in answers}) == 300
    assert len(ids_on_disk(command_loop)) == 301


async def test_many_that_expire_at_once_are_deleted_a_few_a_commit(command_loop, steady_clock):
    count = 2 * _LATE_MAX + 100
    for start in range(0, count, 1000):
        some = min(1000, count - start)
        await command_loop.execute(c.Publish(tuple(an_object(ttl_ms=1_000) for _ in range(some))))
    (kept,) = await command_loop.execute(c.Publish((an_object(),)))
    steady_clock.now_ms += 1_000

    await command_loop.execute(c.Sync())
    assert list(command_loop.coordinator.matching.objects) == [kept]
    before, steps = len(rows_of(command_loop)), []
    while before > 4:
        await command_loop.execute(c.Publish((an_object(),)))
        steps.append(before + 1 - len(rows_of(command_loop)))
        before = len(rows_of(command_loop))
    assert steps == [_LATE_MAX, _LATE_MAX, 100]


async def test_rows_that_a_full_disk_did_not_delete_are_deleted_later(command_loop, steady_clock):
    await command_loop.execute(c.Publish(tuple(an_object(ttl_ms=1_000) for _ in range(50))))
    steady_clock.now_ms += 1_000
    await command_loop.execute(c.Sync())
    with full_disk(command_loop.store.path), pytest.raises(RefusedError):
        await command_loop.execute(c.Publish(tuple(an_object(payload=bytes(16_000)) for _ in range(50))))
    assert len(command_loop.coordinator.late_mutations) == 50
    (after,) = await command_loop.execute(c.Publish((an_object(),)))
    assert not command_loop.coordinator.late_mutations
    assert rows_of(command_loop) == [after]


async def test_a_flooding_device_gets_responses_at_its_last_position(command_loop):
    """Many reports while a commit holds up the queue: one evaluation, which answers all of them."""
    line = Outbox()
    await command_loop.execute(c.Publish((an_object(), an_object())))
    await command_loop.enqueue(c.Hello(line, "device", b"n", 0, HERE))
    await command_loop.enqueue(c.Subscribe(line, "device", 1, SUSHI, HERE))
    await command_loop.execute(c.Sync())
    for sequence in range(1, 101):
        assert command_loop.try_enqueue(report(line, sequence, 14.5 + 0.001 * sequence))
    assert command_loop.try_enqueue(report(line, 101, numbers=(2,)))
    await command_loop.execute(c.Sync())
    events = [event for _, event in command_loop.coordinator.router.take(line, 100)]
    rejections = [event for event in events if isinstance(event, Rejection)]
    assert [one.number for one in rejections] == [101]
    responses = [one for one in events if getattr(one, "report_sequence", 0)]
    assert [one.report_sequence for one in responses] == [100]
    assert command_loop.coordinator.counters.reports_superseded == 99
    command_loop.coordinator.check()


async def test_devices_do_not_wait_for_a_slow_disk(command_loop):
    """They report, ping and are answered while a commit takes its time; what it is for comes after it."""
    line = Outbox()
    ids = await command_loop.execute(c.Publish((an_object(), an_object())))
    await command_loop.enqueue(c.Hello(line, "device", b"n", 0, HERE))
    await command_loop.enqueue(c.Subscribe(line, "device", 1, SUSHI, HERE))
    await command_loop.execute(c.Sync())
    command_loop.coordinator.router.take(line, 100)
    disk = HeldCommits(command_loop.store, also_of_time=True)
    publishing = asyncio.create_task(command_loop.execute(c.Publish((an_object(),))))
    await disk.begun()
    assert command_loop.try_enqueue(c.Subscribe(line, "device", 2, SUSHI, HERE))
    assert command_loop.try_enqueue(report(line, 1, 14.51, numbers=(1, 2)))
    other = Outbox()
    await command_loop.enqueue(c.Hello(other, "other", b"n", 0, HERE))
    syncing = asyncio.create_task(command_loop.execute(c.Sync()))
    for _ in range(50):
        await asyncio.sleep(0.002)
    assert command_loop.coordinator.router.take(line, 100) == [], "it has something of its own before it"
    disk.go_on.set()
    await syncing
    (news,) = await publishing
    events = [event for _, event in command_loop.coordinator.router.take(line, 100)]
    sent = [(one.subscription_id, one.delta.cause.name, one.delta.snapshot) for one in events]
    assert sent[0] == (1, "PUBLISHED", False)
    # The report has overtaken nothing: it says where subscription 2, which is new, is evaluated first.
    assert sorted(sent[1:]) == [(1, "REPORTED", False), (2, "REPORTED", True)]
    assert [one.report_sequence for one in events[1:]] == [1, 1]
    # Now the device has nothing else under way.
    disk.has_begun.clear()
    disk.go_on.clear()
    publishing = asyncio.create_task(command_loop.execute(c.Publish((an_object(),))))
    await disk.begun()
    assert command_loop.try_enqueue(report(line, 2, 14.52, numbers=(1, 2)))
    assert command_loop.try_enqueue(c.Ping(line, "device", 7))
    found = []
    async with asyncio.timeout(20.0):
        while len(found) < 3:
            found += [event for _, event in command_loop.coordinator.router.take(line, 100)]
            await asyncio.sleep(0.001)
    assert [one.report_sequence for one in found[:2]] == [2, 2]
    assert found[2].number == 7
    assert not publishing.done()
    disk.go_on.set()
    assert await publishing != [news]
    assert ids
    command_loop.coordinator.check()


async def test_a_killed_server_starts_no_earlier_than_any_time_that_it_sent(command_loop, steady_clock):
    commits = []
    store, coordinator = command_loop.store, command_loop.coordinator
    commit = store.commit
    store.commit = lambda *arguments: (commits.append(arguments), commit(*arguments))
    await command_loop.execute(c.Sync())
    began_ms = coordinator.matching.now_ms
    for _ in range(40):
        steady_clock.now_ms += 500
        await command_loop.execute(c.Sync())
        assert (
            coordinator.matching.now_ms
            <= store.recover().time_ms
            <= coordinator.matching.now_ms + _AHEAD_MS
        )
    assert coordinator.matching.now_ms == began_ms + 20_000
    assert 1 <= len(commits) <= 1 + 20_000 // _AHEAD_MS
    command_loop.stop()
    await command_loop.running
    assert store.recover().time_ms == coordinator.matching.now_ms, (
        "one that was stopped begins where it ended"
    )


async def test_while_the_disk_is_slow_time_waits_for_it(command_loop, steady_clock):
    await command_loop.execute(c.Sync())
    store, coordinator = command_loop.store, command_loop.coordinator
    before_ms = coordinator.matching.now_ms
    disk = HeldCommits(store, also_of_time=True)
    steady_clock.now_ms += 10_000
    syncing = asyncio.create_task(command_loop.execute(c.Sync()))
    await disk.begun()
    assert before_ms == coordinator.matching.now_ms <= store.recover().time_ms
    disk.go_on.set()
    await syncing
    assert before_ms + 10_000 == coordinator.matching.now_ms <= store.recover().time_ms


async def test_a_disk_that_fails_does_not_stop_time(command_loop, steady_clock):
    await command_loop.execute(c.Sync())
    coordinator = command_loop.coordinator
    before_ms = coordinator.matching.now_ms

    def failing(*_arguments):
        raise StoreError("as if the disk were full")

    command_loop.store.commit = failing
    for _ in range(3):
        steady_clock.now_ms += 10_000
        await command_loop.execute(c.Sync())
    assert coordinator.matching.now_ms == before_ms + 30_000


class HeldLoop:
    """A command loop whose disk is slow, with one device that has subscriptions."""

    def __init__(self, command_loop: CommandLoop) -> None:
        self.loop = command_loop
        self.coordinator = command_loop.coordinator
        self.line = Outbox()

    async def subscribe(self, *numbers: int) -> None:
        await self.loop.enqueue(c.Hello(self.line, "device", b"n", 0, HERE))
        for number in numbers:
            await self.loop.enqueue(c.Subscribe(self.line, "device", number, SUSHI, HERE))
        await self.loop.execute(c.Sync())
        self.taken()

    async def hold(self, command: c.Command) -> asyncio.Task[object]:
        """Ask for something whose commit takes until `disk.go_on`."""
        self.disk = HeldCommits(self.loop.store, also_of_time=True)
        asking = asyncio.create_task(self.loop.execute(command))
        await self.disk.begun()
        return asking

    async def rest(self) -> None:
        """Let everything happen that waits for nothing but its turn."""
        for _ in range(200):
            await asyncio.sleep(0)
        await asyncio.sleep(0.05)

    def taken(self, line: Outbox | None = None) -> list[object]:
        return [event for _, event in self.coordinator.router.take(line or self.line, 100)]


@pytest.fixture
async def held(command_loop):
    held = HeldLoop(command_loop)
    held.ids = await command_loop.execute(c.Publish((an_object(), an_object())))
    yield held
    held.disk.go_on.set()
    await command_loop.execute(c.Sync())
    held.coordinator.check()


async def test_a_search_does_not_wait_for_the_commits_of_others(held):
    publishing = await held.hold(c.Publish((an_object(),)))
    syncing = asyncio.create_task(held.loop.execute(c.Sync()))
    async with asyncio.timeout(20.0):
        found, now_ms = await held.loop.execute(c.Search(SUSHI, 14.5, 35.5))
    assert [one.item.object_id for one in found] == held.ids
    assert now_ms == held.coordinator.matching.now_ms
    assert not publishing.done()
    assert not syncing.done(), "a barrier waits for what was accepted before"
    held.disk.go_on.set()
    (news,) = await publishing
    await syncing
    found, _ = await held.loop.execute(c.Search(SUSHI, 14.5, 35.5))
    assert [one.item.object_id for one in found] == [*held.ids, news]


@pytest.mark.parametrize(
    "requests",
    [[c.Publish((an_object(), an_object(), an_object()))], [c.Publish((an_object(),)), c.Retract((1,))]],
    ids=["objects of a request", "requests of a batch"],
)
async def test_a_search_finds_all_or_nothing_of_a_batch(command_loop, monkeypatch, requests):
    """Others have turns while a batch is carried out; a search among them waits for the rest of it."""
    monkeypatch.setattr("server.runtime.command_loop._SLICE_US", 1.0)
    coordinator, searching = command_loop.coordinator, []
    publish = coordinator.publish
    before = await command_loop.execute(c.Publish((an_object(), an_object())))

    def publish_and_search(created, replaced):
        publish(created, replaced)
        search = c.Search(TopK(("sushi",), 9, 0.5), 14.5, 35.5)
        searching.append(asyncio.create_task(command_loop.execute(search)))

    monkeypatch.setattr(coordinator, "publish", publish_and_search)
    await asyncio.gather(*(command_loop.execute(one) for one in requests))
    after = list(coordinator.matching.objects)
    assert before != after
    for ranked, _ in await asyncio.gather(*searching):
        assert [one.item.object_id for one in ranked] == after


async def test_others_have_a_turn_while_many_commands_wait(command_loop, monkeypatch):
    monkeypatch.setattr("server.runtime.batcher._CHUNK_US", 100.0)
    turns = []

    async def take_turns():
        while True:
            turns.append(sum(one.done() for one in waiting))
            await asyncio.sleep(0)

    waiting = [await command_loop.submit(c.Search(SUSHI, 14.5, 35.5)) for _ in range(45)]
    others = asyncio.create_task(take_turns())
    await asyncio.gather(*waiting)
    others.cancel()
    assert len(set(turns)) > 2, "between the first response and the last one"


async def test_concurrent_searches_get_their_own_responses(held):
    await held.hold(c.Publish((an_object(),)))
    specs = [TopK(("sushi",), k, 0.5) for k in (1, 2)] + [TopK(("tofu",), 1, 0.5)]
    found = await asyncio.gather(*(held.loop.execute(c.Search(spec, 14.5, 35.5)) for spec in specs))
    assert [[one.item.object_id for one in ranked] for ranked, _ in found] == [
        held.ids[:1],
        held.ids,
        [],
    ]
    with pytest.raises(RefusedError) as refused:
        await held.loop.execute(c.Search(TopK(("sushi",), 0, 0.5), 14.5, 35.5))
    assert refused.value.field == "spec.top_k.k"


async def test_a_hello_does_not_wait_for_the_commits_of_others(held):
    """It is told what is true: what others publish comes when it is on disk."""
    await held.subscribe(1)
    await held.loop.enqueue(c.Detach(held.line, "device"))
    publishing = await held.hold(c.Publish((an_object(),)))
    line = Outbox()
    await held.loop.enqueue(c.Hello(line, "device", b"another instance", 0, HERE))
    await held.rest()
    welcome, snapshot = held.taken(line)
    assert isinstance(welcome, Welcome)
    assert snapshot.delta.snapshot
    assert snapshot.version == welcome.version
    assert [entry.item.object_id for entry in snapshot.delta.add] == held.ids
    assert not publishing.done()
    held.disk.go_on.set()
    (news,) = await publishing
    (delta,) = held.taken(line)
    assert [entry.item.object_id for entry in delta.delta.add] == [news]
    assert delta.version == snapshot.version + 1


async def test_a_device_that_reconnects_while_it_is_deleted_is_notified(held):
    """Its subscriptions end on disk already: it must not be welcomed as if it had them."""
    await held.subscribe(1, 2)
    await held.loop.enqueue(c.Detach(held.line, "device"))
    forgetting = await held.hold(c.Forget(("device", "nobody")))
    line, other = Outbox(), Outbox()
    await held.loop.enqueue(c.Hello(line, "device", b"n", 3, HERE))
    await held.loop.enqueue(c.Hello(other, "other", b"n", 0, HERE))
    await held.rest()
    assert held.taken(line) == []
    assert [type(event) for event in held.taken(other)] == [Welcome], "other commands are not affected"
    held.disk.go_on.set()
    await forgetting
    await held.loop.execute(c.Sync())
    (welcome,) = held.taken(line)
    assert (welcome.subscriptions, welcome.resumed) == ((), False)
    assert subscriptions_of(held.loop.store.recover()) == ()
    await held.loop.enqueue(c.Subscribe(line, "device", 1, SUSHI, HERE))
    await held.loop.execute(c.Sync())
    (delta,) = held.taken(line)
    assert delta.delta.snapshot
    assert [entry.item.object_id for entry in delta.delta.add] == held.ids
    assert len(subscriptions_of(held.loop.store.recover())) == 1


async def test_a_device_that_has_come_back_before_it_is_forgotten_keeps_its_subscriptions(held):
    await held.subscribe(1, 2)
    await held.loop.enqueue(c.Detach(held.line, "device"))
    line = Outbox()
    await held.loop.enqueue(c.Hello(line, "device", b"another instance", 0, HERE))
    forgetting = await held.hold(c.Forget(("device",)))
    held.disk.go_on.set()
    await forgetting
    welcome, *deltas = held.taken(line)
    assert [one.subscription_id for one in welcome.subscriptions] == [1, 2]
    assert [one.delta.snapshot for one in deltas] == [True, True]
    assert len(subscriptions_of(held.loop.store.recover())) == 2


async def test_reports_that_wait_for_a_commit_of_their_device_give_way_to_the_last(held):
    """Of those that came with what is under way the last one has its answer already."""
    await held.subscribe()
    held.disk = HeldCommits(held.loop.store, also_of_time=True)
    assert held.loop.try_enqueue(c.Subscribe(held.line, "device", 1, SUSHI, HERE))
    assert held.loop.try_enqueue(report(held.line, 1, 14.51))
    await held.disk.begun()
    for sequence in range(2, 6):
        assert held.loop.try_enqueue(report(held.line, sequence, 14.5 + 0.01 * sequence))
    assert held.loop.try_enqueue(c.Ping(held.line, "device", 7))
    await held.rest()
    assert held.taken() == []
    held.disk.go_on.set()
    await held.loop.execute(c.Sync())
    first, last, pong = held.taken()
    assert (first.report_sequence, first.delta.snapshot) == (1, True)
    assert first.delta.anchor == FRAME.project(14.51, 35.5)
    assert (last.report_sequence, last.delta.snapshot) == (5, False)
    assert last.delta.anchor == FRAME.project(14.55, 35.5)
    assert pong.number == 7
    assert held.coordinator.counters.reports_superseded == 3


async def test_between_welcome_and_snapshot_there_is_nothing(held):
    """Also if objects that it is told of are published in the batch of its hello."""
    await held.subscribe(1, 2, 3)
    publishing = await held.hold(c.Publish((an_object(),)))
    line = Outbox()
    await held.loop.enqueue(c.Unsubscribe(held.line, "device", 3))
    others = [asyncio.create_task(held.loop.execute(c.Publish((an_object(),)))) for _ in range(2)]
    await held.rest()
    await held.loop.enqueue(c.Detach(held.line, "device"))
    await held.loop.enqueue(c.Hello(line, "device", b"another instance", 0, HERE))
    others.append(asyncio.create_task(held.loop.execute(c.Publish((an_object(),)))))
    await held.rest()
    held.disk.go_on.set()
    news = [(await one)[0] for one in (publishing, *others)]
    await held.loop.execute(c.Sync())
    welcome, *deltas = held.taken(line)
    assert isinstance(welcome, Welcome)
    assert [one.subscription_id for one in welcome.subscriptions] == [1, 2]
    assert [(one.subscription_id, one.delta.snapshot) for one in deltas] == [(1, True), (2, True)]
    assert deltas[-1].version == welcome.version
    for one in deltas:
        assert {entry.item.object_id for entry in one.delta.add} == {*held.ids, *news}


@pytest.mark.parametrize("is_start", [True, False])
async def test_no_device_is_sent_the_time_from_before_a_leap(tmp_path, is_start):
    """A server begins hours after it ended, or its machine slept: objects have expired meanwhile."""
    store, clock = SqliteStore(tmp_path / "leap.db", FRAME), Clock()
    line, disk = Outbox(), HeldCommits(store, also_of_time=True)
    loop = CommandLoop(Coordinator(FRAME, clock=server_clock.Clock(clock, clock)), store)
    if not is_start:
        disk.go_on.set()
        running = asyncio.create_task(loop.run())
        await loop.execute(c.Publish((an_object(),)))
        disk.go_on.clear()
        disk.has_begun.clear()
        clock.now_ms += 3_600_000
    await loop.enqueue(c.Hello(line, "device", b"n", 0, HERE))
    if is_start:
        running = asyncio.create_task(loop.run())
    await disk.begun()
    for _ in range(100):
        await asyncio.sleep(0)
    assert loop.coordinator.router.take(line, 10) == []
    disk.go_on.set()
    await loop.execute(c.Sync())
    ((_, welcome),) = loop.coordinator.router.take(line, 10)
    assert welcome.time_ms == clock.now_ms
    assert not loop.coordinator.matching.objects
    loop.stop()
    await running
    store.close()


async def test_stopping_does_not_wait_for_all_that_waits(held):
    """What is under way is done; what has waited for too long is told that nothing was done."""
    publishing = await held.hold(c.Publish((an_object(),)))
    waiting = [asyncio.create_task(held.loop.execute(c.Publish((an_object(),)))) for _ in range(40)]
    await held.rest()
    held.loop.drain(0.0)
    await held.rest()
    held.disk.go_on.set()
    (object_id,) = await publishing
    responses = await asyncio.gather(*waiting, return_exceptions=True)
    assert {one.reason for one in responses} == {Reason.DRAINING}
    assert ids_on_disk(held.loop)[-1] == object_id, "and ids are without gaps"
    held.loop.serve()


async def test_what_a_node_does_in_turn_is_done_also_while_it_stops(held):
    done = []
    publishing = await held.hold(c.Publish((an_object(),)))
    waiting = asyncio.create_task(held.loop.execute(c.Publish((an_object(),))))
    turns = [
        asyncio.create_task(held.loop.execute(c.InTurn(lambda n=n: done.append(n), 1))) for n in range(5)
    ]
    await held.rest()
    held.loop.drain(0.0)
    await held.rest()
    held.disk.go_on.set()
    await asyncio.gather(publishing, *turns)
    assert done == list(range(5))
    with pytest.raises(RefusedError):
        await waiting
    held.loop.serve()


async def test_a_publication_is_processed_in_slices_between_which_others_continue(held, monkeypatch):
    monkeypatch.setattr("server.runtime.command_loop._SLICE_US", 200.0)
    sizes = []
    publish = held.coordinator.publish

    def noted(fresh, replaced):
        sizes.append(len(fresh))
        publish(fresh, replaced)

    monkeypatch.setattr(held.coordinator, "publish", noted)
    await held.subscribe(1)
    publishing = await held.hold(c.Publish(tuple(an_object(f"key {i % 50}") for i in range(50))))
    held.disk.go_on.set()
    ids = await publishing
    assert sum(sizes) == 50
    assert max(sizes) <= 20, "an object is taken to cost 10 us at the least"
    again = await held.loop.execute(
        c.Publish(tuple(an_object(f"key {i}", payload=b"other") for i in range(50)))
    )
    assert sum(sizes) == 100
    live = list(held.coordinator.matching.objects)
    assert not set(ids) & set(live)
    assert set(again) <= set(live)


async def test_who_waits_for_capacity_is_let_in_in_order_and_once(command_loop, monkeypatch):
    """A thousand wait, and 50 commands fit: no task is woken for which there is no capacity."""
    questions, has_room = [], CommandQueue.has_room
    monkeypatch.setattr(
        CommandQueue, "has_room", lambda *asked: questions.append(asked) or has_room(*asked)
    )
    held = HeldCommits(command_loop.store)
    first = asyncio.create_task(command_loop.execute(c.Publish((an_object(),))))
    await held.begun()
    waiting = [asyncio.create_task(command_loop.submit(c.Retract((1_000 + i,)))) for i in range(1_050)]
    await asyncio.sleep(0)
    assert command_loop.waiting_count == 50
    assert sum(one.done() for one in waiting) == 50
    held.go_on.set()
    await first
    async with asyncio.timeout(20):
        answers = [await one for one in waiting]
        found = await asyncio.gather(*answers, return_exceptions=True)
    assert {one.reason for one in found} == {Reason.UNKNOWN_OBJECT}
    assert command_loop.accepted_count == 1_051
    assert len(questions) < 3_000


async def test_a_task_that_no_longer_waits_for_capacity_submits_nothing(command_loop):
    held = HeldCommits(command_loop.store)
    first = asyncio.create_task(command_loop.execute(c.Publish((an_object(),))))
    await held.begun()
    waiting = [asyncio.create_task(command_loop.submit(c.Retract((1_000 + i,)))) for i in range(60)]
    await asyncio.sleep(0)
    for one in waiting[50:55]:
        one.cancel()
    held.go_on.set()
    await first
    async with asyncio.timeout(20):
        found = await asyncio.gather(*waiting, return_exceptions=True)
        answers = [one for one in found if not isinstance(one, asyncio.CancelledError)]
        await asyncio.gather(*answers, return_exceptions=True)
    assert command_loop.accepted_count == 56


async def test_objects_that_expire_together_are_removed_in_slices(
    command_loop, steady_clock, monkeypatch
):
    """Devices are served in between. Searches wait: they would find objects that have expired."""
    monkeypatch.setattr("server.runtime.command_loop._EXPIRED_MAX", 10)
    coordinator, line = command_loop.coordinator, Outbox()
    await command_loop.enqueue(c.Hello(line, "device", b"n", 0, HERE))
    await command_loop.enqueue(c.Subscribe(line, "device", 1, SUSHI, HERE))
    await command_loop.execute(c.Publish(tuple(an_object(ttl_ms=1_000) for _ in range(95))))
    kept = await command_loop.execute(c.Publish((an_object(),)))
    slice_count = sum(coordinator.counters.measures.slice_us.classes().counts)
    steps, asked, advance_some = [], [], coordinator.advance_some

    def noted(now_ms, count_max):
        is_more = advance_some(now_ms, count_max)
        if is_more and not steps:
            asked.append(asyncio.create_task(command_loop.execute(c.Search(SUSHI, 14.5, 35.5))))
            assert command_loop.try_enqueue(report(line, 1))
        steps.append(
            (len(coordinator.matching.objects), coordinator.counters.reports_accepted, asked[0].done())
        )
        return is_more

    monkeypatch.setattr(coordinator, "advance_some", noted)
    steady_clock.now_ms += 1_000
    await command_loop.execute(c.Sync())
    (searching,) = asked
    found, _ = await searching
    assert [one.item.object_id for one in found] == kept
    assert [left for left, _, _ in steps[:10]] == [86, 76, 66, 56, 46, 36, 26, 16, 6, 1]
    assert [accepted for _, accepted, _ in steps[:10]] == [0] + [1] * 9
    assert not any(is_found for _, _, is_found in steps[:10])
    assert sum(coordinator.counters.measures.slice_us.classes().counts) >= slice_count + 10
    coordinator.check()


@pytest.mark.parametrize(("cost_us", "smallest", "largest"), [(0.1, 400, 1_000), (200.0, 25, 400)])
async def test_slices_of_expired_objects_follow_what_they_cost(
    cost_us, smallest, largest, command_loop, steady_clock, monkeypatch
):
    """The first has 400; what is cheap has up to a thousand, what is dear as few as 25."""
    coordinator, spent_ns, slices = command_loop.coordinator, [0], []
    for _ in range(12):
        await command_loop.execute(c.Publish(tuple(an_object(ttl_ms=1_000) for _ in range(1_000))))
    advance_some = coordinator.advance_some

    def noted(now_ms, count_max):
        before = len(coordinator.matching.objects)
        is_more = advance_some(now_ms, count_max)
        slices.append(before - len(coordinator.matching.objects))
        spent_ns[0] += int(1_000 * cost_us * slices[-1])
        return is_more

    monkeypatch.setattr(coordinator, "advance_some", noted)
    monkeypatch.setattr("server.measures.time.thread_time_ns", lambda: spent_ns[0])
    steady_clock.now_ms += 1_000
    await command_loop.execute(c.Sync())
    slices = [size for size in slices if size]
    assert sum(slices) == 12_000
    assert slices[0] == 400
    assert sorted((slices[0], slices[-2])) == [smallest, largest]
    assert slices[:-1] == sorted(slices[:-1], reverse=largest == slices[0])


async def test_a_stop_writes_when_all_devices_were_seen(tmp_path, monkeypatch):
    monkeypatch.setattr("server.runtime.command_loop._LATE_MAX", 10)
    clock, names = Clock(), [f"device-{i}" for i in range(35)]
    clock.now_ms = 10_000_000
    with contextlib.closing(SqliteStore(tmp_path / "seen.db", FRAME)) as store:
        store.commit([PutSubscription(name, 1, 0, "{}", "") for name in names], 1)
        coordinator = Coordinator(FRAME, clock=server_clock.Clock(clock, clock))
        loop = CommandLoop(coordinator, store)
        running = asyncio.create_task(loop.run())
        await loop.execute(c.Sync())
        coordinator.late_seen.update(dict.fromkeys(names))  # all streams end now
        loop.stop()
        await running
        assert {store.last_seen_ms(name) for name in names} == {clock.now_ms}
