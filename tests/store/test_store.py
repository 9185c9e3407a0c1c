"""The store: what was committed is there, whatever happened to the process."""

from __future__ import annotations

import math
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from safe_region.frame import Area, Frame
from safe_region.scoring import Similarity
from server.errors import StoreError
from server.model import LiveObject, TopK
from server.store import SqliteStore
from server.store.mutations import DeleteObject, DeleteSubscription, PutObject, PutSubscription, SetTime
from tests.support.stored import ids_of, objects_of, subscriptions_of

FRAME = Frame.of(Area(14.0, 35.0, 15.0, 36.0))
ROOT = Path(__file__).resolve().parents[2]


def an_object(object_id: int, expiry_ms: int = 10_000) -> LiveObject:
    return LiveObject(
        object_id,
        14.1,
        35.7,
        FRAME.project(14.1, 35.7),
        ("ice", "tea é"),
        5,
        expiry_ms,
        b"\x00\xff",
        f"k{object_id}",
    )


SPEC = TopK(("sushi", "茶"), 3, 0.1 + 0.2, Similarity.DICE)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


def reopened(store: SqliteStore) -> SqliteStore:
    store.close()
    return SqliteStore(store.path, FRAME)


def test_everything_comes_back_as_it_was(path):
    store = SqliteStore(path, FRAME)
    rows = [PutObject(an_object(1)), PutObject(an_object(2)), PutSubscription("d", 1, SPEC)]
    store.commit(rows, 7)
    store = reopened(store)
    found = store.recover()
    assert objects_of(found, FRAME) == (an_object(1), an_object(2))
    assert subscriptions_of(found) == (PutSubscription("d", 1, SPEC),)
    assert found.time_ms == 7
    assert found.next_object_id == 3


def test_what_is_deleted_stays_away_and_its_id_too(path):
    store = SqliteStore(path, FRAME)
    store.commit([PutObject(an_object(1)), PutObject(an_object(2)), PutSubscription("d", 1, SPEC)], 0)
    store.commit([DeleteObject(2), DeleteSubscription("d", 1)], 0)
    found = reopened(store).recover()
    assert ids_of(found) == [1]
    assert subscriptions_of(found) == ()
    assert found.next_object_id == 3


def test_what_has_expired_does_not_come_back(path):
    store = SqliteStore(path, FRAME)
    store.commit([PutObject(an_object(1, expiry_ms=100)), PutObject(an_object(2, expiry_ms=101))], 99)
    store.commit([SetTime(100)], 99)
    found = reopened(store).recover()
    assert ids_of(found) == [2]
    assert found.time_ms == 100


def test_a_replaced_subscription_is_the_new_one(path):
    store = SqliteStore(path, FRAME)
    store.commit([PutSubscription("d", 1, SPEC)], 0)
    other = TopK(("tea",), 1, 0.5)
    store.commit([PutSubscription("d", 1, other)], 0)
    assert subscriptions_of(reopened(store).recover()) == (PutSubscription("d", 1, other),)


def test_a_commit_is_all_or_nothing(path):
    store = SqliteStore(path, FRAME)
    store.commit([PutObject(an_object(1))], 5)
    broken = PutSubscription(
        "d", 1, TopK(("x",), 1, math.nan)
    )  # SQLite makes it null: the last row fails
    with pytest.raises(StoreError, match=r"store\.db cannot be written"):
        store.commit([PutObject(an_object(2)), DeleteObject(1), broken], 6)
    found = store.recover()
    assert ids_of(found) == [1]
    assert (found.time_ms, found.next_object_id) == (5, 2)
    store.commit([PutObject(an_object(3))], 7)


CRASH = """
import os, sys
from safe_region.frame import Area, Frame
from server.model import LiveObject
from server.store.mutations import PutObject
from server.store import SqliteStore
frame = Frame.of(Area(14.0, 35.0, 15.0, 36.0))
store = SqliteStore(sys.argv[1], frame)
number = 0
while True:
    number += 1
    item = LiveObject(number, 14.1, 35.7, frame.project(14.1, 35.7), ("a",), 0, 10**9, bytes(500), "")
    store.commit([PutObject(item)], number)
    print(number, flush=True)
"""


@pytest.mark.parametrize("count", [1, 7, 60])
def test_kill_9_loses_nothing_that_was_acknowledged(path, count):
    process = subprocess.Popen(
        [sys.executable, "-c", CRASH, str(path)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    for _ in range(count):
        process.stdout.readline()
    os.kill(process.pid, signal.SIGKILL)
    acknowledged = count + len(process.stdout.read().splitlines())
    process.wait()
    found = SqliteStore(path, FRAME).recover()
    ids = ids_of(found)
    assert ids == list(range(1, len(ids) + 1))
    # The last one may have been committed and not yet told.
    assert acknowledged <= len(ids) <= acknowledged + 1
    assert found.next_object_id == len(ids) + 1
    assert found.time_ms == len(ids)


def test_another_frame(path):
    SqliteStore(path, FRAME).close()
    with pytest.raises(StoreError, match=r"is of the area \(14.0, 35.0, 15.0, 36.0\)"):
        SqliteStore(path, Frame.of(Area(14.0, 35.0, 15.0, 36.5)))
    SqliteStore(path, FRAME).close()


def test_a_newer_version(path):
    SqliteStore(path, FRAME).close()
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version=4")
    database.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="is of version 4, this program reads up to 3"):
        SqliteStore(path, FRAME)
    assert path.read_bytes() == before


def test_the_database_of_another_application(path):
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE theirs (x)")
    database.close()
    with pytest.raises(StoreError, match="database of another application"):
        SqliteStore(path, FRAME)
    tables = sqlite3.connect(path).execute("SELECT name FROM sqlite_schema").fetchall()
    assert tables == [("theirs",)]


def test_no_database_at_all(path):
    path.write_text("hello " * 100)
    with pytest.raises(StoreError, match=r"store\.db cannot be used"):
        SqliteStore(path, FRAME)
    assert path.read_text() == "hello " * 100


def test_a_store_in_use(path):
    first = SqliteStore(path, FRAME)
    with pytest.raises(StoreError, match="another server has it open"):
        SqliteStore(path, FRAME)
    first.commit([PutObject(an_object(1))], 0)
    first.close()
    SqliteStore(path, FRAME).close()


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(StoreError, match="cannot be opened"):
        SqliteStore(tmp_path / "nowhere" / "store.db", FRAME)
