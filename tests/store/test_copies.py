"""Backups while a server writes, stores made of them, and what both refuse."""

from __future__ import annotations

import sqlite3
import threading

import pytest

from server.errors import StoreError
from server.store import SqliteStore, backup, check, facts, restore, schema
from server.store.mutations import DeleteObject, PutObject
from tests.store.conftest import FRAME, a_subscription, an_object, quiet
from tests.support.stored import ids_of, objects_of, subscriptions_of

LATE_MS = 10**9


def filled(path, count=2_000):
    store = SqliteStore(path, FRAME)
    store.commit([PutObject(an_object(number, LATE_MS, bytes(900))) for number in range(1, count)], 7)
    store.commit([a_subscription("d")], 8)
    return store


def test_a_backup_is_restored_as_it_was(path, tmp_path):
    filled(path).close()
    backup(path, tmp_path / "backup.db", quiet)
    restore(tmp_path / "backup.db", tmp_path / "again.db", quiet)
    one, other = SqliteStore(path, FRAME), SqliteStore(tmp_path / "again.db", FRAME)
    found, again = one.recover(), other.recover()
    assert objects_of(found, FRAME) == objects_of(again, FRAME)
    assert subscriptions_of(found) == subscriptions_of(again)
    assert (found.time_ms, found.next_object_id) == (again.time_ms, again.next_object_id)
    other.commit([PutObject(an_object(again.next_object_id))], 9)
    one.close()
    other.close()


def test_a_backup_beside_a_server_is_one_moment_of_it(path, tmp_path):
    """Commits go on between the pages of the copy; each has one object more and the one before less."""
    store = filled(path, 6_000)
    written = threading.Event()
    ended = threading.Event()
    last = [0]

    def write():
        store.commit([PutObject(an_object(9_999, LATE_MS))], 9_999)
        number = 10_000
        while not ended.is_set():
            store.commit([PutObject(an_object(number, LATE_MS)), DeleteObject(number - 1)], number)
            last[0] = number
            number += 1
            written.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = []

    def progress(stage, _done, _total):
        if stage == "pages":
            seen.append(last[0])
            written.clear()
            assert written.wait(20.0), "the server waits for the copy"

    written.wait(20.0)
    first = last[0]
    try:
        backup(path, tmp_path / "backup.db", progress)
    finally:
        ended.set()
        writer.join()
    store.close()
    assert len(seen) > 2
    copy = SqliteStore(tmp_path / "backup.db", FRAME)
    found = copy.recover()
    *others, newest = ids_of(found)
    copy.close()
    assert others == list(range(1, 6_000))
    assert first <= newest <= seen[0], "everything acknowledged before it began, nothing of later"
    assert found.time_ms == newest
    assert check(path, quiet) == []


def test_a_backup_is_one_file(path, tmp_path):
    store = filled(path)
    folder = tmp_path / "backups"
    folder.mkdir()
    backup(path, folder / "backup.db", quiet)
    assert [one.name for one in folder.iterdir()] == ["backup.db"]
    assert check(folder / "backup.db", quiet) == []
    store.close()


def test_nothing_is_overwritten(path, tmp_path):
    filled(path, 5).close()
    other = tmp_path / "other"
    other.write_text("precious")
    for copy in (backup, restore):
        with pytest.raises(StoreError, match="already exists"):
            copy(path, other, quiet)
    assert other.read_text() == "precious"


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal", "-mark"])
def test_a_restore_does_not_take_the_log_of_another_store(path, tmp_path, suffix):
    filled(path, 5).close()
    (tmp_path / f"again.db{suffix}").write_bytes(b"rest")
    with pytest.raises(StoreError, match=f"again.db{suffix} already exists"):
        restore(path, tmp_path / "again.db", quiet)
    assert not (tmp_path / "again.db").exists()


def test_a_restore_fails_if_another_process_creates_a_store_there(path, tmp_path):
    filled(path, 5).close()
    store = SqliteStore(tmp_path / "again.db", FRAME)
    (tmp_path / "again.db").rename(tmp_path / "moved.db")
    for suffix in ("-wal", "-shm", "-mark"):
        (tmp_path / f"again.db{suffix}").unlink()
    with pytest.raises(StoreError, match="another server has it open"):
        restore(path, tmp_path / "again.db", quiet)
    assert not (tmp_path / "again.db").exists()
    store.close()


def test_a_damaged_store_is_neither_backed_up_nor_restored(path, tmp_path):
    filled(path).close()
    database = sqlite3.connect(path)
    database.execute("UPDATE objects SET lon = lon + 0.001 WHERE object_id = 77")
    database.commit()
    database.close()
    for copy in (backup, restore):
        with pytest.raises(StoreError, match="row 77 of objects does not match its checksum"):
            copy(path, tmp_path / "copy.db", quiet)
    names = {one.name for one in tmp_path.iterdir()} - {"store.db-wal", "store.db-shm"}
    assert names == {"store.db", "store.db.lock", "store.db-mark"}


def test_files_that_are_no_store(path, tmp_path):
    for work in (lambda: backup(path, tmp_path / "b.db", quiet), lambda: check(path, quiet)):
        with pytest.raises(StoreError, match="does not exist"):
            work()
    with pytest.raises(StoreError, match="does not exist"):
        facts(path)
    theirs = sqlite3.connect(path)
    theirs.execute("CREATE TABLE theirs (x)")
    theirs.close()
    with pytest.raises(StoreError, match="another application"):
        backup(path, tmp_path / "b.db", quiet)
    with pytest.raises(StoreError, match="another application"):
        facts(path)


def test_a_copy_that_cannot_be_written(path, tmp_path):
    filled(path).close()
    with pytest.raises(StoreError, match="cannot be copied"):
        backup(path, tmp_path / ("b" * 252), quiet)  # with `.part` too long a name
    names = {f"{path.name}{suffix}" for suffix in ("", ".lock", "-mark", "-wal", "-shm")}
    assert {one.name for one in tmp_path.iterdir()} <= names


@pytest.mark.parametrize("copy", [backup, restore])
def test_a_folder_is_not_made(path, tmp_path, copy):
    filled(path).close()
    target = tmp_path / "nowhere" / "b.db"
    with pytest.raises(StoreError, match=r"the folder .*nowhere does not exist"):
        copy(path, target, quiet)
    assert not target.parent.exists()


def test_a_new_store_that_is_discarded_leaves_nothing(path, tmp_path):
    SqliteStore(path, FRAME).discard()
    assert not list(tmp_path.iterdir())


def test_a_store_that_was_there_stays_when_it_is_discarded(path):
    filled(path).close()
    content = path.read_bytes()
    SqliteStore(path, FRAME).discard()
    assert path.read_bytes() == content


def test_a_new_store_that_cannot_be_made_leaves_nothing(path, tmp_path, monkeypatch):
    monkeypatch.setattr(schema, "CREATE", (*schema.CREATE, "CREATE nonsense"))
    with pytest.raises(StoreError):
        SqliteStore(path, FRAME)
    assert not list(tmp_path.iterdir())


def test_facts_are_those_of_the_store(path):
    store = filled(path)
    store.commit([PutObject(an_object(5_000, expiry_ms=9))], 9)
    found = facts(path)
    assert found["in_use"]
    assert (found["objects"], found["objects_expired"]) == (2_000, 1)
    assert (found["subscriptions"], found["devices"]) == (1, 1)
    assert (found["time_ms"], found["next_object_id"]) == (9, 5_001)
    assert found["log_bytes"] > 0
    store.close()
    assert not facts(path)["in_use"]
