"""`nearcast serve --processes`: two nodes and a log on this machine, killed in parts and as a whole."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest

import nearcast
from cluster.local_servers import program
from nearcast import GeoObject, SubscriptionState, TopK
from tests.cli.test_serve import refused
from tests.cli.test_serve_errors import NO_CREATE
from tests.replication.test_nodes import AREA, ids_of, until
from tests.replication.test_source import Writer

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
    pytest.mark.skipif(program() is None, reason="nats-server is not installed"),
]

COUNT = 12
PLACE = {"lon": 14.5, "lat": 35.5}
ALL = TopK({"tea"}, k=100)


class Machine:
    """The command with two processes."""

    def __init__(self, folder):
        self.folder = folder
        self.addresses = {}
        """By node, as in the latest line about it."""
        self.lines = []

    async def start(self, *flags):
        self.lines.clear()
        self.addresses.clear()
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "cli", "serve", f"--area={AREA}", "--processes=2", "--port=0"),
            *(f"--store={self.folder}", *flags),
            stdout=asyncio.subprocess.PIPE,
        )
        self._reading = asyncio.create_task(self._read())
        await until(lambda: "all 2 nodes are ready" in self.lines or self._reading.done())
        assert len(self.addresses) == 2, self.lines

    async def _read(self):
        async for line in self._process.stdout:
            text = line.decode().strip()
            if found := re.fullmatch(r"node (\d) serving on (\S+)", text):
                self.addresses[int(found[1])] = found[2]
            self.lines.append(text)

    @property
    def targets(self):
        return list(self.addresses.values())

    def child(self, part):
        """Return the process whose command line has a text."""
        (found,) = [pid for pid in self.children() if part in command_of(pid)]
        return found

    def children(self):
        pid = self._process.pid
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
        return [int(one) for one in text.split()]

    async def signal(self, number):
        if self._process.returncode is None:
            self._process.send_signal(number)
        status = await self._process.wait()
        await self._reading
        return status


def command_of(pid):
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode()
    return ""


async def publish(caller, count):
    async with caller.publisher() as publisher:
        return await publisher.publish([GeoObject({"tea"}, **PLACE, ttl_s=3_600) for _ in range(count)])


async def require(caller, offers, published):
    """Wait until devices have results, which are all objects that were acknowledged."""
    found = ids_of(await caller.search(ALL, **PLACE))
    assert sorted(found) == sorted(published)
    await until(
        lambda: all(
            one.state is SubscriptionState.EXACT and ids_of(one.results()) == found for one in offers
        )
    )


@pytest.mark.slow
async def test_nothing_is_lost_when_a_node_or_everything_is_killed(tmp_path):
    machine = Machine(tmp_path / "city")
    await machine.start("--create")
    try:
        async with nearcast.connect(machine.targets) as caller:
            devices = [await caller.attach(f"d{i}", **PLACE) for i in range(COUNT)]
            offers = [await one.subscribe(ALL) for one in devices]
            published = await publish(caller, 20)
            await require(caller, offers, published)
            before, lines = machine.targets, len(machine.lines)
            os.kill(machine.child("node1.db"), signal.SIGKILL)
            await until(lambda: len(machine.lines) > lines)
            assert machine.targets == before, "a node has its port again"
            published += await publish(caller, 20)
            await require(caller, offers, published)
            os.kill(machine.child("nats-server"), signal.SIGKILL)
            published += await publish(caller, 20)
            await require(caller, offers, published)
        await until(lambda: len(machine.children()) == 3)
        children = machine.children()
        await machine.signal(signal.SIGKILL)
        await until(lambda: not any(map(command_of, children)))
        await machine.start()
        async with nearcast.connect(machine.targets) as caller:
            devices = [await caller.attach(f"d{i}", **PLACE) for i in range(COUNT)]
            await require(caller, [one for device in devices for one in device.subscriptions], published)
            assert [len(one.subscriptions) for one in devices] == [1] * COUNT
        assert await machine.signal(signal.SIGTERM) == 0
        assert machine.lines[0].startswith("the log is on one disk, in ")
    finally:
        await machine.signal(signal.SIGKILL)


@pytest.mark.slow
async def test_one_of_the_processes_has_source_and_sink_and_another_one_when_it_is_killed(tmp_path):
    writer = Writer(tmp_path / "in")
    machine = Machine(tmp_path / "city")
    await machine.start("--create", f"--source={writer.folder}", f"--sink={tmp_path / 'out'}")
    try:
        async with nearcast.connect(machine.targets) as caller:
            writer.write()
            await until_taken_in(caller, writer)
            reader = await reading_node(machine)
            os.kill(machine.child(f"node{reader}.db"), signal.SIGKILL)
            writer.write()
            await until_taken_in(caller, writer)
            await until_written(caller, tmp_path / "out")
        assert await machine.signal(signal.SIGTERM) == 0
    finally:
        await machine.signal(signal.SIGKILL)


async def test_without_a_reader_of_their_output_they_serve_and_end_cleanly(tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "cli", "serve", f"--area={AREA}", "--processes=2", "--port=0"),
        *(f"--store={tmp_path / 'city'}", "--create"),
        stdout=writer,
        stderr=asyncio.subprocess.PIPE,
    )
    os.close(writer)
    lines = []
    try:
        while sum("serving on " in line for line in lines) < 2:
            line = await process.stderr.readline()
            assert line, lines
            lines.append(line.decode())
        process.terminate()
        lines.append((await process.stderr.read()).decode())
        assert await process.wait() == 0
    finally:
        with suppress(ProcessLookupError):
            process.kill()
    assert not re.search("Exception|Traceback|Broken pipe", "".join(lines))


async def until_taken_in(caller, writer):
    """Wait until all rows are objects; require that each is one."""
    ids = []
    while len(ids) < writer.count:
        ids = ids_of(await caller.search(ALL, **PLACE))
    assert sorted(ids) == list(range(1, writer.count + 1))


async def until_written(caller, folder):
    """Publish until the sink has begun, and wait until it has everything."""
    while not folder.exists():
        await publish(caller, 1)
    while (await caller.status()).gauges["sink_waiting"]:
        pass


async def reading_node(machine):
    """Return the number of the node that reads the source."""
    while True:
        for number, address in machine.addresses.items():
            async with nearcast.connect(address) as caller:
                if (await caller.status()).gauges["cluster_source"]:
                    return number


def test_two_of_them_do_not_share_a_folder_and_a_folder_is_not_made_by_mistake(tmp_path):
    import fcntl  # noqa: PLC0415

    flags = ("serve", f"--area={AREA}", "--processes=2", "--port=0")
    assert "store must be a folder with --processes" in refused(*flags)
    missing = refused(*flags, f"--store={tmp_path / 'none'}", environment=NO_CREATE)
    assert missing.endswith("none', must exist; --create makes a new folder\n")
    (tmp_path / "file").touch()
    assert "must be a folder with --processes, not a file" in refused(
        *flags, f"--store={tmp_path / 'file'}"
    )
    with (tmp_path / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        used = refused(*flags, f"--store={tmp_path}")
    assert "must not be used by another process of nearcast" in used


def test_the_message_of_a_node_that_does_not_start_is_not_lost(tmp_path):
    (tmp_path / "node1.db").mkdir()
    message = refused(
        "serve", f"--area={AREA}", "--processes=2", "--port=0", f"--store={tmp_path}", quiet=False
    )
    assert "must be a file, not a folder" in message
    assert message.endswith("Error: node 1 has ended with status 1 before it was ready\n")
