"""A node of a small cluster is killed once: `make chaos` is the same at length, with all faults.

What compares the writes and the objects with the log is shown writes and objects that are wrong.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from cluster.entries import Caller, Entry, Publish, Retract
from cluster.jetstream import JetStreamOptions, open_log
from cluster.key_registry import KeyRegistry
from cluster.local_servers import local_servers, program
from cluster.ownership import Node
from cluster.records import device_key
from cluster.registry import StoredSubscription
from cluster.slots import slot_of
from cluster.stream import Content
from nearcast.canonical import NewObject
from tests.chaos.cluster.fences import Fences
from tests.chaos.cluster.ledger import Ledger
from tests.chaos.cluster.run import strike_cluster
from tests.replication.local_node import FRAME

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(program() is None, reason="nats-server is not installed"),
]

KILLED = "cluster: node killed"
CALLER = Caller("", "", ())


def quiet(_stage, _done, _total):
    """Nobody is told."""


async def test_nothing_is_lost_when_a_node_is_killed(tmp_path):
    (tally,) = await strike_cluster({KILLED: 1}, tmp_path, (2, 12), 1, 5.0, quiet)
    assert tally.violations == []
    assert (tally.injected, tally.lost, tally.stale) == (1, 0, 0)
    assert tally.lists > 12
    assert tally.commands > 0
    assert tally.writes > 0
    assert len(tally.exact_s) == 1, "some devices were at the node"


@asynccontextmanager
async def read(one):
    """Let an audit read the log."""
    task = asyncio.create_task(one.follow())
    try:
        yield one
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def opened(folder):
    with local_servers(folder, 1) as (server,):
        log = await open_log(JetStreamOptions([server.url], [server.monitor_url], replicas=1))
        try:
            yield log
        finally:
            await log.close()


async def test_a_write_without_the_owners_condition_is_noticed(tmp_path):
    slot, row = slot_of("d1"), StoredSubscription("d1", 1, 1, "{}")
    async with opened(tmp_path) as log, read(Fences(log)) as fences:
        registry = KeyRegistry(log.keys)
        first = await registry.set_owner(slot, Node("a:1", b"a"), 0)
        await registry.write(slot, {("d1", number): row for number in (1, 2, 3)}, first)
        await registry.write(slot, {("d1", 2): None}, first)
        second = await registry.set_owner(slot, Node("b:1", b"b"), first)
        await registry.write(slot, {("d1", 4): row}, second)
        await fences.caught_up()
        assert fences.stale == []
        assert (fences.owner_count, fences.writes) == (1, 3)
        assert fences.subscriptions == {("d1", 1), ("d1", 3), ("d1", 4)}
        subject = f"nearcast.devices.{device_key('d1', 1)}"
        await log._devices.append([Content(subject, b"stale")])
        await fences.caught_up()
        assert len(fences.stale) == 1


async def test_the_ledger_keeps_what_the_log_says_and_its_history(tmp_path):
    def published(request, *items):
        return Entry(1_000, Publish(CALLER, items), request)

    def item(key, payload, ttl_ms=60_000):
        return NewObject(14.5, 35.5, ("tea",), ttl_ms, payload, key)

    async with opened(tmp_path) as log, read(Ledger(log, FRAME)) as ledger:
        for entry in (
            published(b"1", item("a", b"1"), item("b", b"2"), item("c", b"3", ttl_ms=5)),
            published(b"2", item("a", b"4")),
            published(b"2", item("a", b"4")),
            published(b"3", item("a", b"4")),
            Entry(1_001, Retract(CALLER, (2,), ()), b"4"),
            Entry(1_002, Retract(CALLER, (4,), ("b",)), b"5"),
        ):
            await log.append([entry])
        await ledger.caught_up()
        assert [one.new.payload for one in ledger.objects] == [b"1", b"2", b"3", b"4"]
        assert [one.object_id for one in ledger.alive(1_003)] == [3, 4]
        assert [one.object_id for one in ledger.alive(1_005)] == [4]
        histories = [
            ([one.object_id for one in state], latest_id)
            for state, latest_id in ledger.states([2], 0, ledger.entry_count, 1_003)
        ]
        assert histories[0] == ([2, 3, 4], 4)
        assert histories[-1] == ([1, 2, 3], 3)
