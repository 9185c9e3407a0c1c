"""The store: what was committed is there, whatever happened to the process."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from safe_region.earth.frame import Area, Frame
from server.errors import StoreError
from server.store import SqliteStore, check, facts, opening
from server.store.mutations import DeleteObject, DeleteSubscription, PutObject, SetTime
from server.store.schema import SCHEMA_VERSION
from tests.store.conftest import FRAME, SPEC, a_subscription, an_object, quiet
from tests.support.stored import ids_of, objects_of, subscriptions_of

ROOT = Path(__file__).resolve().parents[2]


def reopened(store: SqliteStore) -> SqliteStore:
    store.close()
    return SqliteStore(store.path, FRAME)


def test_everything_comes_back_as_it_was(path):
    store = SqliteStore(path, FRAME)
    store.commit([PutObject(an_object(1)), PutObject(an_object(2)), a_subscription("d")], 7)
    store = reopened(store)
    found = store.recover()
    assert objects_of(found, FRAME) == (an_object(1), an_object(2))
    assert subscriptions_of(found) == (a_subscription("d"),)
    assert found.time_ms == 7
    assert found.next_object_id == 3


def test_opening_a_store_and_reading_it_writes_nothing(path):
    store = SqliteStore(path, FRAME)
    store.commit([PutObject(an_object(1)), a_subscription("d")], 7)
    store.close()
    before = path.read_bytes()
    store = SqliteStore(path, FRAME)
    subscriptions_of(store.recover())
    store.close()
    assert path.read_bytes() == before


def test_a_deleted_object_stays_deleted_and_its_id_too(path):
    store = SqliteStore(path, FRAME)
    store.commit([PutObject(an_object(1)), PutObject(an_object(2)), a_subscription("d")], 0)
    store.commit([DeleteObject(2), DeleteSubscription("d", 1)], 0)
    found = reopened(store).recover()
    assert ids_of(found) == [1]
    assert subscriptions_of(found) == ()
    assert found.next_object_id == 3


def test_an_expired_object_does_not_return(path):
    store = SqliteStore(path, FRAME)
    store.commit([PutObject(an_object(1, expiry_ms=100)), PutObject(an_object(2, expiry_ms=101))], 99)
    store.commit([SetTime(100)], 99)
    found = reopened(store).recover()
    assert ids_of(found) == [2]
    assert found.time_ms == 100


def test_kinds_of_subscriptions_lie_side_by_side(path):
    """A kind and a spec is all that a store knows; what JSON can say comes back as it was said."""
    specs = [SPEC, "[]", "7", "null", '"text"', '{"a":{"b":[[1.5e-300,-0.0,1e+22]]}}', '"\\u0000\\n茶"']
    puts = tuple(a_subscription(f"d{i}", i + 1, spec, kind=i % 3) for i, spec in enumerate(specs))
    store = SqliteStore(path, FRAME)
    store.commit(puts, 1)
    store = reopened(store)
    assert subscriptions_of(store.recover()) == puts
    store.close()
    found = facts(path)
    assert found["subscriptions"] == len(specs)
    kinds = ("top-k", "boolean", "top-k_stationary")
    assert [found[f"subscriptions_{kind}"] for kind in kinds] == [3, 2, 2]


def test_a_subscription_is_changed_in_place(path):
    """Spec and kind; the totals of the table are those of what is there."""
    store = SqliteStore(path, FRAME)
    store.commit([a_subscription("d"), a_subscription("d", 2)], 1)
    store.commit([a_subscription("d", 1, "[1]")], 2)
    store.commit([a_subscription("d", 1, "[1]", kind=8), a_subscription("e", 1, "[2]")], 3)
    store.commit([a_subscription("d", 1, "[1]", kind=8)], 4)  # as it is already
    store.commit([a_subscription("d", 2, name="my lunch \u8336")], 5)
    store = reopened(store)
    changed = (
        a_subscription("d", 1, "[1]", kind=8),
        a_subscription("d", 2, name="my lunch \u8336"),
        a_subscription("e", 1, "[2]"),
    )
    assert subscriptions_of(store.recover()) == changed
    assert check(path, quiet) == []
    store.commit([DeleteSubscription("d", 1)], 5)
    assert subscriptions_of(reopened(store).recover()) == changed[1:]
    assert check(path, quiet) == []


NO_JSON = ["", "[", "1,2", "[NaN]", "{'a': 1}"]


@pytest.mark.parametrize("spec", NO_JSON)
def test_a_commit_is_all_or_nothing(path, spec):
    """The last mutation fails: no store can be made to hold what is not JSON."""
    store = SqliteStore(path, FRAME)
    store.commit([PutObject(an_object(1)), a_subscription("d")], 5)
    with pytest.raises(StoreError, match=r"store\.db cannot be written"):
        store.commit([PutObject(an_object(2)), DeleteObject(1), a_subscription("d", 1, spec)], 6)
    found = store.recover()
    assert ids_of(found) == [1]
    assert subscriptions_of(found) == (a_subscription("d"),)
    assert (found.time_ms, found.next_object_id) == (5, 2)
    store.commit([PutObject(an_object(3))], 7)
    store.close()
    assert check(path, quiet) == []


def test_commits_and_checkpoints_wait_for_the_disk(path):
    """Other tests do without, for speed: this is what servers have."""
    assert opening.SYNCHRONOUS == "FULL"
    store = SqliteStore(path, FRAME)
    for database in (store._database, store._upkeep._database):
        assert database.execute("PRAGMA synchronous").fetchone() == (2,)
    store.close()


CRASH = """
import os, sys
from safe_region.earth.frame import Area, Frame
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


@pytest.mark.processes
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
    database.execute(f"PRAGMA user_version={SCHEMA_VERSION + 1}")
    database.close()
    before = path.read_bytes()
    message = f"is of version {SCHEMA_VERSION + 1}, this program reads up to {SCHEMA_VERSION}"
    with pytest.raises(StoreError, match=message):
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
