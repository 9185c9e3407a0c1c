"""Backup and restore of a whole cluster: every acknowledged object and subscription is there again."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import sys
from contextlib import closing

import pytest

from cluster.jetstream import JetStreamOptions, connected_log
from cluster.key_shared_records import KeySharedRecords
from cluster.log import LogError
from nearcast import GeoObject, TopK
from safe_region.earth.frame import Area, Frame
from server.errors import StoreError
from server.main import Server
from server.settings import ServerSettings
from server.store import SqliteStore, check
from server.store.device_rows import devices_in, last_seen_in, put_devices
from server.store.mutations import PutSubscription
from tests.replication.conftest import log_servers
from tests.replication.test_devices import (
    COUNT,
    everywhere,
    require_exact,
    settled,
    shared,
    spec_of,
    subscribed,
)
from tests.replication.test_nodes import AREA, client, digest_of, load, node, searched, settings_of, until
from tests.support.amounts import SEED
from tests.support.servers import serving

pytestmark = pytest.mark.processes


async def run(*arguments, status=0):
    """Run `nearcast cluster`; return its output, or the error."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "cli", "cluster", *map(str, arguments)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, error = await process.communicate()
    assert process.returncode == status, error.decode()
    assert b"Traceback" not in error
    return (error if status else out).decode()


def flags(logs):
    """Return the options for the log."""
    return (
        f"--log={','.join(one.url for one in logs)}",
        f"--log-monitor={','.join(one.monitor_url for one in logs)}",
        f"--log-replicas={len(logs)}",
    )


def objects_of(server):
    """Return the objects of a node, by id."""
    return {
        item.object_id: (item.lon, item.lat, item.keywords, item.expiry_ms, item.payload, item.key)
        for item in server.coordinator.log_objects.all()
    }


async def test_a_restored_cluster_has_all_that_was_acknowledged_before_the_backup(tmp_path):
    """Publications and subscriptions go on during the backup; what was there before is compared."""
    numbers, file = range(COUNT), tmp_path / "cluster.db"
    with log_servers(tmp_path / "log", 3) as logs:
        async with node(logs, tmp_path / "a.db") as a, node(logs, tmp_path / "b.db") as b:
            await shared(a, b)
            async with client(a) as caller, caller.publisher() as publisher:
                some = [
                    GeoObject({"tea", "ice"}, lon=14.5 + i / 1_000, lat=35.5, ttl_s=3_600)
                    for i in range(300)
                ]
                ids = await publisher.publish(some)
                await subscribed([a, b], numbers)
                await digest_of(a, b)
                before = objects_of(b)
                assert set(ids) <= set(before)
                loading = asyncio.create_task(load(publisher, random.Random(SEED), 100_000))
                offset = b.command_loop.applier.offset
                out = await run("backup", file, f"--server=127.0.0.1:{b.port}", *flags(logs)[:1])
                loading.cancel()
                await asyncio.gather(loading, return_exceptions=True)
            assert f"{COUNT} subscriptions" in out
            assert check(file, lambda *_: None) == []
            assert "already exists" in await run(
                "backup", file, f"--server=127.0.0.1:{b.port}", *flags(logs)[:1], status=1
            )
    with log_servers(tmp_path / "others", 1) as logs:
        out = await run("restore", file, tmp_path / "first.db", *flags(logs))
        assert f"{COUNT} subscriptions" in out
        async with node(logs, tmp_path / "first.db") as a:
            assert a.command_loop.applier.offset > offset
            found = objects_of(a)
            assert {one: found.get(one) for one in ids} == {one: before[one] for one in ids}
            await settled(a)
            async with node(logs, tmp_path / "second.db") as b:
                await digest_of(a, b)
                await shared(a, b)
                await require_exact([a, b], numbers)
                assert await searched(a) == await searched(b)
                async with everywhere([a, b]) as caller, caller.publisher() as publisher:
                    (latest,) = await publisher.publish(
                        GeoObject({"tea"}, lon=14.5, lat=35.5, ttl_s=3_600)
                    )
                    assert latest > max(found)
                    device = await caller.attach("new", lon=14.5, lat=35.5)
                    offers = await device.subscribe(TopK({"tea"}, k=1))
                    await until(lambda: [one.object.id for one in offers.results()] == [latest])
                await digest_of(a, b)
        with pytest.raises(StoreError, match="has the objects of another log"):
            await Server(settings_of(logs, tmp_path / "a.db")).start()
        error = await run("restore", file, tmp_path / "again.db", *flags(logs), status=1)
        assert "stream nearcast exists, must be absent" in error
        assert not (tmp_path / "again.db").exists()


async def records_of(logs):
    """Return the records of devices in a log."""
    options = JetStreamOptions([one.url for one in logs], [one.monitor_url for one in logs], replicas=1)
    log = await connected_log(options)
    try:
        return await KeySharedRecords(log.keys).devices()
    finally:
        await log.close()


@pytest.mark.slow
async def test_a_restored_cluster_continues_to_count_when_devices_were_last_seen(tmp_path):
    """One device has no record, as in a cluster that had no retention when it subscribed."""
    numbers, file = range(3), tmp_path / "cluster.db"
    with log_servers(tmp_path / "log", 1) as logs:
        async with node(logs, tmp_path / "a.db") as a:
            await settled(a)
            await subscribed([a], [3])
        async with node(logs, tmp_path / "b.db", subscription_retention_days=30.0) as b:
            await settled(b)
            await subscribed([b], numbers)
            before = await records_of(logs)
            await run("backup", file, f"--server=127.0.0.1:{b.port}", *flags(logs)[:1])
    assert {f"d{number}" for number in numbers} <= {one.device_id for one in before.seen}
    assert check(file, lambda *_: None) == []
    with log_servers(tmp_path / "others", 1) as logs:
        await run("restore", file, tmp_path / "first.db", *flags(logs))
        after = await records_of(logs)
        assert after.subscriptions == before.subscriptions
        assert sorted(after.seen, key=str) == sorted(before.seen, key=str)


def test_times_in_a_backup(tmp_path):
    """A device that was seen during the backup, or is without a record, counts as seen at a start."""
    file = tmp_path / "cluster.db"
    store = SqliteStore(file, Frame.of(Area(14.0, 35.0, 15.0, 36.0)))
    store.commit([], 5_000, 5_000)
    store.close()
    put = [PutSubscription(name, number, 1, "{}", "") for name in "abc" for number in (1, 2)]
    put_devices(file, put, {"a": 4_000, "b": 6_000, "other": 1_000}, b"first entry")
    assert list(devices_in(file)) == put
    assert list(last_seen_in(file)) == [("a", 4_000)]
    assert check(file, lambda *_: None) == []


@pytest.mark.slow
async def test_a_restore_that_has_not_ended_is_not_taken_for_a_log(tmp_path):
    with log_servers(tmp_path / "log", 1) as logs:
        async with node(logs, tmp_path / "a.db") as a:
            await settled(a)
            await subscribed([a], range(3))
            await run("backup", tmp_path / "c.db", f"--server=127.0.0.1:{a.port}", *flags(logs)[:1])
    with closing(sqlite3.connect(tmp_path / "c.db")) as database:
        rows = database.execute("SELECT device_id, name FROM subscriptions").fetchall()
        assert rows == [(f"d{number}", f"n{number}") for number in range(3)]
    assert spec_of(0).k == 1
    with log_servers(tmp_path / "others", 1) as logs:
        (tmp_path / "taken.db").write_bytes(b"")
        error = await run("restore", tmp_path / "c.db", tmp_path / "taken.db", *flags(logs), status=1)
        assert "taken.db already exists" in error
        log = await connected_log(
            JetStreamOptions([one.url for one in logs], [one.monitor_url for one in logs], replicas=1)
        )
        await log.create(after=50)  # as a restore that is killed after its first step
        await log.close()
        with pytest.raises(LogError, match="the first entry of the log is lost: a restore has not ended"):
            await Server(settings_of(logs, tmp_path / "b.db")).start()


@pytest.mark.slow
async def test_what_is_no_backup_of_a_cluster_is_refused(tmp_path):
    with log_servers(tmp_path / "log", 1) as logs:
        async with node(logs, tmp_path / "a.db", log_stream="other") as a:
            error = await run(
                "backup", tmp_path / "c.db", f"--server=127.0.0.1:{a.port}", *flags(logs)[:1], status=1
            )
            assert "the log" in error
            assert not (tmp_path / "c.db").exists()
        error = await run("restore", tmp_path / "a.db", tmp_path / "new.db", *flags(logs), status=1)
        assert "is the store of a server, not the backup of a cluster" in error
        error = await run("backup", tmp_path / "c.db", "--server=127.0.0.1:1", *flags(logs)[:1], status=1)
        assert "does not respond" in error
        alone = ServerSettings(area=AREA, port=0, store=":memory:")
        async with serving(alone) as server:
            target = f"--server=127.0.0.1:{server.port}"
            error = await run("backup", tmp_path / "c.db", target, *flags(logs)[:1], status=1)
            assert "it is not the node of a cluster" in error
    damaged = tmp_path / "damaged.db"
    damaged.write_bytes((tmp_path / "a.db").read_bytes()[:-4_096])
    error = await run("restore", damaged, tmp_path / "new.db", "--log=nats://127.0.0.1:1", status=1)
    assert "no server of the log can be reached" in error
