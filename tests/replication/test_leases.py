"""The lease of a node whose reader is late: a node that has started again is not taken for two."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from cluster import records
from cluster.key_registry import KeyRegistry
from cluster.log import LogError, LogUnavailableError
from cluster.ownership import MISSED_MAX, Lease, Node, NodeState, Ownership
from cluster.registry import LeaseRead
from cluster.slots import SLOTS, slot_of
from engine import EngineOptions
from nearcast.errors import Reason
from safe_region.steady_clock import steady_clock_s
from server.clock import Clock
from server.replication import own_lease, slot_keeper
from server.replication.appender import Appender
from server.replication.applier import Applier
from server.replication.command_loop import ReplicatedCommandLoop
from server.replication.coordinator import ReplicatedCoordinator
from server.replication.own_lease import OwnLease
from server.replication.slot_keeper import SlotKeeper
from server.store import SqliteStore
from server.store.mutations import NO_LOG
from tests.replication.local_node import FRAME, LIMITS
from tests.replication.memory_keys import MemoryKeys
from tests.replication.memory_log import MemoryLog

pytestmark = pytest.mark.usefixtures("without_fsync")

BEFORE = Node("here:7433", b"before")
NOW = Node("here:7433", b"now")


class LateKeys(MemoryKeys):
    """Keys whose records after the first are read when the test lets them."""

    def __init__(self) -> None:
        super().__init__()
        self.let = asyncio.Event()

    async def watch(self, patterns):
        async for record in super().watch(patterns):
            if record.sequence > 1:
                await self.let.wait()
            yield record


@pytest.fixture
def loop(tmp_path):
    coordinator = ReplicatedCoordinator(
        FRAME, LIMITS, EngineOptions(maxdist_m=FRAME.maxdist_m), clock=Clock(is_virtual=True)
    )
    with contextlib.closing(SqliteStore(tmp_path / "store.db", FRAME)) as store:
        yield ReplicatedCommandLoop(coordinator, store)


@pytest.fixture
def keeper(loop, monkeypatch):
    """A keeper whose node has ended without a word before, and starts again."""
    for name in ("RENEW_S", "_READ_S"):
        monkeypatch.setattr(own_lease, name, 0.01)

    def made(keys):
        log = MemoryLog()
        one = SlotKeeper(log, KeyRegistry(keys), NOW, loop)
        applier = Applier(loop.coordinator, "0123abcd", NO_LOG, lambda *_: None)
        loop.follow(applier, Appender(log, int), one.write, log.end)
        return one

    return made


class StuckKeys(MemoryKeys):
    """Keys that accept some records, and never answer about the next."""

    def __init__(self, count=1) -> None:
        super().__init__()
        self.count = count
        self.is_stuck = asyncio.Event()

    async def put(self, key, value, expected, ttl_s=0):
        if len(self.history) == self.count:
            self.is_stuck.set()
            await asyncio.Event().wait()
        return await super().put(key, value, expected, ttl_s)


async def test_a_lease_that_is_read_late_counts_from_when_it_was_sent(monkeypatch):
    monkeypatch.setattr(own_lease, "RENEW_S", 0.01)
    keys, content = StuckKeys(), Lease(NOW, NodeState.READY)
    lease = OwnLease(KeyRegistry(keys), NOW, lambda: content)
    renewing = asyncio.create_task(lease.renew())
    while not keys.history:  # noqa: ASYNC110
        await asyncio.sleep(0.0)
    first_s = steady_clock_s()
    await keys.is_stuck.wait()
    assert not lease.renewed_s
    lease.read(LeaseRead(NOW.address, content, keys.history[0].sequence))
    assert 0.0 < lease.renewed_s <= first_s
    renewing.cancel()


async def test_a_lease_counts_from_when_the_renewal_was_sent_that_was_read(monkeypatch):
    """Not a later one: the record of a lost slot may lie in between."""
    monkeypatch.setattr(own_lease, "RENEW_S", 0.01)
    keys, content, sent_s = StuckKeys(3), Lease(NOW, NodeState.READY), []

    def contents():
        sent_s.append(steady_clock_s())
        return content

    lease = OwnLease(KeyRegistry(keys), NOW, contents)
    renewing = asyncio.create_task(lease.renew())
    await keys.is_stuck.wait()
    for count, record in enumerate(keys.history, 1):
        lease.read(LeaseRead(NOW.address, content, record.sequence))
        assert 0.0 < lease.renewed_s <= sent_s[count - 1]
    renewed_s = lease.renewed_s
    assert renewed_s > sent_s[1]
    lease.read(LeaseRead(NOW.address, content, keys.history[0].sequence))
    assert lease.renewed_s == renewed_s
    renewing.cancel()


async def test_a_lease_whose_record_the_log_has_deleted_is_made_again(keeper):
    keys, key = MemoryKeys(), records.node_key(NOW.address)
    running = asyncio.create_task(keeper(keys).run())
    for _ in range(2):
        async with asyncio.timeout(30):
            while not keys.latest(key).sequence:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        keys.expire(key)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


class SilentKeys(MemoryKeys):
    """Keys that do not answer whether rows are set."""

    async def put_all(self, changes, fence):
        raise LogUnavailableError(f"no answer about {len(changes)} rows behind {fence}")


async def test_a_change_that_fails_while_a_node_stops_is_refused(keeper, loop):
    one = keeper(SilentKeys())
    running, executing = asyncio.create_task(one.run()), asyncio.create_task(loop.run())
    async with asyncio.timeout(30):
        while not one.placement.is_settled("device"):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.wait([running])
    slot = slot_of("device")
    found = await one.write({slot: {("device", 1): None}})
    assert found[slot].reason is Reason.RECOVERING
    loop.stop()
    await executing


def test_a_lease_ends_before_another_node_counts_its_node_out():
    """Also if the other one reads it just before a lease of its own."""
    other = Ownership(BEFORE)
    for _ in range(MISSED_MAX):
        other.read_lease(Lease(BEFORE, NodeState.READY))
    node = Node("there:7433", b"there")
    other.read_lease(Lease(node, NodeState.READY))
    count = 0
    while other.is_there(node):
        other.read_lease(Lease(BEFORE, NodeState.READY))
        count += 1
    assert (count - 1) * own_lease.RENEW_S >= own_lease.LEASE_S


async def test_a_node_that_reads_its_own_lease_late_continues(keeper):
    keys = LateKeys()
    await KeyRegistry(keys).renew(Lease(BEFORE, NodeState.JOINING), 0)
    running = asyncio.create_task(keeper(keys).run())
    while len(keys.history) < 5 and not running.done():  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_node_ends_when_a_later_one_has_its_address(keeper):
    keys = LateKeys()
    keys.let.set()
    registry = KeyRegistry(keys)
    await registry.renew(Lease(BEFORE, NodeState.JOINING), 0)
    key, one = records.node_key(NOW.address), keeper(keys)
    running = asyncio.create_task(one.run())
    while len(keys.history) < 2:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    await registry.renew(Lease(Node(NOW.address, b"later"), NodeState.READY), keys.latest(key).sequence)
    with pytest.raises(LogError, match="another node has the address here:7433"):
        await running
    latest = keys.latest(key)
    await one.end()
    assert keys.latest(key) == latest, "the lease of the later node stays"


async def test_a_node_that_ends_deletes_its_lease(keeper):
    keys, key = MemoryKeys(), records.node_key(NOW.address)
    one = keeper(keys)
    running = asyncio.create_task(one.run())
    while not keys.latest(key).value:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.wait([running])
    await one.end()
    assert not keys.latest(key).value


class LostKeys(MemoryKeys):
    """Keys that are out of reach for a while."""

    owner_attempts = 0

    async def put(self, key, value, expected, ttl_s=0):
        if not self.is_connected:
            self.owner_attempts += records.slot_of_owner(key) is not None
            raise LogUnavailableError("as if no server responded")
        return await super().put(key, value, expected, ttl_s)


async def test_a_node_without_a_lease_takes_no_slots_until_it_has_one(keeper, loop, monkeypatch):
    monkeypatch.setattr(slot_keeper, "RENEW_S", 0.01)
    keys = LostKeys()
    one, executing = keeper(keys), asyncio.create_task(loop.run())
    running = asyncio.create_task(one.run())

    async def until(is_so):
        async with asyncio.timeout(60):
            while not is_so():  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    await until(lambda: one.placement.served_count == SLOTS)
    keys.is_connected = False
    await until(lambda: not one.placement.served_count)
    await asyncio.sleep(0.5)
    assert not keys.owner_attempts
    keys.is_connected = True
    await until(lambda: one.placement.served_count == SLOTS)
    running.cancel()
    await asyncio.wait([running])
    loop.stop()
    await executing
