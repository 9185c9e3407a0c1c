"""What is deleted of a device is not left in the files: neither in the store, nor in its log."""

from __future__ import annotations

import json
import shutil
import sqlite3

import pytest

from server.errors import StoreError
from server.store import SqliteStore, check, compact, upkeep
from server.store.mutations import DeleteDevice, DeleteSubscription, PutObject, SetLastSeen
from tests.store.conftest import FRAME, a_subscription, an_object, quiet
from tests.support.stored import subscriptions_of

pytestmark = pytest.mark.usefixtures("without_fsync")

COUNT = 120
A_PAGE = 6, (1, 2)
"""Devices and sizes of specs that lie in one page: no row is ever moved to another."""


def name(number):
    return f"device-{number:04}-e"


def spec(number, size):
    """A spec with a rare word, up to several pages large."""
    return json.dumps([f"rare-{number:04}-w"] * size)


def fill(store, count=COUNT, sizes=(1, 3, 60, 600)):
    """Commit subscriptions of devices, one commit each, in no order of their names."""
    for i in range(count):
        number = (i * 37) % count
        store.commit(
            [a_subscription(name(number), n, spec(number, s)) for n, s in enumerate(sizes, 1)], i
        )


def left(path, number):
    """Files of the store that have something of a device."""
    found = []
    for one in path.parent.iterdir():
        data = one.read_bytes()
        if name(number).encode() in data or f"rare-{number:04}-w".encode() in data:
            found.append(one.name)
    return found


def free_pages(path):
    """The contents of pages that are free; of those that list them, what lists none."""
    data = path.read_bytes()
    page = int.from_bytes(data[16:18], "big")
    trunk, found = int.from_bytes(data[32:36], "big"), []
    while trunk:
        start = (trunk - 1) * page
        trunk, count = (int.from_bytes(data[start + i : start + i + 4], "big") for i in (0, 4))
        leaves = [start + 8 + 4 * i for i in range(count)]
        found.append(data[start + 8 + 4 * count : start + page])
        numbers = [int.from_bytes(data[i : i + 4], "big") for i in leaves]
        found += [data[(leaf - 1) * page : leaf * page] for leaf in numbers]
    return found


def test_nothing_of_a_deleted_device_is_in_any_file(path):
    store = SqliteStore(path, FRAME)
    fill(store, *A_PAGE)
    assert left(path, 3)
    store.commit([DeleteDevice(name(3))], 7)
    store.upkeep.wait()
    assert left(path, 3) == []
    assert left(path, 4)
    store.close()


def test_of_many_nothing_is_left_in_the_log_and_in_free_pages_and_nothing_at_all_once_compacted(path):
    """SQLite leaves copies of rows that it has moved in unused parts of pages, until they are used."""
    store = SqliteStore(path, FRAME)
    fill(store)
    gone = range(0, COUNT, 3)
    for number in gone:
        store.commit([DeleteDevice(name(number))], COUNT)
    store.upkeep.wait()
    free = free_pages(path)
    assert len(free) > 50
    assert not any(map(any, free)), "they are overwritten"
    assert path.with_name(f"{path.name}-wal").stat().st_size == 0
    assert sum(1 for number in gone if left(path, number)) < len(gone) // 4
    store.close()
    compact(path)
    assert [number for number in gone if left(path, number)] == []
    assert check(path, quiet) == []
    kept = {row.device_id for row in subscriptions_of(SqliteStore(path, FRAME).recover())}
    assert kept == {name(number) for number in range(COUNT) if number % 3}


def test_a_store_that_a_server_has_open_is_not_compacted(path):
    store = SqliteStore(path, FRAME)
    fill(store)
    with pytest.raises(StoreError, match="another server has it open"):
        compact(path)
    store.close()
    with pytest.raises(StoreError, match="does not exist"):
        compact(path.with_name("other.db"))
    other = path.with_name("other.txt")
    other.write_text("no store at all " * 100)
    with pytest.raises(StoreError):
        compact(other)
    assert other.read_text() == "no store at all " * 100


def test_earlier_data_of_a_device_is_not_left_either(path):
    """Subscriptions that it has ended or changed: their pages are overwritten when that is committed."""
    store = SqliteStore(path, FRAME)
    fill(store, 2, (1, 600))  # the second takes several pages
    store.commit([a_subscription(name(1), 1, "[]"), DeleteSubscription(name(1), 2)], COUNT)
    store.commit([PutObject(an_object(1))], COUNT)
    store.commit([DeleteDevice(name(1))], COUNT)
    store.upkeep.wait()
    assert left(path, 1) == []
    assert left(path, 0)
    store.close()


def test_a_reader_keeps_the_log_until_it_has_ended(path, monkeypatch):
    monkeypatch.setattr(upkeep, "_ERASE_AGAIN_S", 0.0)
    store = SqliteStore(path, FRAME)
    fill(store, *A_PAGE)
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM subscriptions").fetchone()
    store.commit([DeleteDevice(name(3))], COUNT)
    store.upkeep.wait()
    assert left(path, 3), "the reader may still look at it"
    store.commit([], COUNT)
    store.upkeep.wait()
    assert left(path, 3)
    reader.close()
    store.commit([], COUNT)
    store.upkeep.wait()
    assert left(path, 3) == []
    store.close()


def test_a_log_that_a_reader_keeps_does_not_hold_up_each_commit(path, monkeypatch):
    monkeypatch.setattr(upkeep, "_ERASE_AGAIN_S", 3_600.0)
    store = SqliteStore(path, FRAME)
    checkpoint, tried = store.upkeep.checkpoint, []
    store.upkeep.checkpoint = lambda: (tried.append(path), checkpoint())
    store.commit([a_subscription("d")], 1)
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM subscriptions").fetchone()
    store.commit([DeleteDevice("d")], 2)
    store.upkeep.wait()
    assert store.upkeep.database.execute("PRAGMA busy_timeout").fetchone() == (0,)
    store.commit([], 3)
    store.upkeep.wait()
    assert len(tried) == 1, "it is tried again later"
    reader.close()
    store.close()


def test_the_log_of_a_server_that_was_killed_while_it_deleted_is_emptied_by_the_next(path, tmp_path):
    store = SqliteStore(path, FRAME)
    store.upkeep.look = lambda: None  # the process ends before it comes to that
    fill(store, *A_PAGE)
    store.commit([DeleteDevice(name(3))], COUNT)
    killed = tmp_path / "killed"
    killed.mkdir()
    for one in (path, path.with_name(f"{path.name}-wal")):
        shutil.copy(one, killed / one.name)
    store.close()
    copy = killed / path.name
    assert left(copy, 3) == [f"{path.name}-wal"]
    again = SqliteStore(copy, FRAME)
    assert name(3) not in {row.device_id for row in subscriptions_of(again.recover())}
    again.commit([], COUNT + 1)
    again.upkeep.wait()
    assert left(copy, 3) == []
    assert copy.with_name(f"{copy.name}-wal").stat().st_size == 0
    again.close()


def test_when_a_device_was_last_seen(path):
    for where in (path, ":memory:"):
        store = SqliteStore(where, FRAME)
        store.commit([a_subscription("d"), a_subscription("e")], 1_000)
        store.commit([a_subscription("d", 2), SetLastSeen("e")], 3_700_000)
        assert (store.last_seen_ms("d"), store.last_seen_ms("e")) == (3_700_000, 3_700_000)
        store.commit([SetLastSeen("e")], 3_800_000)
        assert store.last_seen_ms("e") == 3_700_000, "to the hour"
        store.commit([DeleteDevice("d")], 3_800_000)
        assert store.last_seen_ms("d") is None
        store.close()
