"""The source of a cluster: one node reads it at a time, and rows count once whatever nodes append."""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack, asynccontextmanager, closing

import pyarrow as pa
import pytest

import nearcast
from cluster.entries import RULES, Cursor, TakeIn
from feeds.schemas import MESSAGES, PUBLISH, RETRACT
from nearcast import GeoObject
from server.bridge.chunk import Chunk
from server.bridge.feeds import FolderSinkFeed
from server.bridge.rows import KEY
from server.bridge.source import Source
from server.counters import Feed
from server.store import SqliteStore, check
from tests.replication.conftest import log_servers
from tests.replication.local_node import FRAME
from tests.replication.memory_log import MemoryLog
from tests.replication.model import Model
from tests.replication.test_cluster_backup import flags, run
from tests.replication.test_copies import trimmed
from tests.replication.test_devices import publish
from tests.replication.test_following import running
from tests.replication.test_nodes import NodeProcess, client, digest_of, node, until
from tests.replication.test_status import until_shown
from tests.support.amounts import SEED, examples
from tests.support.ports import free_port

STREAM = "files"


def row(number, **more):
    """Return a row of the feed, which lives for as long as possible."""
    found = {"action": PUBLISH, "object_id": number, "time_ms": 1_000, "lon": 14.5, "lat": 35.5}
    return {
        **dict.fromkeys(MESSAGES.names),
        **found,
        "keywords": ["tea"],
        "payload": b"%d" % number,
        **more,
    }


def retraction(number):
    return {**dict.fromkeys(MESSAGES.names), "action": RETRACT, "object_id": number, "time_ms": 1_000}


# -- sources without sockets ---------------------------------------------------------------------


class MemoryFeed:
    """Files in memory, with the offsets of a folder: that of a file comes with its last rows."""

    streams = (STREAM,)

    def __init__(self, files, rows_max=3):
        self._files, self._rows_max = files, rows_max

    def begin(self, stream):  # noqa: ARG002 - there is one
        return ""

    def next(self, stream, after, wait_s):  # noqa: ARG002 - the caller waits
        name = min((one for one in self._files if one > after), default=None)
        if name is None:
            return
        rows = self._files[name]
        for first in range(0, max(1, len(rows)), self._rows_max):
            is_last = first + self._rows_max >= len(rows)
            yield Chunk(name if is_last else after, rows[first : first + self._rows_max])

    def close(self):
        pass


def source_of(loop, files, execute):
    coordinator = loop.coordinator
    return Source(MemoryFeed(files), coordinator.source_cursors, coordinator, execute)


@asynccontextmanager
async def reading(loop, files, execute=None):
    """Run a source over a node, whatever others do."""
    task = asyncio.create_task(source_of(loop, files, execute or loop.execute).run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def two_nodes(folder, log):
    """Run two nodes over one log, neither of which knows of the other."""
    async with AsyncExitStack() as opened:
        loops = []
        for name in ("a", "b"):
            store = opened.enter_context(closing(SqliteStore(folder / f"{name}.db", FRAME)))
            loops.append(await opened.enter_async_context(running(log, store)))
        yield loops


async def until_read(loops, name):
    """Wait until nodes have applied the same, with the last file."""
    cursors = [one.coordinator.source_cursors for one in loops]
    await until(lambda: all(one.get(STREAM, Cursor("", 0)).offset == name for one in cursors))
    await until(lambda: len({one.applier.offset for one in loops}) == 1)


def payloads(loop):
    """Return the numbers of the live objects by id, which the payloads have."""
    return {one.object_id: int(one.payload) for one in loop.coordinator.log_objects.all()}


async def entries_of(log):
    """Return all messages of a log, and the entries of the source in them."""
    messages, end = [], await log.end()
    async for message in log.read(0):
        messages.append(message)
        if message.offset == end:
            break
    changes = [entry.change for message in messages for entry in message.entries]
    return messages, [one for one in changes if isinstance(one, TakeIn)]


@pytest.mark.usefixtures("without_fsync")
@pytest.mark.parametrize("seed", range(examples(5)))
async def test_two_sources_at_once_take_every_row_once(tmp_path, seed):
    """No lease keeps them apart. Files that come later retract some objects, which do not come back."""
    rng = random.Random(SEED + seed)
    files = {f"{i}": [row(10 * i + n) for n in range(rng.randrange(8))] for i in range(1, 8)}
    files["8"] = [retraction(10 * i) for i in range(1, 8)]
    files["9"] = [row(90)]
    published = [one["object_id"] for name in sorted(files) for one in files[name] if one["keywords"]]
    alive = [number for number in published if number % 10 or number == 90]

    def slowly(loop):
        async def execute(command):
            for _ in range(rng.choice((0, 0, 3, 40))):
                await asyncio.sleep(0)
            return await loop.execute(command)

        return execute

    log = MemoryLog()
    async with two_nodes(tmp_path, log) as loops:
        async with reading(loops[0], files, slowly(loops[0])), reading(loops[1], files, slowly(loops[1])):
            await until_read(loops, "9")
        one, other = loops
        assert one.applier.digest() == other.applier.digest()
        assert sorted(payloads(one).values()) == alive
        assert one.coordinator.latest_object_id == len(published), "every object has taken one id"
        messages, taken = await entries_of(log)
        assert len(taken) > one.coordinator.source_cursors[STREAM].entry_count, "some had no effect"
        model = Model()
        for message in messages[1:]:
            model.apply(message)
        assert [found.object_id for found in model.alive()] == list(payloads(one))


@pytest.mark.usefixtures("without_fsync")
async def test_a_node_that_was_paused_cannot_take_in_what_it_had_read(tmp_path, caplog):
    files = {"1": [row(1), row(2)], "2": [row(3)]}
    paused, resumed = asyncio.Event(), asyncio.Event()

    async with two_nodes(tmp_path, MemoryLog()) as (one, other):

        async def pause(command):
            paused.set()
            await resumed.wait()
            return await one.execute(command)

        async with reading(one, files, pause):
            await paused.wait()  # with rows 1 and 2, for a stream that was never read
            async with reading(other, files):
                await until_read((one, other), "2")
            files["3"] = [retraction(1)]
            async with reading(other, files):
                await until_read((one, other), "3")
            digest = other.applier.digest()
            caplog.set_level("INFO")
            resumed.set()
            await until(lambda: "another node has read it" in caplog.text)
            assert payloads(one) == {2: 2, 3: 3}
            files["4"] = [row(4)]
            await until_read((one, other), "4")
        assert one.applier.digest() == other.applier.digest() != digest
        assert payloads(other) == {2: 2, 3: 3, 4: 4}
        assert one.coordinator.source_cursors == {STREAM: Cursor("4", 4)}


class BrokenFeed(MemoryFeed):
    """A feed that cannot be read."""

    def next(self, stream, after, wait_s):
        raise OSError(f"{stream} cannot be read after {after!r}, in {wait_s} s")


@pytest.mark.usefixtures("without_fsync")
async def test_a_source_that_fails_and_moves_to_another_node_fails_here_no_more(tmp_path):
    async with two_nodes(tmp_path, MemoryLog()) as (loop, _):
        failing = loop.coordinator.counters.bridge_failing
        source = Source(BrokenFeed({}), {}, loop.coordinator, loop.execute)
        task = asyncio.create_task(source.run())
        await until(lambda: failing[Feed.SOURCE] == 1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert failing[Feed.SOURCE] == 0


# -- whole nodes ---------------------------------------------------------------------------------


def write(folder, number, rows):
    """Add a file to a folder."""
    FolderSinkFeed(folder).put(number, number, pa.Table.from_pylist(rows, MESSAGES))


class Writer:
    """Writes files with further rows to a folder."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        self.count = self._files = 0
        self.is_stopped = False

    def write(self, count=10, **more):
        numbers = range(self.count, self.count + count)
        write(self.folder, self._files, [row(number, **more) for number in numbers])
        self.count, self._files = self.count + count, self._files + 1

    async def go_on(self, server):
        """Write until it is to stop, not far ahead of a node."""
        while not self.is_stopped:
            self.write()
            await until(lambda: self.is_stopped or server.coordinator.latest_object_id > self.count - 100)


def numbers_of(server):
    """Return the numbers of the objects of the source that a node has."""
    keys = [one.key for one in server.coordinator.log_objects.all()]
    return sorted(int(key.removeprefix(KEY)) for key in keys if key.startswith(KEY))


async def until_all(server, writer):
    """Wait until a node has all rows; require that each has arrived once."""
    await until(lambda: len(numbers_of(server)) >= writer.count)
    assert numbers_of(server) == list(range(writer.count))
    assert server.coordinator.latest_object_id == writer.count


def reads(server):
    return server.node.slots.placement.gauges()["cluster_source"]


def port_after(port):
    """Return a port whose address is after that of another one."""
    while True:
        found = free_port()
        if str(found) > str(port):
            return found


@pytest.mark.slow
@pytest.mark.processes
async def test_one_node_reads_and_another_one_goes_on_when_it_stops(tmp_path):
    writer = Writer(tmp_path / "in")
    with log_servers(tmp_path / "log", 1) as logs:
        first, second = sorted((free_port(), free_port()), key=str)
        more = {"source": str(writer.folder)}
        async with (
            node(logs, tmp_path / "a.db", port=first, **more) as a,
            node(logs, tmp_path / "b.db", port=second, **more) as b,
            node(logs, tmp_path / "c.db") as without,
        ):
            for _ in range(5):
                writer.write()
            await until_all(b, writer)
            await digest_of(a, b, without)
            await until(lambda: reads(a) and not reads(b))
            assert not reads(without)
            text = await until_shown(b, 0, "reads")
            rows = {line.split()[0]: line.split()[-1] for line in text.splitlines()[1:4]}
            assert rows[f"127.0.0.1:{first}"] == "reads"
            assert "reads" not in (rows[f"127.0.0.1:{second}"], rows[f"127.0.0.1:{without.port}"])
            await a.stop()
            writer.write()
            await until_all(without, writer)
            await until(lambda: reads(b))
            await digest_of(b, without)
            async with node(logs, tmp_path / "a.db", port=first, **more) as again:
                await until(lambda: reads(again) and not reads(b))
                writer.write(payload=bytes(0))
                await until(lambda: b.coordinator.latest_object_id == writer.count)
                await digest_of(again, b, without)


@pytest.mark.processes
async def test_the_node_that_reads_is_killed_while_rows_arrive(tmp_path):
    writer = Writer(tmp_path / "in")
    with log_servers(tmp_path / "log", 1) as logs:
        victim = NodeProcess(logs, tmp_path / "victim.db", flags=[f"--source={writer.folder}"])
        port = port_after(victim.port)
        await victim.start()
        try:
            async with node(logs, tmp_path / "b.db", port=port, source=str(writer.folder)) as other:
                going_on = asyncio.create_task(writer.go_on(other))
                await until(lambda: other.coordinator.latest_object_id > 100)
                await until(lambda: not reads(other))
                await victim.kill()
                before = other.coordinator.latest_object_id
                await until(lambda: other.coordinator.latest_object_id > before + 100)
                await until(lambda: reads(other))
                writer.is_stopped = True
                await going_on
                await until_all(other, writer)
                await victim.start()
                await until(lambda: not reads(other))
                writer.write()
                await until_all(other, writer)
                async with nearcast.connect(f"127.0.0.1:{victim.port}") as caller:
                    await caller.sync()
                    assert (await caller.status()).gauges["objects"] == writer.count
                    while not (await caller.status()).gauges["cluster_source"]:
                        pass  # a starved node may be without a lease for a moment
        finally:
            await victim.kill()


@pytest.mark.processes
async def test_rows_that_are_larger_than_a_message_of_the_log_arrive_together(tmp_path):
    writer = Writer(tmp_path / "in")
    with log_servers(tmp_path / "log", 1) as logs:
        async with node(logs, tmp_path / "a.db", source=str(writer.folder)) as a:
            writer.write(100, payload=bytes(16_000))
            await until(lambda: a.coordinator.latest_object_id)
            assert a.coordinator.latest_object_id == 100
            cursor = Cursor("0000000000000000-0000000000000000.parquet", 1)
            assert a.coordinator.source_cursors == {STREAM: cursor}
            async with node(logs, tmp_path / "b.db") as b:
                await digest_of(a, b)


@pytest.mark.slow
@pytest.mark.processes
async def test_a_node_that_joins_by_a_copy_and_a_restored_cluster_have_the_cursor(tmp_path):
    """One object was retracted since: it would come back if its row was read again."""
    writer = Writer(tmp_path / "in")
    more, file = {"source": str(writer.folder)}, tmp_path / "backup.db"
    with log_servers(tmp_path / "log", 1) as logs:
        async with node(logs, tmp_path / "a.db", log_keep_hours=0.0, **more) as a:
            writer.write()
            await until_all(a, writer)
            async with client(a) as caller, caller.publisher() as publisher:
                await publisher.retract(2)  # number 1
                await publish(caller, 50)
            await trimmed(a)
            async with node(logs, tmp_path / "b.db", **more) as b:
                assert b.node._position.offset > 0, "of the store that it has copied"  # noqa: SLF001
                assert b.coordinator.source_cursors == a.coordinator.source_cursors
                await digest_of(a, b)
                await run("backup", file, f"--server=127.0.0.1:{b.port}", *flags(logs)[:1])
                await a.stop()
                await goes_on(b, writer)
        assert check(tmp_path / "b.db", lambda *_: None) == []
        assert check(file, lambda *_: None) == []
    with log_servers(tmp_path / "others", 1) as logs:
        await run("restore", file, tmp_path / "first.db", *flags(logs))
        async with node(logs, tmp_path / "first.db", **more) as restored:
            await goes_on(restored, writer)


async def goes_on(server, writer):
    """Write one more row; require that the node takes in what came since, and nothing from before."""
    writer.write(1)
    await until(lambda: writer.count - 1 in numbers_of(server))
    assert numbers_of(server) == [0, *range(2, writer.count)]


@pytest.mark.slow
@pytest.mark.processes
async def test_no_row_is_read_while_a_node_does_not_know_such_entries(tmp_path):
    writer = Writer(tmp_path / "in")
    writer.write()
    with log_servers(tmp_path / "log", 1) as logs:
        older = NodeProcess(logs, tmp_path / "older.db", ("tests.replication.later_version", "1"))
        await older.start()
        try:
            async with node(logs, tmp_path / "a.db", source=str(writer.folder)) as a, client(a) as caller:
                applier = a.command_loop.applier
                await until(lambda: {one.rules for one in a.node.slots.placement.leases()} == {1, RULES})
                offset = applier.offset
                await until(lambda: applier.offset > offset + 10)
                async with caller.publisher() as publisher:
                    item = GeoObject({"tea"}, lon=14.5, lat=35.5, ttl_s=3_600)
                    assert await publisher.publish(item) == [1]
                assert (applier.rules, reads(a)) == (1, 0)
                await older.kill()
                await until(lambda: len(numbers_of(a)) == writer.count)
                await until(lambda: (applier.rules, reads(a)) == (RULES, 1))
                assert a.coordinator.latest_object_id == writer.count + 1
        finally:
            await older.kill()
