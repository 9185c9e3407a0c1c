"""Devices that nobody hears of any more are forgotten; those that are there, or were lately, are not."""

from __future__ import annotations

import asyncio

import pytest

from server import clock as server_clock
from server import command as c
from server.core.coordinator import Coordinator
from server.errors import StoreError
from server.limits import Limits
from server.model import Place, TopK
from server.runtime import retention
from server.runtime.command_loop import CommandLoop
from server.runtime.retention import DAY_MS, LOOK_MS, StoreRetention
from server.session import Outbox, VersionedDelta, Welcome
from server.store import SqliteStore
from tests.server.test_command_loop import FRAME, Clock, an_object
from tests.support.stored import subscriptions_of

SUSHI = TopK(("sushi",), 3, 0.5)
HERE = Place(14.5, 35.5)
DAYS = 30


class Host:
    """A store, and the command loop over it."""

    def __init__(self, path, clock) -> None:
        self.path = path
        self.clock = clock

    async def start(self, days=DAYS):
        self.store = SqliteStore(self.path, FRAME)
        coordinator = Coordinator(FRAME, Limits(), clock=server_clock.Clock(self.clock, self.clock))
        coordinator.recover(self.store.recover())
        self.retention = StoreRetention(self.store, days)
        self.command_loop = CommandLoop(coordinator, self.store, self.retention)
        self.running = asyncio.create_task(self.command_loop.run())
        await self.command_loop.execute(c.Sync())

    async def stop(self):
        self.command_loop.stop()
        await self.running
        self.store.close()

    async def subscribe(self, device_id, subscriptions=1):
        line = Outbox()
        await self.command_loop.enqueue(c.Hello(line, device_id, b"n", 0, HERE))
        for number in range(1, subscriptions + 1):
            await self.command_loop.enqueue(c.Subscribe(line, device_id, number, SUSHI, HERE))
        await self.command_loop.execute(c.Sync())
        return line

    async def leave(self, device_id, line):
        self.command_loop.enqueue_detach(c.Detach(line, device_id))
        await self.command_loop.execute(c.Sync())

    async def pass_days(self, days):
        """Let time pass, and the look that is due then be done."""
        self.clock.now_ms += int(days * DAY_MS)
        await self.command_loop.execute(c.Sync())
        await self.retention.stop()
        await self.command_loop.execute(c.Sync())

    def on_disk(self):
        return [row.device_id for row in subscriptions_of(self.store.recover())]

    def known(self):
        return sorted(self.command_loop.coordinator.sessions)


@pytest.fixture
async def host(tmp_path):
    host = Host(tmp_path / "store.db", Clock())
    await host.start()
    yield host
    await host.stop()


async def test_a_device_not_seen_for_the_time_is_deleted_and_no_other(host):
    await host.leave("gone", await host.subscribe("gone", subscriptions=2))
    line = await host.subscribe("there")
    await host.pass_days(DAYS - 1)
    await host.leave("lately", await host.subscribe("lately"))
    assert host.on_disk() == ["gone", "gone", "lately", "there"]
    await host.pass_days(1.5)
    assert host.on_disk() == ["lately", "there"]
    assert host.known() == ["lately", "there"]
    assert host.command_loop.coordinator.counters.devices_forgotten == 1
    host.command_loop.coordinator.check()
    # Who is there goes on hearing everything.
    host.command_loop.coordinator.router.take(line, 100)
    await host.command_loop.execute(c.Publish((an_object(),)))
    events = host.command_loop.coordinator.router.take(line, 100)
    assert [type(event) for _, event in events] == [VersionedDelta]


async def test_being_there_counts_until_the_moment_of_leaving(host):
    line = await host.subscribe("d")
    await host.pass_days(DAYS + 10)
    await host.leave("d", line)
    await host.pass_days(DAYS - 1)
    assert host.on_disk() == ["d"]
    await host.pass_days(2)
    assert host.on_disk() == []


async def test_a_device_that_is_there_when_the_server_dies_is_remembered_from_the_last_look_on(host):
    await host.subscribe("d")
    await host.pass_days(DAYS + 10)
    await host.command_loop.execute(c.Publish((an_object(),)))
    # The process ends without a word: the device was never detached.
    host.command_loop.stop()
    await host.running
    host.store.close()
    await host.start()
    await host.pass_days(DAYS - 1)
    assert host.on_disk() == ["d"]
    await host.pass_days(2)
    assert host.on_disk() == []
    assert host.known() == []


async def test_after_a_start_there_is_an_hour_to_come_back(host):
    await host.leave("d", await host.subscribe("d"))
    await host.stop()
    host.clock.now_ms += 10 * DAYS * DAY_MS
    await host.start()
    await host.pass_days(0.9 * LOOK_MS / DAY_MS)
    assert host.on_disk() == ["d"]
    line = Outbox()
    await host.command_loop.enqueue(c.Hello(line, "d", b"n", 0, HERE))
    await host.pass_days(0.2 * LOOK_MS / DAY_MS)
    assert host.on_disk() == ["d"]
    events = [type(event) for _, event in host.command_loop.coordinator.router.take(line, 10)]
    assert events == [Welcome, VersionedDelta]


async def test_a_deleted_device_may_start_again(host):
    await host.leave("d", await host.subscribe("d"))
    await host.pass_days(DAYS + 1)
    assert host.known() == []
    line = await host.subscribe("d")
    welcome = host.command_loop.coordinator.router.take(line, 1)[0][1]
    assert welcome.subscriptions == ()
    assert host.on_disk() == ["d"]


def refuse(*_arguments):
    raise StoreError("the disk is full")


async def test_devices_that_come_and_go_while_the_disk_is_full_wait_once_each(host, monkeypatch):
    await host.leave("d", await host.subscribe("d"))
    coordinator = host.command_loop.coordinator
    with monkeypatch.context() as patched:
        patched.setattr(host.store, "commit", refuse)
        for _ in range(50):
            line = Outbox()
            await host.command_loop.enqueue(c.Hello(line, "d", b"n", 0, HERE))
            await host.leave("d", line)
        host.clock.now_ms += 10 * DAY_MS
        await host.command_loop.execute(c.Sync())
        assert coordinator.late_count == 1
    before_ms = host.store.last_seen_ms("d")
    await host.pass_days(1)
    assert host.store.last_seen_ms("d") > before_ms
    assert coordinator.late_count == 0


async def test_devices_that_cannot_be_deleted_now_are_looked_for_again_later(host, monkeypatch):
    monkeypatch.setattr(retention, "DEVICES_MAX", 2)
    for name in "abc":
        await host.leave(name, await host.subscribe(name))
    await host.pass_days(1)
    looks, overdue = [], host.store.overdue
    monkeypatch.setattr(host.store, "overdue", lambda *some: looks.append(some) or overdue(*some))
    with monkeypatch.context() as patched:
        patched.setattr(host.store, "commit", refuse)
        await host.pass_days(DAYS + 1)
        for _ in range(20):
            await host.command_loop.execute(c.Sync())
            await host.retention.stop()
        assert len(looks) == 1
    for _ in range(3):
        await host.pass_days(1)
    assert host.on_disk() == []


async def test_without_a_time_no_device_is_deleted(tmp_path):
    host = Host(tmp_path / "other.db", Clock())
    await host.start(days=0)
    await host.leave("d", await host.subscribe("d"))
    await host.pass_days(100_000)
    assert host.on_disk() == ["d"]
    await host.stop()
