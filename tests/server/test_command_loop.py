"""The pump: durable first, then true; commands that meet in one batch do not trip over each other."""

from __future__ import annotations

import asyncio
import threading

import pytest

from safe_region.frame import Area, Frame
from server.commands import command as c
from server.core.coordinator import Coordinator
from server.errors import Reason, RefusalError, StoreError
from server.limits import Limits
from server.model import NewObject, TopK
from server.runtime.command_loop import _AHEAD_MS, _LATE_MAX, CommandLoop
from server.session import Outbox, Rejection, VersionedDelta, Welcome
from server.store import SqliteStore
from tests.support.stored import ids_of

FRAME = Frame.of(Area(14.0, 35.0, 15.0, 36.0))
SUSHI = TopK(("sushi",), 3, 0.5)


def an_object(key: str = "", payload: bytes = b"", ttl_ms: int = 60_000) -> NewObject:
    return NewObject(14.5, 35.5, ("sushi",), ttl_ms, payload, key)


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
    coordinator = Coordinator(FRAME, Limits(queue_max=50))
    command_loop = CommandLoop(coordinator, store, clock, steady_clock)
    command_loop.running = asyncio.create_task(command_loop.run())
    yield command_loop
    command_loop.stop()
    await command_loop.running
    store.close()


def ids_on_disk(command_loop: CommandLoop) -> list[int]:
    return ids_of(command_loop._store.recover())


async def test_an_answer_means_that_it_is_on_disk(command_loop):
    ids = await command_loop.ask(c.Publish((an_object(), an_object())))
    assert ids_on_disk(command_loop) == ids


async def test_the_same_key_twice_at_once_is_published_once(command_loop):
    asked = [command_loop.ask(c.Publish((an_object("key"),))) for _ in range(10)]
    answers = await asyncio.gather(*asked)
    assert answers == [answers[0]] * 10
    assert ids_on_disk(command_loop) == answers[0]


async def test_replacements_that_meet_in_a_batch_leave_the_last(command_loop):
    asked = [command_loop.ask(c.Publish((an_object("key", payload=bytes([i])),))) for i in range(10)]
    answers = await asyncio.gather(*asked)
    assert len({ids[0] for ids in answers}) == 10
    assert ids_on_disk(command_loop) == answers[-1]
    assert list(command_loop.coordinator.matching.objects) == answers[-1]
    command_loop.coordinator.check()


async def test_retracting_twice_at_once_refuses_the_second(command_loop):
    (object_id,) = await command_loop.ask(c.Publish((an_object(),)))
    answers = await asyncio.gather(
        command_loop.ask(c.Retract((object_id,))),
        command_loop.ask(c.Retract((object_id,))),
        return_exceptions=True,
    )
    assert answers[0] is None
    assert isinstance(answers[1], RefusalError)
    assert answers[1].reason is Reason.UNKNOWN_OBJECT
    assert str(object_id) in answers[1].value


async def test_a_device_may_say_everything_at_once(command_loop):
    """Hello, subscribe and report arrive before the first of them was looked at."""
    await command_loop.ask(c.Publish((an_object(),)))
    line = Outbox()
    await command_loop.tell(c.Hello(line, "device", b"n", 0, 14.5, 35.5))
    await command_loop.tell(c.Subscribe(line, "device", 1, SUSHI, 14.5, 35.5))
    await command_loop.tell(c.Report(line, "device", 1, 14.6, 35.6, (1,)))
    await command_loop.ask(c.Sync())
    events = [event for _, event in command_loop.coordinator.take(line, 100)]
    assert [type(event) for event in events] == [Welcome, VersionedDelta, VersionedDelta]
    assert events[-1].report_sequence == 1
    assert events[-1].delta.anchor == FRAME.project(14.6, 35.6)


async def test_a_device_that_leaves_can_come_back_at_once_as_another_instance(command_loop):
    line, other = Outbox(), Outbox()
    await command_loop.tell(c.Hello(line, "device", b"one", 0, 14.5, 35.5))
    command_loop.tell_now(c.Detach(line, "device"))
    await command_loop.tell(c.Hello(other, "device", b"two", 0, 14.5, 35.5))
    await command_loop.ask(c.Sync())
    assert [type(event) for _, event in command_loop.coordinator.take(other, 10)] == [Welcome]


async def test_a_full_disk_refuses_and_changes_nothing(command_loop):
    (kept,) = await command_loop.ask(c.Publish((an_object("kept"),)))
    line = Outbox()
    await command_loop.tell(c.Hello(line, "device", b"n", 0, 14.5, 35.5))
    await command_loop.ask(c.Sync())
    command_loop.coordinator.take(line, 10)
    (pages,) = command_loop._store._database.execute("PRAGMA page_count").fetchone()
    command_loop._store._database.execute(f"PRAGMA max_page_count={pages}")
    big = tuple(an_object(payload=bytes(16_000)) for _ in range(50))
    with pytest.raises(RefusalError) as refused:
        await command_loop.ask(c.Publish(big))
    assert refused.value.reason is Reason.INTERNAL
    assert ids_on_disk(command_loop) == [kept]
    assert list(command_loop.coordinator.matching.objects) == [kept]
    # What needs no disk goes on, and so does everything once there is room again.
    assert len((await command_loop.ask(c.Search(SUSHI, 14.5, 35.5)))[0]) == 1
    command_loop._store._database.execute("PRAGMA max_page_count=1000000")
    (after,) = await command_loop.ask(c.Publish((an_object("after"),)))
    assert ids_on_disk(command_loop) == [kept, after]
    assert after > kept


async def test_a_refused_command_of_a_device_is_a_message(command_loop):
    line = Outbox()
    await command_loop.tell(c.Report(line, "device", 7, 14.5, 35.5, (1,)))
    await command_loop.ask(c.Sync())
    ((device_id, rejection),) = command_loop.coordinator.take(line, 10)
    assert device_id == "device"
    assert isinstance(rejection, Rejection)
    assert (rejection.number, rejection.error.reason) == (7, Reason.OUT_OF_ORDER)


@pytest.mark.parametrize("leap_ms", [-500_000, 500_000])
async def test_a_wall_clock_that_leaps_changes_nothing(command_loop, clock, steady_clock, leap_ms):
    """A lifetime is a duration; and devices hear nothing of the leap."""
    await command_loop.ask(c.Publish((an_object(ttl_ms=1_000),)))
    before = await command_loop.ask(c.Sync())
    assert before == clock.now_ms, "time begins with the wall clock"
    clock.now_ms += leap_ms
    steady_clock.now_ms += 999
    assert len((await command_loop.ask(c.Search(SUSHI, 14.5, 35.5)))[0]) == 1
    steady_clock.now_ms += 1
    assert (await command_loop.ask(c.Search(SUSHI, 14.5, 35.5)))[0] == []
    assert await command_loop.ask(c.Sync()) == before + 1_000


async def test_more_than_the_queue_holds_waits_for_room(command_loop):
    answers = await asyncio.gather(*(command_loop.ask(c.Publish((an_object(),))) for _ in range(500)))
    assert len({ids[0] for ids in answers}) == 500
    assert len(ids_on_disk(command_loop)) == 500


async def test_a_hello_whose_stream_has_ended_attaches_nobody(command_loop):
    """The stream breaks while the hello waits: nothing would ever detach the device."""
    line, other = Outbox(), Outbox()
    await command_loop.tell(c.Hello(line, "device", b"one", 0, 14.5, 35.5))
    line.close()
    await command_loop.tell(c.Hello(other, "device", b"two", 0, 14.5, 35.5))
    await command_loop.ask(c.Sync())
    assert [type(event) for _, event in command_loop.coordinator.take(other, 10)] == [Welcome]


def commits(command_loop: CommandLoop) -> list[str]:
    """Note every commit from now on."""
    seen: list[str] = []
    command_loop._store._database.set_trace_callback(
        lambda statement: seen.append(statement) if statement == "COMMIT" else None
    )
    return seen


async def waiting(command_loop: CommandLoop, count: int) -> None:
    """Wait until so many commands wait."""
    async with asyncio.timeout(20.0):
        while len(command_loop._waiting) != count:  # noqa: ASYNC110 - what is waited for has no event to offer
            await asyncio.sleep(0)


async def test_publishers_that_wait_share_a_commit(command_loop):
    await command_loop.ask(c.Publish((an_object(),)))
    seen = commits(command_loop)
    with command_loop._store._writing:  # a disk that takes its time
        first = asyncio.create_task(command_loop.ask(c.Publish((an_object(),))))
        await waiting(command_loop, 1)
        await waiting(command_loop, 0)  # its commit waits for the disk
        others = [asyncio.create_task(command_loop.ask(c.Publish((an_object(),)))) for _ in range(40)]
        await waiting(command_loop, 40)
        assert not first.done()
        assert ids_on_disk(command_loop) == [1], "nothing is acknowledged before it is on disk"
    answers = await asyncio.gather(first, *others)
    assert len(seen) == 2
    assert ids_on_disk(command_loop) == [1, *(ids[0] for ids in answers)]


async def test_a_disk_that_stands_still_keeps_commands_waiting_and_bounded(command_loop):
    await command_loop.ask(c.Publish((an_object(),)))
    with command_loop._store._writing:
        asked = [asyncio.create_task(command_loop.ask(c.Publish((an_object(),)))) for _ in range(300)]
        queue_max = command_loop.coordinator.limits.queue_max
        await waiting(command_loop, queue_max)
        for _ in range(100):
            await asyncio.sleep(0)
            assert len(command_loop._waiting) <= queue_max
        assert not any(one.done() for one in asked)
    answers = await asyncio.gather(*asked)
    assert len({ids[0] for ids in answers}) == 300
    assert len(ids_on_disk(command_loop)) == 301


async def test_many_that_expire_at_once_are_deleted_a_few_a_commit(command_loop, steady_clock):
    count = 2 * _LATE_MAX + 100
    for start in range(0, count, 1000):
        some = min(1000, count - start)
        await command_loop.ask(c.Publish(tuple(an_object(ttl_ms=1_000) for _ in range(some))))
    (kept,) = await command_loop.ask(c.Publish((an_object(),)))
    steady_clock.now_ms += 1_000

    def rows_on_disk():
        return command_loop._store._database.execute("SELECT count(*) FROM objects").fetchone()[0]

    await command_loop.ask(c.Sync())
    assert list(command_loop.coordinator.matching.objects) == [kept]
    before, steps = rows_on_disk(), []
    while before > 4:
        await command_loop.ask(c.Publish((an_object(),)))
        steps.append(before + 1 - rows_on_disk())
        before = rows_on_disk()
    assert steps == [_LATE_MAX, _LATE_MAX, 100]


async def test_what_a_full_disk_did_not_delete_is_deleted_later(command_loop, steady_clock):
    await command_loop.ask(c.Publish(tuple(an_object(ttl_ms=1_000) for _ in range(50))))
    steady_clock.now_ms += 1_000
    await command_loop.ask(c.Sync())
    (pages,) = command_loop._store._database.execute("PRAGMA page_count").fetchone()
    command_loop._store._database.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(RefusalError):
        await command_loop.ask(c.Publish(tuple(an_object(payload=bytes(16_000)) for _ in range(50))))
    assert len(command_loop.coordinator.late_rows) == 50
    command_loop._store._database.execute("PRAGMA max_page_count=1000000")
    (after,) = await command_loop.ask(c.Publish((an_object(),)))
    assert not command_loop.coordinator.late_rows
    rows = command_loop._store._database.execute("SELECT object_id FROM objects").fetchall()
    assert rows == [(after,)]


async def test_a_device_that_floods_is_answered_where_it_is_last(command_loop):
    """Many reports while a commit holds up the queue: one evaluation, which answers all of them."""
    line = Outbox()
    await command_loop.ask(c.Publish((an_object(), an_object())))
    await command_loop.tell(c.Hello(line, "device", b"n", 0, 14.5, 35.5))
    await command_loop.tell(c.Subscribe(line, "device", 1, SUSHI, 14.5, 35.5))
    await command_loop.ask(c.Sync())
    for sequence in range(1, 101):
        assert command_loop.tell_at_once(
            c.Report(line, "device", sequence, 14.5 + 0.001 * sequence, 35.5, (1,))
        )
    assert command_loop.tell_at_once(c.Report(line, "device", 101, 14.5, 99.0, (1,)))
    await command_loop.ask(c.Sync())
    events = [event for _, event in command_loop.coordinator.take(line, 100)]
    rejections = [event for event in events if isinstance(event, Rejection)]
    assert [one.number for one in rejections] == [101]
    answers = [one for one in events if getattr(one, "report_sequence", 0)]
    assert [one.report_sequence for one in answers] == [100]
    assert command_loop.coordinator.counters.reports_superseded == 99
    command_loop.coordinator.check()


class SlowDisk:
    """Holds commits up until the test lets them go on."""

    def __init__(self, store):
        self.is_held = threading.Event()
        self.go_on = threading.Event()
        self._commit = store.commit
        store.commit = self.commit

    def commit(self, *arguments):
        self.is_held.set()
        self.go_on.wait(20.0)
        self._commit(*arguments)


async def test_devices_do_not_wait_for_a_slow_disk(command_loop):
    """They report, ping and are answered while a commit takes its time; what it is for comes after it."""
    line = Outbox()
    ids = await command_loop.ask(c.Publish((an_object(), an_object())))
    await command_loop.tell(c.Hello(line, "device", b"n", 0, 14.5, 35.5))
    await command_loop.tell(c.Subscribe(line, "device", 1, SUSHI, 14.5, 35.5))
    await command_loop.ask(c.Sync())
    command_loop.coordinator.take(line, 100)
    disk = SlowDisk(command_loop._store)
    publishing = asyncio.create_task(command_loop.ask(c.Publish((an_object(),))))
    assert await asyncio.to_thread(disk.is_held.wait, 20.0)
    assert command_loop.tell_at_once(c.Subscribe(line, "device", 2, SUSHI, 14.5, 35.5))
    assert command_loop.tell_at_once(c.Report(line, "device", 1, 14.51, 35.5, (1, 2)))
    other = Outbox()
    await command_loop.tell(c.Hello(other, "other", b"n", 0, 14.5, 35.5))
    syncing = asyncio.create_task(command_loop.ask(c.Sync()))
    for _ in range(50):
        await asyncio.sleep(0.002)
    assert command_loop.coordinator.take(line, 100) == [], "it has something of its own before it"
    disk.go_on.set()
    await syncing
    (news,) = await publishing
    events = [event for _, event in command_loop.coordinator.take(line, 100)]
    assert [event.delta.cause.name for event in events] == [
        *("PUBLISHED", "SUBSCRIBED"),
        "REPORTED",
        "REPORTED",
    ]
    # Now the device has nothing else under way.
    disk.is_held.clear()
    disk.go_on.clear()
    publishing = asyncio.create_task(command_loop.ask(c.Publish((an_object(),))))
    assert await asyncio.to_thread(disk.is_held.wait, 20.0)
    assert command_loop.tell_at_once(c.Report(line, "device", 2, 14.52, 35.5, (1, 2)))
    assert command_loop.tell_at_once(c.Ping(line, "device", 7))
    found = []
    async with asyncio.timeout(20.0):
        while len(found) < 3:
            found += [event for _, event in command_loop.coordinator.take(line, 100)]
            await asyncio.sleep(0.001)
    assert [one.report_sequence for one in found[:2]] == [2, 2]
    assert found[2].number == 7
    assert not publishing.done()
    disk.go_on.set()
    assert await publishing != [news]
    assert ids
    command_loop.coordinator.check()


async def test_a_server_that_is_killed_begins_no_earlier_than_any_time_it_told(
    command_loop, steady_clock
):
    commits = []
    store, coordinator = command_loop._store, command_loop.coordinator
    commit = store.commit
    store.commit = lambda *arguments: (commits.append(arguments), commit(*arguments))
    await command_loop.ask(c.Sync())
    began_ms = coordinator.matching.now_ms
    for _ in range(40):
        steady_clock.now_ms += 500
        await command_loop.ask(c.Sync())
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
    await command_loop.ask(c.Sync())
    store, coordinator = command_loop._store, command_loop.coordinator
    before_ms = coordinator.matching.now_ms
    disk = SlowDisk(store)
    steady_clock.now_ms += 10_000
    syncing = asyncio.create_task(command_loop.ask(c.Sync()))
    assert await asyncio.to_thread(disk.is_held.wait, 20.0)
    assert before_ms == coordinator.matching.now_ms <= store.recover().time_ms
    disk.go_on.set()
    await syncing
    assert before_ms + 10_000 == coordinator.matching.now_ms <= store.recover().time_ms


async def test_a_disk_that_fails_does_not_stop_time(command_loop, steady_clock):
    await command_loop.ask(c.Sync())
    coordinator = command_loop.coordinator
    before_ms = coordinator.matching.now_ms

    def failing(*_arguments):
        raise StoreError("as if the disk were full")

    command_loop._store.commit = failing
    for _ in range(3):
        steady_clock.now_ms += 10_000
        await command_loop.ask(c.Sync())
    assert coordinator.matching.now_ms == before_ms + 30_000
