"""The tables of a store, how it says what it is, and how older ones become new.

SQLite knows whether its trees are whole, not whether a row is what was written. So every row has a
checksum, and `meta` has the number of rows of each table and the sum of their checksums, which triggers
keep: a row that was changed or lost by anything but this program is found when it is read. All of `meta`
is in one page, so that it cannot be of two moments.
"""

from __future__ import annotations

import re

APPLICATION_ID = 0x6E656172
"""Marks the file as ours in SQLite's header: "near" in ASCII."""

SCHEMA_VERSION = 3
"""Raised by every change of the tables below."""

META = """
CREATE TABLE meta (
    name TEXT PRIMARY KEY,      -- a setting, or a table
    value NOT NULL,             -- a text, or how many rows it has
    checksum INTEGER NOT NULL   -- of name and value, or the sum of those of its rows
) WITHOUT ROWID
"""

OBJECTS = """
CREATE TABLE objects (
    object_id INTEGER PRIMARY KEY,
    checksum INTEGER NOT NULL,  -- of all other columns
    lon REAL NOT NULL,
    lat REAL NOT NULL,
    keywords TEXT NOT NULL,     -- JSON array
    created_ms INTEGER NOT NULL,
    expiry_ms INTEGER NOT NULL,
    payload BLOB NOT NULL,
    object_key TEXT NOT NULL
)
"""

SUBSCRIPTIONS = """
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

_TRIGGER = """
CREATE TRIGGER {table}_{event} AFTER {event} ON {table} BEGIN
    UPDATE meta SET value = value {sign} 1, checksum = checksum {sign} {row}.checksum
    WHERE name = '{table}';
END
"""

TRIGGERS = tuple(
    _TRIGGER.format(table=table, event=event, sign=sign, row=row)
    for table in ("objects", "subscriptions")
    for event, sign, row in (("INSERT", "+", "NEW"), ("DELETE", "-", "OLD"))
)

CREATE = (
    META,
    OBJECTS,
    SUBSCRIPTIONS,
    "INSERT INTO meta VALUES ('objects', 0, 0), ('subscriptions', 0, 0)",
    *TRIGGERS,
)


def plain(statement: str) -> str:
    """Return a statement without comments and line breaks, which may be written otherwise any day."""
    return " ".join(re.sub(r"--[^\n]*", "", statement).split())


TABLES = {plain(statement) for statement in CREATE if not statement.startswith("INSERT")}
"""What SQLite keeps of the statements above."""

MIGRATIONS: dict[int, tuple[str, ...]] = {
    1: ("ALTER TABLE subscriptions ADD COLUMN region INTEGER NOT NULL DEFAULT 1",),
    2: (
        "ALTER TABLE meta RENAME TO old_meta",
        "ALTER TABLE objects RENAME TO old_objects",
        "ALTER TABLE subscriptions RENAME TO old_subscriptions",
        *CREATE,
        "INSERT INTO meta SELECT name, value, meta_checksum(name, value) FROM old_meta",
        """
        INSERT INTO objects SELECT object_id,
            object_checksum(
                object_id, lon, lat, keywords, created_ms, expiry_ms, payload, object_key
            ),
            lon, lat, keywords, created_ms, expiry_ms, payload, object_key
        FROM old_objects
        """,
        # Nobody knows when the devices were heard of: their time begins now.
        """
        INSERT INTO subscriptions SELECT device_id, subscription_id,
            subscription_checksum(
                device_id, subscription_id, keywords, k, alpha, similarity, region
            ),
            keywords, k, alpha, similarity, region, now_ms, heard_checksum(device_id, now_ms)
        FROM old_subscriptions,
            (SELECT CAST(value AS INTEGER) AS now_ms FROM old_meta WHERE name = 'time_ms')
        """,
        "DROP TABLE old_meta",
        "DROP TABLE old_objects",
        "DROP TABLE old_subscriptions",
    ),
}
"""What makes a store of a version one of the next. The checksums are functions of `checksums`."""

META_AREA = "area"
"""The service area, JSON [lon_min, lat_min, lon_max, lat_max]."""
META_TIME = "time_ms"
"""No time above it was ever told: a server begins there at the earliest, so time never goes backwards."""
META_NEXT_ID = "next_object_id"
"""Above every id ever assigned: ids are never reused."""
