"""The sink of a cluster: every change of an object is written, by one node or the next."""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager, closing

import pyarrow.parquet as pq
import pytest

from cluster.entries import RULES
from nearcast import GeoObject
from server import command as c
from server.bridge import sink as sinks
from server.bridge.feeds import FolderSinkFeed
from server.bridge.sink import Sink
from server.replication.node_feeds import LogChanges
from server.store import SqliteStore, check
from tests.replication.conftest import log_servers
from tests.replication.local_node import FRAME
from tests.replication.memory_log import MemoryLog
from tests.replication.model import Model
from tests.replication.test_cluster_backup import flags, run
from tests.replication.test_copies import trimmed
from tests.replication.test_following import an_object, running
from tests.replication.test_nodes import NodeProcess, client, digest_of, node, until
from tests.replication.test_source import port_after
from tests.replication.test_status import status
from tests.support.amounts import SEED, examples
from tests.support.ports import free_port


def written(folder):
    """Return what was written, action and object, in order; each change is there, and always the same."""
    found = {}
    for path in sorted(folder.glob("*.parquet")):
        first, last = map(int, path.stem.split("-"))
        rows = [(one["action"], one["object_id"]) for one in pq.read_table(path).to_pylist()]
        assert len(rows) == last - first + 1
        for number, row in enumerate(rows, first):
            assert found.setdefault(number, row) == row, "the number of a change is its own"
    assert sorted(found) == list(range(1, len(found) + 1))
    return [found[number] for number in sorted(found)]


# -- sinks without sockets -----------------------------------------------------------------------


@asynccontextmanager
async def writing(loop, feed):
    """Run a sink over a node, whatever others do."""
    changes = LogChanges(loop)
    await changes.begin()
    task = asyncio.create_task(Sink(feed, changes, loop.coordinator.counters).run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class SlowFeed(FolderSinkFeed):
    """A folder that is slow at times, and fails at times after it has written."""

    def __init__(self, folder, rng, loop):
        super().__init__(folder)
        self._rng, self._loop = rng, loop

    def put(self, first, last, rows):
        super().put(first, last, rows)
        for _ in range(self._rng.choice((0, 0, 5, 50))):
            asyncio.run_coroutine_threadsafe(asyncio.sleep(0), self._loop).result()
        if self._rng.randrange(8) == 0:
            raise OSError("the folder has gone away")


@pytest.mark.usefixtures("without_fsync")
@pytest.mark.parametrize("seed", range(examples(5)))
async def test_two_sinks_at_once_write_every_change_in_order(tmp_path, monkeypatch, seed):
    """No lease keeps them apart, and one of the nodes is replaced by its successor meanwhile."""
    rng, folder, log = random.Random(SEED + seed), tmp_path / "out", MemoryLog()
    monkeypatch.setattr(sinks, "_AT_ONCE", 3)
    monkeypatch.setattr("server.bridge.attempts._PAUSE_S", 0.01)

    async def work(loop, now_ms):
        sink = loop.coordinator.sink
        for _ in range(12):
            now_ms += rng.choice((0, 1_000, 70_000))
            await loop.execute(c.AdvanceClock(now_ms))
            await until(lambda: sink.waiting_count < 6)  # also of what has expired
            ttl_ms, key = rng.choice((1_000, 100_000)), rng.choice(("", "a", "b"))
            await loop.execute(c.Publish((an_object(key=key, ttl_ms=ttl_ms),)))
            alive = [one.object_id for one in loop.coordinator.log_objects.all()]
            if rng.randrange(3) == 0 and alive:
                await loop.execute(c.Retract((rng.choice(alive),)))
        return now_ms

    def slow():
        return SlowFeed(folder, rng, asyncio.get_running_loop())

    with (
        closing(SqliteStore(tmp_path / "a.db", FRAME)) as one,
        closing(SqliteStore(tmp_path / "b.db", FRAME)) as other,
    ):
        async with running(log, one) as a:
            async with running(log, other) as b, writing(a, slow()), writing(b, slow()):
                now_ms = await work(b, 1_000)
            async with writing(a, slow()):
                now_ms = await work(a, now_ms)
        async with running(log, one) as a, running(log, other) as b, writing(b, slow()):
            await work(a, now_ms)
            await until(lambda: not any(loop.coordinator.sink.waiting_count for loop in (a, b)))
            await until(lambda: a.applier.offset == b.applier.offset)
            assert a.applier.digest() == b.applier.digest()
    model = Model()
    async for message in log.read(0):
        model.apply(message)
        if message.offset == await log.end():
            break
    assert written(folder) == model.noted
    assert {"publish", "retract", "expire"} == {action for action, _ in model.noted}


# -- whole nodes ---------------------------------------------------------------------------------


def writes(server):
    return server.node.slots.placement.gauges()["cluster_sink"]


async def publish(caller, count, ttl_s=3_600):
    """Publish objects one by one; return their ids."""
    async with caller.publisher() as publisher:
        item = GeoObject({"tea"}, lon=14.5, lat=35.5, ttl_s=ttl_s)
        return [(await publisher.publish(item))[0] for _ in range(count)]


async def until_written(server, folder, expected):
    """Wait until the expected changes were written; require that these were, and no others."""
    await until(lambda: server.coordinator.sink.position.sent_number >= len(expected))
    assert written(folder) == expected


def published(ids):
    """Return what the sink gets of objects that were published one after the other."""
    return [("publish", one) for one in ids]


async def shown(server, count):
    """The last column of `nearcast cluster status` by node, once it has all nodes: leases are renewed."""
    async with asyncio.timeout(60):
        while True:
            _, text = await status(server)
            lines = [line.split() for line in text.splitlines() if line.startswith("127.0.0.1:")]
            if len(lines) == count:
                return {line[0]: line[-1] for line in lines}


@pytest.mark.slow
@pytest.mark.processes
async def test_one_node_writes_and_another_one_goes_on_when_it_stops(tmp_path):
    folder = tmp_path / "out"
    with log_servers(tmp_path / "log", 1) as logs:
        first, second = sorted((free_port(), free_port()), key=str)
        more = {"sink": str(folder)}
        async with (
            node(logs, tmp_path / "b.db", port=second, **more) as b,
            node(logs, tmp_path / "c.db") as without,
            client(without) as caller,
        ):
            async with node(logs, tmp_path / "a.db", port=first, **more) as a:
                await until(lambda: writes(a) and not writes(b))
                await until(lambda: without.coordinator.sink.position.is_on)
                ids = await publish(caller, 20)
                async with caller.publisher() as publisher:
                    await publisher.retract(3, 4)
                expected = [*published(ids), ("retract", 3), ("retract", 4)]
                await until_written(b, folder, expected)
                await digest_of(a, b, without)
                rows = await shown(b, 3)
                assert rows[f"127.0.0.1:{first}"] == "writes"
                assert "writes" not in (rows[f"127.0.0.1:{second}"], rows[f"127.0.0.1:{without.port}"])
            (short,) = await publish(caller, 1, ttl_s=1)
            expected += [("publish", short), ("expire", short)]
            await until_written(b, folder, expected)
            assert writes(b)
            await until(lambda: not without.coordinator.sink.waiting_count)
            assert (await caller.status()).gauges["sink_waiting"] == 0
            await digest_of(b, without)


@pytest.mark.processes
async def test_the_node_that_writes_is_killed_while_objects_are_published(tmp_path):
    folder = tmp_path / "out"
    with log_servers(tmp_path / "log", 1) as logs:
        victim = NodeProcess(logs, tmp_path / "victim.db", flags=[f"--sink={folder}"])
        port = port_after(victim.port)
        await victim.start()
        try:
            async with (
                node(logs, tmp_path / "b.db", port=port, sink=str(folder)) as other,
                client(other) as caller,
            ):
                await until(lambda: other.coordinator.sink.position.is_on)
                going_on = asyncio.create_task(publish(caller, 300))
                await until(lambda: other.coordinator.sink.position.sent_number > 20)
                assert not writes(other)
                await victim.kill()
                await until(lambda: writes(other))
                ids = await going_on
                await until_written(other, folder, published(ids))
                await victim.start()
                await until(lambda: not writes(other))
                ids += await publish(caller, 20)
                await until_written(other, folder, published(ids))
        finally:
            await victim.kill()


@pytest.mark.slow
@pytest.mark.processes
async def test_a_node_that_joins_by_a_copy_and_a_restored_cluster_have_what_waits(tmp_path):
    """A file is in the place of the folder, so that nothing can be written."""
    folder, file = tmp_path / "out", tmp_path / "backup.db"
    folder.touch()
    with log_servers(tmp_path / "log", 1) as logs:
        async with (
            node(logs, tmp_path / "a.db", log_keep_hours=0.0, sink=str(folder)) as a,
            client(a) as caller,
        ):
            await until(lambda: a.coordinator.sink.position.is_on)
            ids = await publish(caller, 50)
            await trimmed(a)
            async with node(logs, tmp_path / "b.db") as b:
                assert b.node._position.offset > 0, "of the store that it has copied"  # noqa: SLF001
                await digest_of(a, b)
                assert b.coordinator.sink.waiting_count == 50
                assert (await caller.status()).gauges["bridge_failing.SINK"] == 1
                await run("backup", file, f"--server=127.0.0.1:{b.port}", *flags(logs)[:1])
        assert check(tmp_path / "b.db", lambda *_: None) == []
        assert check(file, lambda *_: None) == []
        folder.unlink()
        async with node(logs, tmp_path / "b.db", sink=str(folder)) as b:
            await until_written(b, folder, published(ids))
    with log_servers(tmp_path / "others", 1) as logs:
        await run("restore", file, tmp_path / "first.db", *flags(logs))
        again = tmp_path / "again"
        async with (
            node(logs, tmp_path / "first.db", sink=str(again)) as restored,
            client(restored) as caller,
        ):
            ids += await publish(caller, 5)
            await until_written(restored, again, published(ids))


@pytest.mark.slow
@pytest.mark.processes
async def test_a_sink_is_kept_for_while_no_node_has_it_until_it_is_ended(tmp_path):
    folder = tmp_path / "out"
    with log_servers(tmp_path / "log", 1) as logs:
        end = ("end-sink", *flags(logs)[:1])
        async with node(logs, tmp_path / "a.db", sink=str(folder)) as a, client(a) as caller:
            await until(lambda: a.coordinator.sink.position.is_on)
            await until_written(a, folder, published(await publish(caller, 3)))
            refused = await run(*end, status=1)
            assert f"node 127.0.0.1:{a.port} has the sink: first start it without --sink" in refused
        assert "no node of the cluster runs" in await run(*end, status=1)
        async with node(logs, tmp_path / "a.db") as a, client(a) as caller:
            await publish(caller, 4)
            sink = a.coordinator.sink
            assert sink.waiting_count == 4
            assert await run(*end) == "the sink has ended\n"
            await until(lambda: not sink.position.is_on)
            await publish(caller, 5)
            assert sink.waiting_count == 0
        async with node(logs, tmp_path / "a.db", sink=str(tmp_path / "other")) as a, client(a) as caller:
            await until(lambda: a.coordinator.sink.position.is_on)
            ids = await publish(caller, 6)
            await until(lambda: not a.coordinator.sink.waiting_count)
            (path,) = [one for one in (tmp_path / "other").iterdir() if one.stem.endswith("13")]
            assert pq.read_table(path)["object_id"].to_pylist()[-1] == ids[-1]


@pytest.mark.slow
@pytest.mark.processes
async def test_no_change_is_kept_while_a_node_does_not_know_such_entries(tmp_path):
    folder = tmp_path / "out"
    with log_servers(tmp_path / "log", 1) as logs:
        older = NodeProcess(logs, tmp_path / "older.db", ("tests.replication.later_version", "1"))
        await older.start()
        try:
            async with node(logs, tmp_path / "a.db", sink=str(folder)) as a, client(a) as caller:
                applier = a.command_loop.applier
                await until(lambda: {one.rules for one in a.node.slots.placement.leases()} == {1, RULES})
                offset = applier.offset
                await until(lambda: applier.offset > offset + 10)
                await publish(caller, 1)
                assert (applier.rules, writes(a), a.coordinator.sink.position.is_on) == (1, 0, False)
                await older.kill()
                await until(lambda: a.coordinator.sink.position.is_on)
                assert (applier.rules, writes(a)) == (RULES, 1)
                await until_written(a, folder, published(await publish(caller, 1)))
        finally:
            await older.kill()
