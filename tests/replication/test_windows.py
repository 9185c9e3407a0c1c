"""The windows that subscriptions of a cluster use: all nodes together have a bounded number of them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, closing

import pytest

import nearcast
from nearcast import Last, TopK
from nearcast.canonical import Window
from nearcast.errors import Reason, RefusedError
from server import command as c
from server import model
from server.limits import Limits
from server.main import Server
from server.model import Place
from server.replication import window_keeper
from server.session import Outbox
from server.store import SqliteStore
from tests.replication.conftest import log_servers
from tests.replication.local_node import FRAME
from tests.replication.memory_log import MemoryLog
from tests.replication.test_devices import everywhere, settled, shared
from tests.replication.test_following import running
from tests.replication.test_nodes import NodeProcess, digest_of, failing_with, node, settings_of, until

pytestmark = pytest.mark.processes

PLACE = {"lon": 14.5, "lat": 35.5}


@asynccontextmanager
async def few_windows(logs, store):
    """Run a node of a cluster with three windows."""
    server = Server(settings_of(logs, store), Limits(windows_max=3))
    await server.start()
    try:
        async with failing_with(server):
            yield server
    finally:
        await server.stop()


def last(count):
    return TopK({"tea"}, k=3, window=Last(count=count))


def counts_of(server):
    """Return the windows in use, as a node knows them."""
    claims = server.coordinator.log_windows.claims.values()
    return {window.count for one in claims for window in one.windows}


def claimed_by(server):
    """Return the windows that a node uses, as it knows them."""
    claim = server.coordinator.log_windows.claims.get(f"127.0.0.1:{server.port}")
    return set() if claim is None else {window.count for window in claim.windows}


def here(nodes, device_id):
    """Return the node that serves a device."""
    return next(one for one in nodes if device_id in one.coordinator.sessions)


async def test_nodes_count_their_windows_together(tmp_path):
    with log_servers(tmp_path / "log", 1) as logs:
        async with few_windows(logs, tmp_path / "a.db") as a, few_windows(logs, tmp_path / "b.db") as b:
            await shared(a, b)
            async with everywhere((a, b)) as caller:
                attached = [await caller.attach(f"d{i}", **PLACE) for i in range(24)]
                at_a = [one for one in attached if here((a, b), one.id) is a]
                at_b = [one for one in attached if one not in at_a]
                devices = [at_a[0], at_b[0], *at_a[1:], *at_b[1:]]
                offers = [await devices[i].subscribe(last(10 + i)) for i in range(3)]
                for one in devices[:3]:
                    with pytest.raises(RefusedError, match="3 different ones are in use") as caught:
                        await one.subscribe(last(77))
                    assert (caught.value.reason, caught.value.field) == (Reason.TOO_MANY, "spec.window")
                for i, one in enumerate(devices[3:]):
                    await one.subscribe(last(10 + i % 3))
                await until(lambda: counts_of(a) == counts_of(b) == {10, 11, 12})
                for one in devices:
                    for offer in one.subscriptions:
                        if offer.spec.window.count == 10:
                            await offer.unsubscribe()
                await until(lambda: counts_of(a) == counts_of(b) == {11, 12})
                await devices[0].subscribe(last(77))
                assert counts_of(a) == {11, 12, 77}
                assert offers[1].spec.window.count == 11
            await digest_of(a, b)


class StuckLog(MemoryLog):
    """A log that does not respond any more."""

    is_stuck = False

    async def append(self, entries, *, is_first=False):
        while self.is_stuck:
            await asyncio.Event().wait()
        return await super().append(entries, is_first=is_first)


async def test_a_log_that_does_not_respond_holds_up_no_stream(tmp_path, monkeypatch):
    monkeypatch.setattr(window_keeper, "_PATIENCE_S", 0.05)
    log = StuckLog()
    with closing(SqliteStore(tmp_path / "node.db", FRAME)) as store:
        async with running(log, store) as loop:
            outbox = Outbox(counters=loop.coordinator.counters)
            spec = model.TopK(("tea",), 3, 0.5, window=Window(count=10))
            command = c.Subscribe(outbox, "d1", 1, spec, Place(14.5, 35.5))
            await until(lambda: not loop.coordinator.lag_offset)
            log.is_stuck = True
            assert not loop.try_enqueue(command)
            await loop.enqueue(command)
            assert not loop.try_enqueue(command), "it is still to be claimed"
            other = c.Subscribe(outbox, "d1", 1, model.TopK(("tea",), 3, 0.5), Place(14.5, 35.5))
            assert loop.try_enqueue(other)


async def test_a_node_claims_the_windows_of_slots_that_it_takes(tmp_path):
    with log_servers(tmp_path / "log", 1) as logs:
        async with few_windows(logs, tmp_path / "a.db") as a:
            await settled(a)
            async with nearcast.connect(f"127.0.0.1:{a.port}") as caller:
                for i in range(3):
                    device = await caller.attach(f"d{i}", **PLACE)
                    await device.subscribe(last(10 + i))
            async with few_windows(logs, tmp_path / "b.db") as b:
                await a.stop()
                await settled(b)
                await until(lambda: claimed_by(b) == {10, 11, 12})


@pytest.mark.slow
async def test_each_node_has_its_own_bound_while_a_node_does_not_know_such_entries(tmp_path):
    with log_servers(tmp_path / "log", 1) as logs:
        older = NodeProcess(logs, tmp_path / "older.db", ("tests.replication.later_version", "1"))
        await older.start()
        try:
            async with node(logs, tmp_path / "a.db") as a:
                await until(lambda: a.node.slots.placement.served_count)
                async with nearcast.connect([f"127.0.0.1:{a.port}", f"127.0.0.1:{older.port}"]) as caller:
                    names = [f"d{i}" for i in range(20)]
                    devices = [await caller.attach(name, **PLACE) for name in names]
                    for one in devices:
                        await one.subscribe(last(5))
                    assert counts_of(a) == set()
                    await older.kill()
                    await until(lambda: counts_of(a) == {5})
        finally:
            await older.kill()
