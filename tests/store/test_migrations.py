"""Stores of an older version: brought up to date as a whole, or left as they were.

The next version, and the step that leads to it, are made here.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import contextmanager
from pathlib import Path

import pytest

from safe_region.scoring.idf import IdfTable
from server.errors import StoreError
from server.store import (
    SqliteStore,
    backup,
    check,
    compact,
    facts,
    migrations,
    opening,
    reading,
    restore,
    schema,
)
from server.store.checksums import object_checksum
from server.store.mutations import PutIdf, PutObject
from server.store.schema import SCHEMA_VERSION
from tests.store.conftest import FRAME, a_subscription, an_object, quiet
from tests.support.stored import objects_of, subscriptions_of

pytestmark = pytest.mark.usefixtures("without_fsync")

LATE_MS = 10**9
NEXT = SCHEMA_VERSION + 1
INDEX = "CREATE INDEX objects_by_expiry ON objects (expiry_ms)"
BYTES = "payload_bytes"


def add_index_and_bytes(database):
    """The step: an index, and a setting that follows from all objects."""
    database.execute(INDEX)
    rows = reading.slices(database, "objects", reading.OBJECTS, object_checksum)
    total = sum(len(row[7]) for some in rows for row in some)
    opening.put_meta(database, BYTES, str(total))


@contextmanager
def next_version():
    """Let this program be the one of the next version."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schema, "SCHEMA_VERSION", NEXT)
        patch.setattr(schema, "CREATE", (*schema.CREATE, INDEX))
        patch.setattr(schema, "TABLES", schema.TABLES | {INDEX})
        patch.setattr(migrations, "STEPS", {SCHEMA_VERSION: add_index_and_bytes})
        yield


def filled(path):
    store = SqliteStore(path, FRAME)
    store.commit([PutObject(an_object(number, LATE_MS, bytes(100))) for number in range(1, 41)], 7)
    devices = [a_subscription(f"d{number}", name=f"n{number}") for number in range(30)]
    store.commit([*devices, PutIdf(1, IdfTable({"ice": 0.5}))], 8)
    return store


def held(path):
    store = SqliteStore(path, FRAME)
    try:
        found = store.recover()
        rows = objects_of(found, FRAME), subscriptions_of(found), found.idf
        return rows, found.time_ms, found.next_object_id
    finally:
        store.close()


def as_killed(store, folder):
    """Return the store as a kill leaves it: nearly all of it is in the log."""
    folder.mkdir()
    for suffix in ("", "-wal", "-mark"):
        shutil.copy(f"{store.path}{suffix}", folder / f"store.db{suffix}")
    store.close()
    return folder / "store.db"


def files_of(path):
    """Return what a store has on disk; not the index of its log, which any reader may write."""
    return {suffix: Path(f"{path}{suffix}").read_bytes() for suffix in ("", "-wal", "-mark")}


def edited(path, *statements):
    database = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        database.execute(statement)
    database.close()


def shape(path):
    database = sqlite3.connect(path)
    tables = database.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema").fetchall()
    pragmas = ("user_version", "application_id", "auto_vacuum", "journal_mode")
    return sorted(tables, key=str), [database.execute(f"PRAGMA {one}").fetchone() for one in pragmas]


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_store_is_brought_up_to_date_with_all_that_it_holds(path, tmp_path, is_killed):
    store = filled(path)
    if is_killed:
        path = as_killed(store, tmp_path / "dead")
    else:
        store.close()
        before = held(path)
    with next_version():
        found = held(path)
        assert found == held(path), "once, and for all"
        assert facts(path)["version"] == NEXT
        assert check(path, quiet) == []
        SqliteStore(tmp_path / "new.db", FRAME).close()
        assert shape(path) == shape(tmp_path / "new.db")
        database = sqlite3.connect(path)
        assert opening.meta(database, str(path), BYTES) == "4000"
        database.close()
        store = SqliteStore(path, FRAME)  # and it goes on
        store.commit([PutObject(an_object(41, LATE_MS))], 9)
        store.close()
        assert check(path, quiet) == []
    (objects, subscriptions, idf), time_ms, next_id = found
    assert [one.object_id for one in objects] == list(range(1, 41))
    assert {one.name for one in subscriptions} == {f"n{number}" for number in range(30)}
    assert (idf.generation, time_ms, next_id) == (1, 8, 41)
    if not is_killed:
        assert found == before


def test_no_migration_is_made_of_damage(path):
    """The step has created its index by then."""
    filled(path).close()
    edited(path, "UPDATE objects SET lon = lon + 0.001 WHERE object_id = 9")
    before = path.read_bytes()
    with next_version():
        for _ in range(2):
            with pytest.raises(
                StoreError, match="is damaged: row 9 of objects does not match its checksum"
            ):
                SqliteStore(path, FRAME)
            assert path.read_bytes() == before


def test_a_step_that_does_not_lead_to_the_next_version_is_refused(path):
    filled(path).close()
    before = path.read_bytes()
    with next_version(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrations, "STEPS", {SCHEMA_VERSION: lambda _: None})
        with pytest.raises(StoreError, match="its tables are not those of a store"):
            SqliteStore(path, FRAME)
    assert path.read_bytes() == before


def test_a_store_on_a_full_disk_is_unchanged(path, monkeypatch):
    filled(path).close()
    before, kept = path.read_bytes(), held(path)
    connect = sqlite3.connect

    def cramped(*arguments, **options):
        database = connect(*arguments, **options)
        (pages,) = database.execute("PRAGMA page_count").fetchone()
        database.execute(f"PRAGMA max_page_count={max(pages, 2)}")
        return database

    with next_version():
        with monkeypatch.context() as patch:
            patch.setattr(sqlite3, "connect", cramped)
            with pytest.raises(StoreError, match="full"):
                SqliteStore(path, FRAME)
        assert path.read_bytes() == before
        assert held(path) == kept


def test_a_backup_of_an_older_store_is_of_its_version(path, tmp_path):
    filled(path).close()
    before = held(path)
    copy = tmp_path / "backup.db"
    with next_version():
        backup(path, copy, quiet)
        assert facts(copy)["version"] == SCHEMA_VERSION
        with pytest.raises(
            StoreError, match=f"is of version {SCHEMA_VERSION}, this program checks version {NEXT}"
        ):
            check(copy, quiet)
        restore(copy, tmp_path / "again.db", quiet)
        assert held(tmp_path / "again.db") == before


def works(path, tmp_path):
    """Return all that opens a store, by name."""
    return {
        "serve": lambda: SqliteStore(path, FRAME),
        "accept": lambda: SqliteStore(path, FRAME, accept_loss=True),
        "check": lambda: check(path, quiet),
        "facts": lambda: facts(path),
        "backup": lambda: backup(path, tmp_path / "b.db", quiet),
        "restore": lambda: restore(path, tmp_path / "r.db", quiet),
        "compact": lambda: compact(path),
    }


WORKS = list(works(None, None))
OTHERS = {
    "newer": (
        (f"PRAGMA user_version={NEXT}",),
        f"store .*store.db is of version {NEXT}, this program reads up to {SCHEMA_VERSION}: use a newer",
    ),
    "unreleased": (
        ("PRAGMA user_version=9", f"PRAGMA application_id={schema.UNRELEASED_ID}"),
        "store .*store.db is of version 9 from before the first release, .*: use the program that",
    ),
}


@pytest.mark.parametrize("work", WORKS)
@pytest.mark.parametrize("name", OTHERS)
def test_a_store_of_a_version_that_is_not_read_is_named_and_stays_as_it_was(path, tmp_path, name, work):
    """Its log has commits that are not in the database yet, and the beginning of another one."""
    statements, message = OTHERS[name]
    SqliteStore(path, FRAME).close()
    edited(path, *statements)
    theirs = sqlite3.connect(path, isolation_level=None)
    theirs.execute("PRAGMA journal_mode=WAL")
    theirs.execute("INSERT INTO meta VALUES ('theirs', 'x', 0)")
    dead = tmp_path / "dead"
    dead.mkdir()
    for suffix in ("", "-wal", "-mark"):
        shutil.copy(f"{path}{suffix}", dead / f"store.db{suffix}")
    theirs.close()
    log = dead / "store.db-wal"
    log.write_bytes(log.read_bytes() + log.read_bytes()[32:3_000])
    before = files_of(dead / "store.db")
    assert len(before["-wal"]) > 4_096
    with pytest.raises(StoreError, match=message):
        works(dead / "store.db", tmp_path)[work]()
    assert files_of(dead / "store.db") == before
    assert not (tmp_path / "b.db").exists()
    assert not (tmp_path / "r.db").exists()


def test_a_store_of_version_1_gets_the_table_of_outcomes(path):
    filled(path).close()
    before = held(path)
    edited(
        path, "DROP TABLE outcomes", "DELETE FROM meta WHERE name = 'outcomes'", "PRAGMA user_version=1"
    )
    assert held(path) == before
    assert facts(path)["version"] == SCHEMA_VERSION
    assert check(path, quiet) == []
