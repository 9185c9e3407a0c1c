"""Stores as older versions made them, brought up to date with everything that they held."""

from __future__ import annotations

import json
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from safe_region.earth import Bounds
from server.errors import StoreError
from server.principal import tenant_of
from server.store import SqliteStore, backup, check, facts, migrations
from server.store.mutations import DeleteObject, PutObject
from server.store.schema import SCHEMA_VERSION, plain
from tests.store.conftest import FRAME, a_subscription, an_object, quiet
from tests.store.older.stores import COUNT, contents, older, written
from tests.support.stored import objects_of, subscriptions_of

pytestmark = pytest.mark.usefixtures("without_fsync")

VERSIONS = range(1, SCHEMA_VERSION)


def held(path):
    store = SqliteStore(path, FRAME)
    found = store.recover()
    held = objects_of(found, FRAME), subscriptions_of(found), found.time_ms, found.next_object_id
    store.close()
    return held


def edited(path, statement, *values):
    database = sqlite3.connect(path, isolation_level=None)
    database.execute(statement, values)
    database.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_an_older_store_is_brought_up_to_date_with_all_that_it_holds(path, version):
    older(path, version)
    objects, subscriptions, *settings = contents(path)
    assert len(objects) >= 20
    assert len(subscriptions) >= 30
    for _ in range(2):
        assert held(path) == (objects, subscriptions, *settings)
    assert facts(path)["version"] == SCHEMA_VERSION
    assert check(path, quiet) == []
    store = SqliteStore(path, FRAME)
    first = subscriptions[0]
    changed = a_subscription(first.device_id, first.subscription_id)
    store.commit([changed, PutObject(an_object(settings[1], 10**9))], settings[0])
    store.close()
    assert held(path)[1] == (changed, *subscriptions[1:])
    assert check(path, quiet) == []


@pytest.mark.parametrize("version", VERSIONS)
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


@pytest.mark.parametrize("version", VERSIONS)
def test_specs_are_the_very_texts_that_their_kind_writes(path, version):
    older(path, version)
    _, subscriptions, *_ = contents(path)
    SqliteStore(path, FRAME).close()
    query = "SELECT kind, spec FROM subscriptions ORDER BY device_id, subscription_id"
    specs = sqlite3.connect(path).execute(query).fetchall()
    assert specs == [(one.kind, one.spec) for one in subscriptions]


def test_numbers_of_subscriptions_are_the_same_to_the_bit(path):
    """The server of version 3 was given these, and wrote them as SQLite keeps numbers."""
    older(path, 3)
    found = {json.loads(one.spec)[2] for one in held(path)[1]}
    assert found == {0.1 + 0.2, 1 / 3, 0.001, 0.999, 0.5, 0.7 - 1e-16, 2**-9 + 2**-61, 0.1}


def test_what_version_3_was_is_as_its_server_made_it(path):
    """Versions 1 and 2 become one of it first."""
    older(path, 3)
    rows = sqlite3.connect(path).execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")
    created = {plain(one) for one in migrations._CREATE_3 if not one.startswith("INSERT")}
    assert {plain(sql) for (sql,) in rows} == created


def test_what_version_4_was_is_as_its_server_made_it(path):
    """Version 3 becomes one of it first."""
    older(path, 4)
    rows = sqlite3.connect(path).execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")
    created = {plain(one) for one in migrations._CREATE_4 if not one.startswith("INSERT")}
    assert {plain(sql) for (sql,) in rows} == created


def test_what_version_5_was_is_as_its_server_made_it(path):
    """Version 4 becomes one of it first."""
    older(path, 5)
    rows = sqlite3.connect(path).execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")
    created = {plain(one) for one in migrations._CREATE_5 if not one.startswith("INSERT")}
    assert {plain(sql) for (sql,) in rows} == created


def test_what_version_6_was_is_as_its_server_made_it(path):
    """Version 5 becomes one of it first."""
    older(path, 6)
    rows = sqlite3.connect(path).execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")
    created = {plain(one) for one in migrations._CREATE_6 if not one.startswith("INSERT")}
    assert {plain(sql) for (sql,) in rows} == created


def test_what_version_7_was_is_as_its_server_made_it(path):
    """Version 6 becomes one of it first."""
    older(path, 7)
    rows = sqlite3.connect(path).execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")
    created = {plain(one) for one in migrations._CREATE_7 if not one.startswith("INSERT")}
    assert {plain(sql) for (sql,) in rows} == created


def test_what_version_8_was_is_as_its_server_made_it(path):
    """Version 7 becomes one of it first."""
    older(path, 8)
    rows = sqlite3.connect(path).execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")
    created = {plain(one) for one in migrations._CREATE_8 if not one.startswith("INSERT")}
    assert {plain(sql) for (sql,) in rows} == created


def test_a_subscription_of_version_8_may_be_given_a_name(path):
    """Totals go up and down with what was carried over, and with what is new."""
    older(path, 8)
    first, *others = contents(path)[1]
    assert {one.name for one in (first, *others)} == {""}
    store = SqliteStore(path, FRAME)
    named = replace(first, name="my lunch")
    store.commit([named], 10**9)
    store.close()
    assert held(path)[1] == (named, *others)
    assert check(path, quiet) == []


DAMAGED_8 = {
    "a spec": """UPDATE subscriptions SET spec = '[["x"],1,0.5,1,1]' WHERE subscription_id = 1""",
    "an owner": "UPDATE objects SET owner = 'somebody' WHERE object_id = 9",
}


@pytest.mark.parametrize("name", DAMAGED_8)
def test_damage_of_version_8_is_named_and_the_file_stays_as_it_was(path, name):
    older(path, 8)
    edited(path, DAMAGED_8[name])
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"is damaged: row .* is not what was written"):
        SqliteStore(path, FRAME)
    assert path.read_bytes() == before


@pytest.mark.parametrize("version", VERSIONS)
def test_an_older_store_is_of_the_default_tenant_and_of_no_owner(path, version):
    older(path, version)
    store = SqliteStore(path, FRAME)
    found = store.recover()
    columns = list(found.objects)
    devices = [one for some in found.subscriptions for one in some.device_ids]
    store.close()
    assert {owner for some in columns for owner in some.owners} == {""}
    names = [*devices, *(key for some in columns for key in some.keys)]
    names += [word for some in columns for words in some.keywords for word in words]
    assert {tenant_of(name) for name in names} == {""}


def test_weights_of_version_6_are_kept(path):
    older(path, 6)
    store = SqliteStore(path, FRAME)
    idf = store.recover().idf
    store.close()
    assert idf is not None
    assert idf.generation == 1
    assert [idf.table.weight(one) for one in ("sushi", "茶")] == pytest.approx([0.3, 2.5], rel=1e-4)


def test_an_object_of_version_4_may_be_replaced_by_one_with_an_area(path):
    """Totals go up and down with what was carried over, and with what is new."""
    older(path, 4)
    objects, _, time_ms, next_id = contents(path)
    area = Bounds(14.0, 35.6, 14.1 + 1 / 3, 35.8)
    wide = an_object(next_id, 10**9)._replace(area=area)
    store = SqliteStore(path, FRAME)
    store.commit([DeleteObject(objects[0].object_id), PutObject(wide)], time_ms)
    store.close()
    assert held(path)[0] == (*objects[1:], wide)
    assert check(path, quiet) == []


def test_devices_of_an_older_store_were_heard_of_when_it_was_last_written(path):
    older(path, 2)
    store = SqliteStore(path, FRAME)
    assert store.overdue(700, 10_000) == []
    assert len(store.overdue(701, 10_000)) == COUNT
    store.close()


def test_when_devices_of_version_3_were_heard_of_is_kept(path):
    older(path, 3)
    query = "SELECT device_id, subscription_id, heard_ms, heard_checksum FROM subscriptions ORDER BY 1, 2"
    before = sqlite3.connect(path).execute(query).fetchall()
    store = SqliteStore(path, FRAME)
    assert sqlite3.connect(path).execute(query).fetchall() == before
    assert store.overdue(1_000_001, 100) == []
    assert store.overdue(1_000_002, 100) == ["device 01 é"]
    assert len(store.overdue(8_200_000, 100)) == 6
    assert len(store.overdue(8_200_001, 100)) == 12
    store.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_an_older_store_whose_server_was_killed(path, tmp_path, version):
    """All of it is in the log still."""
    database = written(path, version)
    dead = tmp_path / "dead.db"
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", f"{dead}{suffix}")
    assert dead.stat().st_size < Path(f"{dead}-wal").stat().st_size
    assert held(dead) == contents(path)
    database.close()
    assert check(dead, quiet) == []


DAMAGED_3 = {
    "keywords": (
        """UPDATE subscriptions SET keywords = '["x"]' WHERE device_id = 'device 03 é'""",
        "row 'device 03 é' of subscriptions is not what was written",
    ),
    "alpha": (
        "UPDATE subscriptions SET alpha = 0.3 WHERE device_id = 'device 00 é'",
        "row 'device 00 é' of subscriptions is not what was written",
    ),
    "a number that is a text": (
        "UPDATE subscriptions SET k = 'x' WHERE device_id = 'device 00 é'",
        "row 'device 00 é' of subscriptions is not what was written",
    ),
    "a checksum": (
        "UPDATE subscriptions SET checksum = checksum + 1 WHERE device_id = 'device 05 é'",
        "row 'device 05 é' of subscriptions is not what was written",
    ),
    "a row less": ("lost", "subscriptions has 47 rows where 48 were written"),
    "heard": (
        "UPDATE subscriptions SET heard_ms = 5 WHERE device_id = 'device 07 é'",
        "when device 'device 07 é' was heard of last is not what was written",
    ),
    "an object": (
        "UPDATE objects SET lon = lon + 0.001 WHERE object_id = 9",
        "row 9 of objects is not what was written",
    ),
    "totals": (
        "UPDATE meta SET checksum = checksum - 1 WHERE name = 'objects'",
        "objects has 21 rows where 21 were written, or not the same ones",
    ),
    "a setting": ("UPDATE meta SET value = '33333' WHERE name = 'time_ms'", "time_ms is not what was"),
    "a trigger less": ("DROP TRIGGER subscriptions_DELETE", "its tables are not those of a store"),
    "a table more": ("CREATE TABLE theirs (x)", "its tables are not those of a store"),
}


@pytest.mark.parametrize("name", DAMAGED_3)
def test_no_new_checksum_is_made_of_damage(path, tmp_path, name):
    """It is named, by a backup too, and the file stays as it was."""
    statement, said = DAMAGED_3[name]
    older(path, 3)
    if statement == "lost":
        trigger = "SELECT sql FROM sqlite_schema WHERE name = 'subscriptions_DELETE'"
        (kept,) = sqlite3.connect(path).execute(trigger).fetchone()
        edited(path, "DROP TRIGGER subscriptions_DELETE")
        edited(path, "DELETE FROM subscriptions WHERE device_id = 'device 01 é' AND subscription_id = 1")
        edited(path, kept)
    else:
        edited(path, statement)
    before = path.read_bytes()
    for _ in range(2):
        with pytest.raises(StoreError, match=f"is damaged: .*{said}"):
            SqliteStore(path, FRAME)
        assert path.read_bytes() == before
    with pytest.raises(StoreError, match=f"is damaged: .*{said}"):
        backup(path, tmp_path / "backup.db", quiet)
    assert facts(path)["version"] == 3


def test_damage_that_version_2_could_not_tell_is_named(path):
    older(path, 2)
    edited(path, "UPDATE subscriptions SET keywords = '[\"su' WHERE device_id = 'device 0007 é'")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="row 'device 0007 é' of subscriptions has keywords that are no"):
        SqliteStore(path, FRAME)
    assert path.read_bytes() == before


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


@pytest.mark.parametrize("version", VERSIONS)
def test_a_backup_of_an_older_store_is_of_its_version(path, tmp_path, version):
    older(path, version)
    before = contents(path)
    backup(path, tmp_path / "backup.db", quiet)
    assert facts(tmp_path / "backup.db")["version"] == version
    with pytest.raises(
        StoreError, match=f"is of version {version}, checked are those of {SCHEMA_VERSION}"
    ):
        check(tmp_path / "backup.db", quiet)
    assert held(tmp_path / "backup.db") == before


@pytest.mark.parametrize("version", VERSIONS)
def test_an_older_store_whose_disk_is_full_stays_what_it_was(path, monkeypatch, version):
    older(path, version)
    before, kept = path.read_bytes(), contents(path)
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
    assert held(path) == kept
