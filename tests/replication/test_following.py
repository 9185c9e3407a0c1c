"""The parts of a node about the applier: requests, appends, the clock, the store that is behind."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import asynccontextmanager, closing

import pytest

from cluster.entries import Advance, Caller, Publish, Retract, Tick
from cluster.key_registry import KeyRegistry
from cluster.key_shared_records import KeySharedRecords
from cluster.log import LogUnavailableError
from engine import EngineOptions
from identity.principal import Principal, Role
from identity.quotas import Account, Quota
from nearcast.canonical import NewObject
from nearcast.errors import Reason, RefusedError
from safe_region.earth.shapes import Bounds
from server import command as c
from server.clock import Clock
from server.core.coordinator import Coordinator
from server.errors import StoreError
from server.replication import appender as appender_module
from server.replication import command_loop, follower
from server.replication.appender import Appender
from server.replication.applier import Applier
from server.replication.command_loop import ReplicatedCommandLoop
from server.replication.coordinator import ReplicatedCoordinator
from server.replication.follower import Follower
from server.replication.founding import founding_of, joined
from server.replication.log_clock import LogClock
from server.replication.node import Node
from server.replication.requests import change_of
from server.runtime.lifecycle import ServerState
from server.store import SqliteStore
from server.store.mutations import NO_LOG
from tests.replication.local_node import FRAME, LIMITS
from tests.replication.memory_keys import MemoryKeys
from tests.replication.memory_log import MemoryLog
from tests.replication.test_nodes import until
from tests.support.stuck import STUCK_S

pytestmark = pytest.mark.usefixtures("without_fsync")

SHOP = Principal("shop", frozenset({Role.PUBLISHER}), "acme")
HOUR_MS = 3_600_000


def an_object(**more):
    return NewObject(**{"lon": 14.5, "lat": 35.5, "keywords": ("tea",), "ttl_ms": HOUR_MS, **more})


# -- requests ------------------------------------------------------------------------------------


def test_the_node_that_appends_normalises_qualifies_and_chooses_points():
    area = Bounds(14.5, 35.5, 14.75, 35.75)
    command = c.Publish((an_object(keywords=(" TEA ", "\uff29ce"), key="k", area=area),), SHOP)
    change = change_of(command, Coordinator(FRAME, LIMITS))
    (item,) = change.objects
    assert change.caller == Caller("acme", "shop", ("publisher",))
    assert item.keywords == ("acme\x1fice", "acme\x1ftea")
    assert item.key == "acme\x1fk"
    assert (item.lon, item.lat) == (14.625, 35.625)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (c.Publish((an_object(lon=13.0),)), Reason.OUT_OF_AREA),
        (c.Publish((an_object(keywords=()),)), Reason.INVALID_FIELD),
        (c.Publish((an_object(key="k"), an_object(key="k"))), Reason.INVALID_FIELD),
        (c.Retract(()), Reason.INVALID_FIELD),
        (c.Retract((), keys=("",)), Reason.INVALID_FIELD),
        (c.AdvanceClock(5), Reason.NOT_VIRTUAL),
    ],
)
def test_what_is_wrong_whatever_the_state_is_not_appended(command, reason):
    with pytest.raises(RefusedError) as refused:
        change_of(command, Coordinator(FRAME, LIMITS))
    assert refused.value.reason == reason


def test_what_depends_on_the_state_is_appended():
    coordinator = Coordinator(FRAME, LIMITS, clock=Clock(is_virtual=True))
    assert isinstance(change_of(c.Retract((7,)), coordinator), Retract)
    assert change_of(c.AdvanceClock(5), coordinator) == Advance(5)


# -- appends -------------------------------------------------------------------------------------


class SlowLog(MemoryLog):
    """A log that acknowledges when the test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()
        self.let = asyncio.Event()
        self.fails = False

    async def append(self, entries, *, is_first=False):
        self.asked.set()
        await self.let.wait()
        if self.fails:
            raise LogUnavailableError("as if there were no leader")
        return await super().append(entries, is_first=is_first)


@asynccontextmanager
async def appending(log):
    appender = Appender(log, lambda: 7)
    task = asyncio.create_task(appender.run())
    try:
        yield appender
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def next_messages(log, count):
    found = []
    async for message in log.read(0):
        found.append(message)
        if len(found) == count:
            return found
    raise AssertionError("a log has ended")


async def test_requests_that_wait_together_share_a_message_in_their_order():
    log = SlowLog()
    async with appending(log) as appender:
        replies = [appender.submit(Retract(Caller("", "", ()), (0,), ()))]
        await log.asked.wait()
        replies += [appender.submit(Retract(Caller("", "", ()), (i,), ())) for i in range(1, 6)]
        replies[3].cancel()
        log.let.set()
        first, second = await next_messages(log, 2)
    assert [entry.change.ids for entry in first.entries] == [(0,)]
    assert [entry.change.ids for entry in second.entries] == [(1,), (2,), (4,), (5,)]
    assert {entry.time_ms for entry in second.entries} == {7}
    assert len({entry.request_id for entry in (*first.entries, *second.entries)}) == 5
    appender.reply(second.entries[0].request_id, [9])
    appender.reply(b"of another node", [1])
    assert await replies[1] == [9]


async def test_a_request_has_the_time_at_which_it_was_submitted():
    log, now = SlowLog(), {"ms": 7}
    appender = Appender(log, lambda: now["ms"])
    task = asyncio.create_task(appender.run())
    appender.submit(Tick())
    await log.asked.wait()
    appender.submit(Tick())  # it waits for the first
    now["ms"] = 90_007
    log.let.set()
    found = await next_messages(log, 2)
    assert [entry.time_ms for message in found for entry in message.entries] == [7, 7]
    task.cancel()


async def test_a_request_that_has_waited_for_too_long_is_refused_and_never_appended(monkeypatch):
    monkeypatch.setattr(appender_module, "PATIENCE_S", 0.05)
    log = SlowLog()
    async with appending(log) as appender:
        appender.submit(Retract(Caller("", "", ()), (1,), ()))
        await log.asked.wait()
        late = appender.submit(Retract(Caller("", "", ()), (2,), ()))
        await asyncio.sleep(0.1)
        log.let.set()
        with pytest.raises(RefusedError, match="repeat the request, which was not carried out"):
            await late
        monkeypatch.undo()
        appender.submit(Retract(Caller("", "", ()), (3,), ()))
        found = await next_messages(log, 2)
    assert [entry.change.ids for message in found for entry in message.entries] == [(1,), (3,)]


async def test_a_message_has_an_end():
    log = SlowLog()
    async with appending(log) as appender:
        large = Publish(Caller("", "", ()), tuple(an_object(payload=bytes(16_000)) for _ in range(20)))
        for _ in range(5):
            appender.submit(large)
        log.let.set()
        found = await next_messages(log, 3)
    assert [len(message.entries) for message in found] == [2, 2, 1]


async def test_without_an_acknowledgement_a_request_is_refused_and_others_continue():
    log = SlowLog()
    log.fails = True
    log.let.set()
    async with appending(log) as appender:
        with pytest.raises(RefusedError, match="log is not acknowledging") as refused:
            await appender.submit(Tick())
        assert refused.value.retry_after_ms > 0
        log.fails = False
        reply = appender.submit(Tick())
        (message,) = await next_messages(log, 1)
        appender.reply(message.entries[0].request_id, None)
        assert await reply is None


# -- the clock -----------------------------------------------------------------------------------


def test_the_clock_of_a_node_continues_from_the_log_and_never_drives_it_on():
    real = {"ms": 50}
    clock = LogClock(lambda: real["ms"])
    clock.follow(1_000)
    assert clock.now_ms() == 1_000
    real["ms"] += 30
    assert (clock.now_ms(), clock.lead_ms()) == (1_030, 30)
    clock.follow(1_010)  # an entry that was under way for 20 ms
    assert (clock.now_ms(), clock.lead_ms()) == (1_030, 20)
    clock.follow(9_000)  # another clock is faster
    assert (clock.now_ms(), clock.lead_ms()) == (9_000, 0)
    clock.start(8_000)
    assert clock.now_ms() == 9_000
    clock.start(10_000)
    assert clock.now_ms() == 10_000


# -- a node without sockets ----------------------------------------------------------------------


class FullStore(SqliteStore):
    """A store on a disk that is full at times."""

    is_full = False
    refused_rows = 0
    """How many changes it has refused, each time it was given them."""
    refusals = 0

    def commit(self, mutations, time_ms, until_ms=0):
        if self.is_full:
            self.refusals += 1
            self.refused_rows += len(mutations)
            raise StoreError("as if the disk were full")
        super().commit(mutations, time_ms, until_ms)


class StuckStore(SqliteStore):
    """A store on a disk that does not respond for a while."""

    def __init__(self, *arguments) -> None:
        super().__init__(*arguments)
        self.is_asked, self.responds = threading.Event(), threading.Event()

    def commit(self, *arguments):
        self.is_asked.set()
        self.responds.wait(STUCK_S)
        super().commit(*arguments)


@asynccontextmanager
async def running(log, store):
    """Run a node over a log and a store, in virtual time."""
    coordinator = ReplicatedCoordinator(
        FRAME, LIMITS, EngineOptions(maxdist_m=FRAME.maxdist_m), clock=Clock(is_virtual=True)
    )
    loop = ReplicatedCommandLoop(coordinator, store, state=ServerState.RECOVERING)
    keys = MemoryKeys()
    records = KeySharedRecords(keys)
    log_id = await joined(log, records, founding_of(FRAME, LIMITS, is_virtual=True))
    node = Node(log, log_id, KeyRegistry(keys), records)
    found = store.recover()
    node.accept(found, "store")
    coordinator.recover(found)

    async def no_health(_is_healthy):
        raise AssertionError("in virtual time no node is late")

    node.follow(loop, no_health, "here:7433")
    task = asyncio.create_task(loop.run())
    await node.start()
    loop.serve()
    try:
        yield loop
    finally:
        await node.stop()
        loop.stop()
        await task


async def test_a_store_that_cannot_be_written_delays_no_publication(tmp_path):
    log = MemoryLog()
    with closing(FullStore(tmp_path / "node.db", FRAME)) as store:
        async with running(log, store) as loop:
            assert await loop.execute(c.Publish((an_object(key="a"),))) == [1]
            store.is_full = True
            assert await loop.execute(c.AdvanceClock(60_000)) == 60_000
            assert await loop.execute(c.Publish((an_object(key="a", keywords=("ice",)),))) == [2]
            assert await loop.execute(c.Retract((2,))) is None
            store.is_full = False
            assert await loop.execute(c.Publish((an_object(),))) == [3]
            digest = loop.applier.digest()
    with closing(SqliteStore(tmp_path / "node.db", FRAME)) as store:
        assert store.recover().log.offset == await log.end()
        async with running(log, store) as loop:
            assert loop.applier.digest() == digest


class YieldingLog(MemoryLog):
    """A log that takes its time to accept a message."""

    async def append(self, entries, *, is_first=False):
        await asyncio.sleep(0)
        return await super().append(entries, is_first=is_first)


async def test_the_time_is_appended_now_and_then_also_while_nothing_can_be_applied(tmp_path, monkeypatch):
    monkeypatch.setattr(follower, "TICK_S", 0.05)
    log = YieldingLog()
    coordinator = ReplicatedCoordinator(FRAME, LIMITS, EngineOptions(maxdist_m=FRAME.maxdist_m))
    with closing(SqliteStore(tmp_path / "store.db", FRAME)) as store:
        loop = ReplicatedCommandLoop(coordinator, store)  # which does not run
        applier = Applier(coordinator, "0123abcd", NO_LOG, lambda *_: None)
        loop.follow(applier, Appender(log, int), dict, log.end)
        one, began_s = Follower(log, loop, dict), time.monotonic()
        tasks = [asyncio.create_task(one.read()), asyncio.create_task(one.keep_time())]
        while await log.end() < 10 and time.monotonic() < began_s + 30:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert 10 <= await log.end() <= (time.monotonic() - began_s) / follower.TICK_S + 1
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        loop.close()


async def test_a_full_store_is_not_given_all_changes_again_for_each_further_one(tmp_path, monkeypatch):
    monkeypatch.setattr(command_loop, "_UNWRITTEN_MAX", 4)
    count, log = 100, MemoryLog()
    with closing(FullStore(tmp_path / "node.db", FRAME)) as store:
        async with running(log, store) as loop:
            store.is_full = True
            for time_ms in range(1, count + 1):
                await loop.execute(c.AdvanceClock(time_ms))
            assert store.refused_rows <= 4 * count
            store.is_full = False
            await loop.store_applied()
            for time_ms in range(count + 1, count + 5):
                await loop.execute(c.AdvanceClock(time_ms))
            await until(lambda: loop.applier.stored_offset == loop.applier.offset)


async def test_a_full_store_is_not_tried_again_without_rest(tmp_path):
    log = MemoryLog()
    with closing(FullStore(tmp_path / "node.db", FRAME)) as store:
        async with running(log, store) as loop:
            store.is_full = True
            await loop.execute(c.AdvanceClock(60_000))  # more than it may be behind
            await until(lambda: store.refusals)
            began_s = time.monotonic()
            await asyncio.sleep(1.0)
            assert store.refusals <= 4 * (time.monotonic() - began_s) + 4
            store.is_full = False
            await until(lambda: loop.applier.stored_offset == loop.applier.offset)


async def test_entries_are_applied_while_the_store_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(command_loop, "_UNWRITTEN_MAX", 4)
    log = MemoryLog()
    with closing(StuckStore(tmp_path / "node.db", FRAME)) as store:
        async with running(log, store) as loop:
            for i in range(6):
                assert await loop.execute(c.Publish((an_object(),))) == [1 + i]
            assert store.is_asked.is_set()
            assert loop.applier.stored_offset == 0
            store.responds.set()
            await loop.store_applied()
            assert loop.applier.stored_offset == loop.applier.offset
            digest = loop.applier.digest()
    with closing(SqliteStore(tmp_path / "node.db", FRAME)) as store:
        async with running(log, store) as loop:
            assert loop.applier.digest() == digest


async def test_a_store_that_was_never_written_is_made_again_from_the_log(tmp_path):
    log = MemoryLog()
    with closing(FullStore(tmp_path / "node.db", FRAME)) as store:
        store.is_full = True
        async with running(log, store) as loop:
            for _ in range(3):
                await loop.execute(c.Publish((an_object(),)))
            digest = loop.applier.digest()
    with closing(SqliteStore(tmp_path / "node.db", FRAME)) as store:
        assert store.recover().log.offset == 0
        async with running(log, store) as loop:
            assert loop.applier.digest() == digest
            assert await loop.execute(c.Publish((an_object(),))) == [4]


async def test_a_long_message_is_applied_in_chunks_and_replied_in_full(tmp_path, monkeypatch):
    monkeypatch.setattr(command_loop, "_OBJECTS_MAX", 3)
    log = SlowLog()
    log.let.set()
    with closing(SqliteStore(tmp_path / "node.db", FRAME)) as store:
        async with running(log, store) as loop:
            log.let.clear()
            log.asked.clear()
            replies = [await loop.submit(c.Publish((an_object(key="k"),)))]
            await log.asked.wait()
            some = tuple(an_object(ttl_ms=1) for _ in range(4))
            replies += [await loop.submit(c.Publish(some)) for _ in range(3)]
            replies.append(await loop.submit(c.Retract((), keys=("k",))))
            log.let.set()
            assert await asyncio.gather(*replies[:4]) == [
                [1],
                [2, 3, 4, 5],
                [6, 7, 8, 9],
                [10, 11, 12, 13],
            ]
            assert await replies[4] is None


async def test_a_caller_is_charged_for_what_goes_to_the_log(tmp_path):
    account = Account(Quota(operations_per_s=1e6))
    caller = Principal("shop", frozenset({Role.PUBLISHER}), account=account)
    with closing(SqliteStore(tmp_path / "node.db", FRAME)) as store:
        async with running(MemoryLog(), store) as loop:
            await loop.execute(c.Publish((an_object(),), caller))
            one_us = account.used_us
            await loop.execute(c.Publish(tuple(an_object() for _ in range(5)), caller))
            assert account.used_us >= 4.0 * one_us > 0.0
