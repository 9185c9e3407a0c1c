"""How a store of an older version becomes one of the next: in the transaction that opens it. O(rows).

Versions 1 and 2 have no checksums: what they hold is taken as it is. A store of version 3 to 8 is
verified as a whole first: for a damaged row no new checksum is made, it is named, and the file stays as
it was.
"""

from __future__ import annotations

import json
import sqlite3
import struct
from collections.abc import Callable
from typing import Any, NamedTuple
from zlib import crc32

from server.store import checksums, reading, schema

_SUBSCRIPTIONS_3 = """
CREATE TABLE subscriptions (
    device_id TEXT NOT NULL,
    subscription_id INTEGER NOT NULL,
    checksum INTEGER NOT NULL,  -- of all other columns up to region
    keywords TEXT NOT NULL,     -- JSON array
    k INTEGER NOT NULL,
    alpha REAL NOT NULL,
    similarity INTEGER NOT NULL,
    region INTEGER NOT NULL,
    heard_ms INTEGER NOT NULL,  -- when the device was heard of last, coarsely
    heard_checksum INTEGER NOT NULL,  -- of device_id and heard_ms
    PRIMARY KEY (device_id, subscription_id)
) WITHOUT ROWID
"""

_CREATE_3 = (
    schema.META_3,
    schema.OBJECTS_3,
    _SUBSCRIPTIONS_3,
    schema.TOTALS_3,
    *schema.triggers_3("objects"),
    *schema.triggers_3("subscriptions"),
)

_FROM_1 = ("ALTER TABLE subscriptions ADD COLUMN region INTEGER NOT NULL DEFAULT 1",)

_FROM_2 = (
    "ALTER TABLE meta RENAME TO old_meta",
    "ALTER TABLE objects RENAME TO old_objects",
    "ALTER TABLE subscriptions RENAME TO old_subscriptions",
    *_CREATE_3,
    "INSERT INTO meta SELECT name, value, meta_checksum(name, value) FROM old_meta",
    """
    INSERT INTO objects SELECT object_id,
        object_checksum_3(object_id, lon, lat, keywords, created_ms, expiry_ms, payload, object_key),
        lon, lat, keywords, created_ms, expiry_ms, payload, object_key
    FROM old_objects
    """,
    # Nobody knows when the devices were heard of: their time begins now.
    """
    INSERT INTO subscriptions SELECT device_id, subscription_id,
        subscription_checksum_3(device_id, subscription_id, keywords, k, alpha, similarity, region),
        keywords, k, alpha, similarity, region, now_ms, heard_checksum(device_id, now_ms)
    FROM old_subscriptions,
        (SELECT CAST(value AS INTEGER) AS now_ms FROM old_meta WHERE name = 'time_ms')
    """,
    "DROP TABLE old_meta",
    "DROP TABLE old_objects",
    "DROP TABLE old_subscriptions",
)

_FROM_3 = (
    "DROP TRIGGER subscriptions_INSERT",
    "DROP TRIGGER subscriptions_DELETE",
    "ALTER TABLE subscriptions RENAME TO old_subscriptions",
    "UPDATE meta SET value = 0, checksum = 0 WHERE name = 'subscriptions'",
    schema.SUBSCRIPTIONS_4,
    *schema.triggers_3("subscriptions"),
)
_CREATE_4 = (
    schema.META_3,
    schema.OBJECTS_3,
    schema.SUBSCRIPTIONS_4,
    schema.TOTALS_3,
    *schema.triggers_3("objects"),
    *schema.triggers_3("subscriptions"),
)

# No object has an area: their checksums, and the sum of these, stay as they are.
_FROM_4 = (
    "DROP TRIGGER objects_INSERT",
    "DROP TRIGGER objects_DELETE",
    "ALTER TABLE objects RENAME TO old_objects",
    schema.OBJECTS_5,
    """
    INSERT INTO objects SELECT object_id, checksum, lon, lat, keywords, created_ms, expiry_ms, payload,
        object_key, '' FROM old_objects
    """,
    "DROP TABLE old_objects",
    *schema.triggers_3("objects"),
)

_CREATE_5 = (
    schema.META_3,
    schema.OBJECTS_5,
    schema.SUBSCRIPTIONS_4,
    schema.TOTALS_3,
    *schema.triggers_3("objects"),
    *schema.triggers_3("subscriptions"),
)

_FROM_5 = (schema.IDF_6, schema.IDF_TOTALS_6, *schema.triggers_3("idf"))

_CREATE_6 = (
    schema.META_3,
    schema.OBJECTS_5,
    schema.SUBSCRIPTIONS_4,
    schema.IDF_6,
    schema.TOTALS_3,
    schema.IDF_TOTALS_6,
    *schema.triggers_3("objects"),
    *schema.triggers_3("subscriptions"),
    *schema.triggers_3("idf"),
)

_FROM_6 = (schema.OUTLET_7, schema.OUTLET_TOTALS_7, *schema.triggers_3("outlet"))

_CREATE_7 = (*_CREATE_6, schema.OUTLET_7, schema.OUTLET_TOTALS_7, *schema.triggers_3("outlet"))

# All of it is of the default tenant, and no object has an owner: names and checksums stay as they are.
_FROM_7 = (
    "DROP TRIGGER objects_INSERT",
    "DROP TRIGGER objects_DELETE",
    "ALTER TABLE objects RENAME TO old_objects",
    schema.OBJECTS_8,
    """
    INSERT INTO objects SELECT object_id, checksum, lon, lat, keywords, created_ms, expiry_ms, payload,
        object_key, area, '' FROM old_objects
    """,
    "DROP TABLE old_objects",
    *schema.triggers_3("objects"),
)

_CREATE_8 = (
    schema.META_3,
    schema.OBJECTS_8,
    schema.SUBSCRIPTIONS_4,
    schema.IDF_6,
    schema.OUTLET_7,
    schema.TOTALS_3,
    schema.IDF_TOTALS_6,
    schema.OUTLET_TOTALS_7,
    *schema.triggers_3("objects"),
    *schema.triggers_3("subscriptions"),
    *schema.triggers_3("idf"),
    *schema.triggers_3("outlet"),
)

# No subscription has a name: their checksums, and the sum of these, stay as they are.
_FROM_8 = (
    "DROP TRIGGER subscriptions_INSERT",
    "DROP TRIGGER subscriptions_DELETE",
    "ALTER TABLE subscriptions RENAME TO old_subscriptions",
    schema.SUBSCRIPTIONS_9,
    """
    INSERT INTO subscriptions SELECT device_id, subscription_id, checksum, kind, spec, '', heard_ms,
        heard_checksum FROM old_subscriptions
    """,
    "DROP TABLE old_subscriptions",
    *schema.triggers_3("subscriptions"),
)

_OBJECTS_3 = (
    "SELECT checksum, object_id, lon, lat, keywords, created_ms, expiry_ms, payload, object_key "
    "FROM objects ORDER BY object_id"
)

_OBJECTS_5 = (
    "SELECT checksum, object_id, lon, lat, keywords, created_ms, expiry_ms, payload, object_key, area "
    "FROM objects ORDER BY object_id"
)

_SUBSCRIPTIONS_4 = (
    "SELECT checksum, device_id, subscription_id, kind, spec FROM subscriptions "
    "ORDER BY device_id, subscription_id"
)

_ROWS_3 = (
    "SELECT checksum, device_id, subscription_id, keywords, k, alpha, similarity, region, heard_ms, "
    "heard_checksum FROM {table} ORDER BY device_id, subscription_id"
)
_PUT_4 = "INSERT INTO subscriptions VALUES (?, ?, ?, ?, ?, ?, ?)"

_CREATE = {3: _CREATE_3, 4: _CREATE_4, 5: _CREATE_5, 6: _CREATE_6, 7: _CREATE_7, 8: _CREATE_8}

_TOP_K = 0
"""The kind of all subscriptions up to version 3."""
_NUMBERS_3 = struct.Struct("<qqdqq")
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def migrate(database: sqlite3.Connection, version: int) -> None:
    """Bring a store up to date, in the transaction that has begun.

    Raises
    ------
    Damage
        If a row is not what was written, or one is lost.
    """
    steps: dict[int, Callable[[sqlite3.Connection], None]] = {
        1: _from_1,
        2: _from_2,
        3: _from_3,
        4: _from_4,
        5: _from_5,
        6: _from_6,
        7: _from_7,
        8: _from_8,
    }
    for older in range(version, schema.SCHEMA_VERSION):
        steps[older](database)
    database.execute(f"PRAGMA user_version={schema.SCHEMA_VERSION}")


def verify(database: sqlite3.Connection, version: int) -> None:
    """Verify a store of an older version as far as that one could.

    Raises
    ------
    Damage
        If a row is not what was written, or one is lost.
    """
    if version < 3:  # noqa: PLR2004 - which had no checksums
        return
    is_old = version < 4  # noqa: PLR2004 - which has kinds of subscriptions
    has_areas = version > 4  # noqa: PLR2004
    reading.require_tables(database, schema.tables(_CREATE[version]))
    reading.require_settings(database)
    query = _ROWS_3.format(table="subscriptions") if is_old else _SUBSCRIPTIONS_4
    checksum_of: Callable[..., int] = _whole_checksum_3 if is_old else _subscription_checksum_4
    objects = _OBJECTS_5 if has_areas else _OBJECTS_3
    object_checksum: Callable[..., int] = _object_checksum_5 if has_areas else _object_checksum_3
    if version > 7:  # noqa: PLR2004 - which has owners
        objects, object_checksum = reading.OBJECTS, checksums.object_checksum
    for _ in reading.slices(database, "objects", objects, object_checksum):
        pass
    for _ in reading.slices(database, "subscriptions", query, checksum_of):
        pass
    if version > 5:  # noqa: PLR2004 - which has weights
        reading.idf(database)
    if version > 6:  # noqa: PLR2004 - which has what is to be told
        for _ in reading.slices(database, "outlet", reading.OUTLET, checksums.outlet_checksum):
            pass


def _from_1(database: sqlite3.Connection) -> None:
    for statement in _FROM_1:
        database.execute(statement)


def _from_2(database: sqlite3.Connection) -> None:
    checksums.add_to(database)
    database.create_function("object_checksum_3", 8, _object_checksum_3)
    database.create_function("subscription_checksum_3", 7, _subscription_checksum_3)
    for statement in _FROM_2:
        database.execute(statement)


def _from_3(database: sqlite3.Connection) -> None:
    """Make of a top-k subscription in five columns a kind and its spec."""
    verify(database, 3)
    for statement in _FROM_3:
        database.execute(statement)
    rows = database.execute(_ROWS_3.format(table="old_subscriptions"))
    database.executemany(_PUT_4, (_row_4(_Row3(*row[1:])) for row in rows))
    database.execute("DROP TABLE old_subscriptions")


def _from_4(database: sqlite3.Connection) -> None:
    """Let objects have areas."""
    verify(database, 4)
    for statement in _FROM_4:
        database.execute(statement)


def _from_5(database: sqlite3.Connection) -> None:
    """Let keywords have weights: there are none yet."""
    verify(database, 5)
    for statement in _FROM_5:
        database.execute(statement)


def _from_6(database: sqlite3.Connection) -> None:
    """Let what happens be told: nothing is to be told yet."""
    verify(database, 6)
    for statement in _FROM_6:
        database.execute(statement)


def _from_7(database: sqlite3.Connection) -> None:
    """Let objects have owners: those that are there have none."""
    verify(database, 7)
    for statement in _FROM_7:
        database.execute(statement)


def _from_8(database: sqlite3.Connection) -> None:
    """Let subscriptions have names: those that are there have none."""
    verify(database, 8)
    for statement in _FROM_8:
        database.execute(statement)


class _Row3(NamedTuple):
    """A subscription of version 3, but for its checksum."""

    device_id: str
    subscription_id: int
    keywords: str
    k: int
    alpha: float
    similarity: int
    region: int
    heard_ms: int
    heard_checksum: int


def _row_4(row: _Row3) -> tuple[object, ...]:
    try:
        words = json.loads(row.keywords)
    except ValueError:  # versions 1 and 2 could not tell
        raise reading.Damage(
            f"row {row.device_id!r} of subscriptions has keywords that are no JSON"
        ) from None
    spec = _encode([words, row.k, row.alpha, row.similarity, row.region])
    key = (row.device_id, row.subscription_id)
    checksum = checksums.subscription_checksum(*key, _TOP_K, spec, "")
    return (*key, checksum, _TOP_K, spec, row.heard_ms, row.heard_checksum)


def _object_checksum_5(*columns: Any) -> int:  # noqa: ANN401
    """Return the checksum of an object as versions 5 to 7 had them."""
    object_checksum: Callable[..., int] = checksums.object_checksum
    return object_checksum(*columns, "")


def _object_checksum_3(*columns: Any) -> int:  # noqa: ANN401
    """Return the checksum of an object as versions 3 and 4 had them."""
    object_checksum: Callable[..., int] = checksums.object_checksum
    return object_checksum(*columns, "", "")


def _subscription_checksum_4(*columns: Any) -> int:  # noqa: ANN401
    """Return the checksum of a subscription as versions 4 to 8 had them."""
    subscription_checksum: Callable[..., int] = checksums.subscription_checksum
    return subscription_checksum(*columns, "")


def _subscription_checksum_3(
    device_id: str,
    subscription_id: int,
    keywords: str,
    k: int,
    alpha: float,
    similarity: int,
    region: int,
) -> int:
    numbers = _NUMBERS_3.pack(subscription_id, k, alpha, similarity, region)
    return crc32(f"{keywords}\0{device_id}".encode(), crc32(numbers))


def _whole_checksum_3(*columns: Any) -> int:  # noqa: ANN401
    """Return the checksum of a row, once the other one that it has is verified."""
    row = _Row3(*columns)
    if checksums.heard_checksum(row.device_id, row.heard_ms) != row.heard_checksum:
        raise reading.Damage(f"when device {row.device_id!r} was heard of last is not what was written")
    return _subscription_checksum_3(*row[:7])
