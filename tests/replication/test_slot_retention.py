"""Retention of a node whose slots are not all written: it knows what the records have, and no more."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import asynccontextmanager, closing

import pytest

from cluster.registry import SEEN, LastSeen, StoredSubscription
from cluster.slots import slot_of
from engine import EngineOptions
from nearcast.canonical import TopK
from server.clock import Clock
from server.core.specs import kind_of_spec
from server.replication.appender import Appender
from server.replication.applier import Applier
from server.replication.command_loop import ReplicatedCommandLoop
from server.replication.coordinator import ReplicatedCoordinator
from server.replication.device_changes import columns_of
from server.replication.retention import SlotRetention
from server.runtime.retention import DAY_MS
from server.store import SqliteStore
from server.store.mutations import NO_LOG
from tests.replication.local_node import FRAME, LIMITS
from tests.replication.memory_log import MemoryLog
from tests.replication.test_nodes import until
from tests.support.nodes import no_owner

pytestmark = pytest.mark.usefixtures("without_fsync")

DAYS = 8
DEVICES = tuple(f"d{number}" for number in range(6))
SPEC = TopK(("tea",), 3, 0.5)
START_MS = 1_700_000_000_000


class Records:
    """The records of slots, of which some are refused.

    Parameters
    ----------
    devices
        Those with a subscription.
    """

    def __init__(self, devices) -> None:
        self.of = {(name, 1) for name in devices}
        self.refused: set[int] = set()
        self.refused_count = 0

    async def write(self, changes: Mapping):
        refused = self.refused & changes.keys()
        self.refused_count += len(refused)
        for slot in changes.keys() - refused:
            for key, record in changes[slot].items():
                (self.of.discard if record is None else self.of.add)(key)
        return {slot: no_owner() for slot in refused}

    @property
    def devices(self):
        return {name for name, number in self.of if number != SEEN}


@asynccontextmanager
async def running(store, records):
    """Run a node with all slots, whose devices are parked."""
    coordinator = ReplicatedCoordinator(
        FRAME, LIMITS, EngineOptions(maxdist_m=FRAME.maxdist_m), clock=Clock(is_virtual=True)
    )
    loop = ReplicatedCommandLoop(coordinator, store, SlotRetention(coordinator, DAYS))
    log = MemoryLog()
    applier = Applier(coordinator, "0123abcd", NO_LOG, lambda *_: None)
    loop.follow(applier, Appender(log, int), records.write, log.end)
    coordinator.advance_log(START_MS)
    kind = kind_of_spec(SPEC)
    rows = [StoredSubscription(name, 1, kind.number, kind.encoded(SPEC)) for name in DEVICES]
    coordinator.restore_subscriptions(columns_of(rows))
    for name in DEVICES:
        coordinator.last_seen.take(slot_of(name), [LastSeen(name, START_MS)], [name], START_MS)
    task = asyncio.create_task(loop.run())
    try:
        yield loop
    finally:
        loop.stop()
        await task


async def test_a_slot_that_is_refused_keeps_its_devices_and_no_others(tmp_path):
    assert len(set(map(slot_of, DEVICES))) == len(DEVICES)
    records = Records(DEVICES)
    with closing(SqliteStore(tmp_path / "store.db", FRAME)) as store:
        async with running(store, records) as loop:
            coordinator = loop.coordinator

            async def pass_days(days):
                log_ms = coordinator.log_ms + days * DAY_MS
                await loop.in_turn(lambda: coordinator.advance_log(log_ms))

            async def applied():
                await loop.in_turn(lambda: None)

            await pass_days(1)
            records.refused = {slot_of("d2")}
            await pass_days(2 * DAYS)
            await until(lambda: records.refused_count)
            await applied()
            assert records.devices == {"d2"}
            assert set(coordinator.sessions) == {"d2"}
            assert coordinator.counters.devices_forgotten == len(DEVICES) - 1
            records.refused = set()
            await pass_days(2)
            await until(lambda: not records.devices)
            await applied()
            assert not coordinator.sessions
            coordinator.check()
