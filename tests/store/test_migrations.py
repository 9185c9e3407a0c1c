"""Stores as older versions made them, brought up to date with everything that they held."""

from __future__ import annotations

import json
import sqlite3

import pytest

from safe_region.anchored import RegionMode
from safe_region.scoring import Similarity
from server.errors import StoreError
from server.model import TopK
from server.store import SqliteStore, backup, check, facts
from server.store.mutations import DeleteObject, PutObject, PutSubscription
from server.store.schema import SCHEMA_VERSION
from tests.store.conftest import FRAME, an_object, quiet
from tests.support.stored import objects_of, subscriptions_of

TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE objects (
    object_id INTEGER PRIMARY KEY, lon REAL NOT NULL, lat REAL NOT NULL, keywords TEXT NOT NULL,
    created_ms INTEGER NOT NULL, expiry_ms INTEGER NOT NULL, payload BLOB NOT NULL,
    object_key TEXT NOT NULL
);
"""
"""Of versions 1 and 2, as these had them."""

SUBSCRIPTIONS = {
    1: """
CREATE TABLE subscriptions (
    device_id TEXT NOT NULL, subscription_id INTEGER NOT NULL, keywords TEXT NOT NULL, k INTEGER NOT NULL,
    alpha REAL NOT NULL, similarity INTEGER NOT NULL, PRIMARY KEY (device_id, subscription_id)
) WITHOUT ROWID;
""",
    2: """
CREATE TABLE subscriptions (
    device_id TEXT NOT NULL, subscription_id INTEGER NOT NULL, keywords TEXT NOT NULL, k INTEGER NOT NULL,
    alpha REAL NOT NULL, similarity INTEGER NOT NULL, region INTEGER NOT NULL DEFAULT 1,
    PRIMARY KEY (device_id, subscription_id)
) WITHOUT ROWID;
""",
}
COUNT = 300


def older(path, version):
    """Write a file as a server of that version did; return what is in it."""
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode=WAL")
    database.executescript(TABLES + SUBSCRIPTIONS[version])
    database.execute(f"PRAGMA application_id={0x6E656172}")
    database.execute(f"PRAGMA user_version={version}")
    meta = {"area": json.dumps(FRAME.area), "time_ms": "700", "next_object_id": str(COUNT + 50)}
    database.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
    objects = [an_object(number, 10_000 + number) for number in range(1, COUNT + 1)]
    database.executemany(
        "INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                item.object_id,
                item.lon,
                item.lat,
                json.dumps(item.keywords, ensure_ascii=False),
                item.created_ms,
                item.expiry_ms,
                item.payload,
                item.key,
            )
            for item in objects
        ],
    )
    regions = list(RegionMode) if version > 1 else [RegionMode.ANCHORED]
    rows = []
    for number in range(COUNT):
        region = regions[number % len(regions)]
        spec = TopK(("sushi", "茶"), 1 + number % 9, 0.25, Similarity.COSINE, region)
        rows.append(PutSubscription(f"device {number:04d} é", 1 + number % 3, spec))
    for row in rows:
        spec = row.spec
        words = json.dumps(spec.keywords, ensure_ascii=False)
        said = [row.device_id, row.subscription_id, words, spec.k, spec.alpha, int(spec.similarity)]
        said += [int(spec.region)] if version > 1 else []
        marks = ", ".join("?" * len(said))
        database.execute(f"INSERT INTO subscriptions VALUES ({marks})", said)  # noqa: S608
    database.commit()
    database.close()
    return tuple(objects), tuple(rows)


@pytest.mark.parametrize("version", SUBSCRIPTIONS)
def test_an_older_store_is_brought_up_to_date_with_all_that_it_holds(path, version):
    objects, subscriptions = older(path, version)
    for _ in range(2):
        store = SqliteStore(path, FRAME)
        found = store.recover()
        assert objects_of(found, FRAME) == objects
        assert subscriptions_of(found) == subscriptions
        assert (found.time_ms, found.next_object_id) == (700, COUNT + 50)
        store.close()
    assert facts(path)["version"] == SCHEMA_VERSION
    assert check(path, quiet) == []


@pytest.mark.parametrize("version", SUBSCRIPTIONS)
def test_what_it_was_is_no_different_from_a_new_one(path, tmp_path, version):
    older(path, version)
    SqliteStore(path, FRAME).close()
    SqliteStore(tmp_path / "new.db", FRAME).close()

    def shape(name):
        database = sqlite3.connect(name)
        tables = database.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema").fetchall()
        pragmas = ("user_version", "application_id", "auto_vacuum", "journal_mode")
        return sorted(tables, key=str), [database.execute(f"PRAGMA {one}").fetchone() for one in pragmas]

    assert shape(path) == shape(tmp_path / "new.db")


def test_devices_of_an_older_store_were_heard_of_when_it_was_last_written(path):
    older(path, 2)
    store = SqliteStore(path, FRAME)
    assert store.overdue(700, 10_000) == []
    assert len(store.overdue(701, 10_000)) == COUNT
    store.close()


def test_an_older_store_shrinks_like_a_new_one(path):
    older(path, 1)
    store = SqliteStore(path, FRAME)
    big = [PutObject(an_object(number, payload=bytes(8_000))) for number in range(1_000, 2_000)]
    store.commit(big, 800)
    store.commit([DeleteObject(number) for number in range(1_000, 2_000)], 800)
    for _ in range(100):
        store.commit([], 800)
    store.close()
    assert path.stat().st_size < 3_000_000


def test_a_backup_of_an_older_store_is_of_its_version(path, tmp_path):
    objects, _ = older(path, 1)
    backup(path, tmp_path / "backup.db", quiet)
    assert facts(tmp_path / "backup.db")["version"] == 1
    with pytest.raises(StoreError, match="is of version 1, checked are those of 3"):
        check(tmp_path / "backup.db", quiet)
    store = SqliteStore(tmp_path / "backup.db", FRAME)
    assert objects_of(store.recover(), FRAME) == objects
    store.close()


def test_an_older_store_whose_disk_is_full_stays_what_it_was(path, monkeypatch):
    objects, _ = older(path, 2)
    before = path.read_bytes()
    connect = sqlite3.connect

    def cramped(*arguments, **options):
        database = connect(*arguments, **options)
        (pages,) = database.execute("PRAGMA page_count").fetchone()
        database.execute(f"PRAGMA max_page_count={max(pages, 2)}")
        return database

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", cramped)
        with pytest.raises(StoreError, match="full"):
            SqliteStore(path, FRAME)
    assert path.read_bytes() == before
    store = SqliteStore(path, FRAME)
    assert objects_of(store.recover(), FRAME) == objects
    store.close()
