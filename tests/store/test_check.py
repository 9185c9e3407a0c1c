"""What `check` finds: it names the row and what is wrong with it."""

from __future__ import annotations

import json
import sqlite3

import pytest

from safe_region.earth.shapes import Bounds, Polygon
from server.errors import StoreError
from server.store import SqliteStore, check
from server.store.areas import encoded_area
from server.store.checksums import (
    last_seen_checksum,
    meta_checksum,
    object_checksum,
    subscription_checksum,
)
from server.store.mutations import PutObject
from tests.store.conftest import FRAME, a_subscription, an_object, quiet

FUNCTIONS = (meta_checksum, object_checksum, subscription_checksum, last_seen_checksum)
"""That SQL may use."""


@pytest.fixture
def edit(path):
    """A store of some rows, which can be changed behind its back, with right checksums."""
    store = SqliteStore(path, FRAME)
    rows = [PutObject(an_object(number)) for number in range(1, 5)]
    store.commit([*rows, a_subscription("d")], 7)
    store.close()

    def run(statement, *values):
        database = sqlite3.connect(path, isolation_level=None)
        for function in FUNCTIONS:
            count = function.__code__.co_argcount
            database.create_function(function.__name__, count, function, deterministic=True)
        database.execute("PRAGMA ignore_check_constraints=ON")
        database.execute(statement, values)
        database.execute(
            "UPDATE objects SET checksum = object_checksum(object_id, lon, lat, keywords, created_ms, "
            "expiry_ms, payload, object_key, area, owner)"
        )
        database.execute(
            "UPDATE subscriptions SET checksum = subscription_checksum(device_id, subscription_id, "
            "kind, spec, name), "
            "last_seen_checksum = last_seen_checksum(device_id, last_seen_ms)"
        )
        database.execute(
            "UPDATE meta SET checksum = meta_checksum(name, value) "
            "WHERE name NOT IN ('objects', 'subscriptions', 'idf', 'sink', 'outcomes')"
        )
        for table in ("objects", "subscriptions"):
            database.execute(
                f"UPDATE meta SET (value, checksum) = (SELECT count(*), sum(checksum) FROM {table}) "  # noqa: S608
                f"WHERE name = '{table}'"
            )
        database.close()

    return run


def test_a_store_that_is_whole(path, edit):
    assert check(path, quiet) == []
    edit("UPDATE objects SET payload = zeroblob(9) WHERE object_id = 1")
    assert check(path, quiet) == [], "what is allowed is allowed"


AREA = encoded_area(Bounds(14.05, 35.6, 14.15, 35.8))
ASIDE = encoded_area(Bounds(14.05, 35.6, 14.06, 35.8))
AWAY = encoded_area(Polygon(((14.2, 35.0), (14.3, 35.0), (14.2, 36.0))))


def test_an_area_about_its_point(path, edit):
    edit("UPDATE objects SET area = ? WHERE object_id = 2", AREA)
    assert check(path, quiet) == []


@pytest.mark.parametrize(
    ("area", "message"),
    [
        (ASIDE, "lies at (14.1, 35.7), outside its own area"),
        (AWAY, "lies at (14.1, 35.7), outside its own area"),
        (AREA[:-8], "cannot be read: 24 bytes are no area"),
        (AREA[:-1], "cannot be read: 31 bytes are no area"),
        (AREA + AREA[:8], "cannot be read: 40 bytes are no area"),
    ],
)
def test_an_area_that_makes_no_sense_is_named(path, edit, area, message):
    edit("UPDATE objects SET area = ? WHERE object_id = 2", area)
    (found,) = check(path, quiet)
    assert found.startswith(f"row 2 of objects {message}")


WRONG = {
    "outside": (
        "UPDATE objects SET lon = 16 WHERE object_id = 2",
        "row 2 of objects lies at (16.0, ",
    ),
    "an id to come": (
        "UPDATE meta SET value = '3' WHERE name = 'next_object_id'",
        "row 3 of objects has an id that is not below 3",
    ),
    "never alive": (
        "UPDATE objects SET expiry_ms = 5 WHERE object_id = 2",
        "objects expires at 5",
    ),
    "of the future": (
        "UPDATE objects SET created_ms = 8 WHERE object_id = 2",
        "created at 8, after 7",
    ),
    "a key twice": (
        "UPDATE objects SET object_key = 'k1' WHERE object_id = 2",
        "row 2 of objects has the key 'k1' of another",
    ),
    "no list": (
        "UPDATE objects SET keywords = '{}' WHERE object_id = 2",
        "row 2 of objects has keywords",
    ),
    "no words": ("UPDATE objects SET keywords = '[]' WHERE object_id = 2", "not a list of texts"),
    "no JSON": (
        "UPDATE objects SET keywords = '[' WHERE object_id = 2",
        "row 2 of objects cannot be",
    ),
    "not sorted": (
        """UPDATE objects SET keywords = '["b","a"]' WHERE object_id = 2""",
        "not sorted or not unique",
    ),
    "kind": ("UPDATE subscriptions SET kind = -1", "row 'd' of subscriptions is of kind -1"),
    "number": ("UPDATE subscriptions SET subscription_id = 0", "has the number 0, below 1"),
    "heard": ("UPDATE subscriptions SET last_seen_ms = 99", "the last-seen time of device 'd'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_inconsistent_values_are_named(path, edit, name):
    statement, message = WRONG[name]
    edit(statement)
    found = check(path, quiet)
    assert found
    assert message in found[0]


@pytest.mark.parametrize("spec", ["", "[1", "1,2"])
def test_a_spec_that_is_no_json_is_named_and_not_served(path, edit, spec):
    """More of it only its kind could judge."""
    edit("UPDATE subscriptions SET spec = ?", spec)
    assert check(path, quiet) == [f"row 'd' of subscriptions has the spec {spec!r}, which is not JSON"]
    store = SqliteStore(path, FRAME)
    with pytest.raises(StoreError, match="row 'd' of subscriptions has a value that is not JSON"):
        list(store.recover().subscriptions)
    store.close()


@pytest.mark.usefixtures("edit")
@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE objects SET payload = 'x' WHERE object_id = 3", "row 3 of objects does not match its"),
        ("UPDATE subscriptions SET kind = 4", "row 'd' of subscriptions does not match its"),
        ("UPDATE subscriptions SET spec = '4'", "row 'd' of subscriptions does not match its"),
        ("UPDATE subscriptions SET last_seen_ms = 1", "the last-seen time of device 'd'"),
        ("UPDATE meta SET value = '8' WHERE name = 'time_ms'", "time_ms does not match its checksum"),
        ("DELETE FROM meta WHERE name = 'time_ms'", "it has no time_ms"),
        ("UPDATE meta SET value = 3 WHERE name = 'objects'", "objects has 4 rows, must have the 3 rows"),
    ],
)
def test_changed_rows_are_named(path, statement, message):
    database = sqlite3.connect(path, isolation_level=None)
    database.execute(statement)
    database.close()
    assert any(message in problem for problem in check(path, quiet))


@pytest.mark.usefixtures("edit")
def test_tables_that_are_not_ours(path):
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("DROP TRIGGER objects_DELETE")
    database.close()
    for work in (lambda: check(path, quiet), lambda: SqliteStore(path, FRAME)):
        with pytest.raises(StoreError, match="its tables are not those of a store"):
            work()


@pytest.mark.usefixtures("edit")
def test_a_file_with_a_hole(path):
    data = bytearray(path.read_bytes())
    (page,) = (
        sqlite3.connect(path)
        .execute("SELECT rootpage FROM sqlite_schema WHERE name = 'objects'")
        .fetchone()
    )
    data[(page - 1) * 4096 : page * 4096] = bytes(4096)
    path.write_bytes(data)
    assert any("the file is damaged" in problem for problem in check(path, quiet))
    store = SqliteStore(path, FRAME)
    with pytest.raises(StoreError, match="is damaged"):
        list(store.recover().objects)
    store.close()


def test_all_problems_are_named_at_once(path, edit):
    edit("UPDATE objects SET keywords = ? WHERE object_id < 3", json.dumps(["b", "a"]))
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("UPDATE subscriptions SET kind = 4")
    database.close()
    found = check(path, quiet)
    assert len(found) == 3
    assert [one.split(" ")[:2] for one in found] == [["row", "1"], ["row", "2"], ["row", "'d'"]]
