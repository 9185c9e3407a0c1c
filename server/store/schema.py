"""The tables of a store, and how it says what it is. `migrations` has how older ones become new.

SQLite knows whether its trees are whole, not whether a row is what was written. So every row has a
checksum, and `meta` has the number of rows of each table and the sum of their checksums, which triggers
keep: a row that was changed or lost by anything but this program is found when it is read. All of `meta`
is in one page, so that it cannot be of two moments.

Statements are named after the version that they came with, and never changed: another version has others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

APPLICATION_ID = 0x6E656172
"""Marks the file as ours in SQLite's header: "near" in ASCII."""

SCHEMA_VERSION = 9
"""Raised by every change of the tables below."""

CHECKSUMS_SINCE = 3
"""The version that brought checksums of settings."""

META_3 = """
CREATE TABLE meta (
    name TEXT PRIMARY KEY,      -- a setting, or a table
    value NOT NULL,             -- a text, or how many rows it has
    checksum INTEGER NOT NULL   -- of name and value, or the sum of those of its rows
) WITHOUT ROWID
"""

OBJECTS_3 = """
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

OBJECTS_5 = """
CREATE TABLE objects (
    object_id INTEGER PRIMARY KEY,
    checksum INTEGER NOT NULL,  -- of all other columns
    lon REAL NOT NULL,          -- of a point inside the area, if there is one
    lat REAL NOT NULL,
    keywords TEXT NOT NULL,     -- JSON array
    created_ms INTEGER NOT NULL,
    expiry_ms INTEGER NOT NULL,
    payload BLOB NOT NULL,
    object_key TEXT NOT NULL,
    area TEXT NOT NULL          -- JSON; empty if the object is a point
)
"""

OBJECTS_8 = """
CREATE TABLE objects (
    object_id INTEGER PRIMARY KEY,
    checksum INTEGER NOT NULL,  -- of all other columns
    lon REAL NOT NULL,          -- of a point inside the area, if there is one
    lat REAL NOT NULL,
    keywords TEXT NOT NULL,     -- JSON array; qualified by the tenant, as the next two texts are
    created_ms INTEGER NOT NULL,
    expiry_ms INTEGER NOT NULL,
    payload BLOB NOT NULL,
    object_key TEXT NOT NULL,
    area TEXT NOT NULL,         -- JSON; empty if the object is a point
    owner TEXT NOT NULL         -- empty if whoever published it need not say who it is
)
"""

SUBSCRIPTIONS_4 = """
CREATE TABLE subscriptions (
    device_id TEXT NOT NULL,
    subscription_id INTEGER NOT NULL,
    checksum INTEGER NOT NULL,  -- of all other columns up to spec
    kind INTEGER NOT NULL,
    spec TEXT NOT NULL CHECK (json_valid(spec)),  -- only its kind knows more of it
    heard_ms INTEGER NOT NULL,  -- when the device was heard of last, coarsely
    heard_checksum INTEGER NOT NULL,  -- of device_id and heard_ms
    PRIMARY KEY (device_id, subscription_id)
) WITHOUT ROWID
"""

SUBSCRIPTIONS_9 = """
CREATE TABLE subscriptions (
    device_id TEXT NOT NULL,
    subscription_id INTEGER NOT NULL,
    checksum INTEGER NOT NULL,  -- of all other columns up to name
    kind INTEGER NOT NULL,
    spec TEXT NOT NULL CHECK (json_valid(spec)),  -- only its kind knows more of it
    name TEXT NOT NULL,         -- unique among those of the device; empty for none
    heard_ms INTEGER NOT NULL,  -- when the device was last seen, coarsely
    heard_checksum INTEGER NOT NULL,  -- of device_id and heard_ms
    PRIMARY KEY (device_id, subscription_id)
) WITHOUT ROWID
"""

IDF_6 = """
CREATE TABLE idf (
    generation INTEGER PRIMARY KEY,
    checksum INTEGER NOT NULL,  -- of all other columns
    weights BLOB NOT NULL       -- what keywords weigh, JSON, compressed
)
"""

OUTLET_7 = """
CREATE TABLE outlet (
    number INTEGER PRIMARY KEY,
    checksum INTEGER NOT NULL,  -- of all other columns
    action TEXT NOT NULL,
    object_id INTEGER NOT NULL,
    time_ms INTEGER NOT NULL,
    said TEXT NOT NULL,         -- JSON [lon, lat, keywords, ttl_ms] of what was published; else empty
    payload BLOB NOT NULL
)
"""

OUTLET_TOTALS_7 = "INSERT INTO meta VALUES ('outlet', 0, 0)"

IDF_TOTALS_6 = "INSERT INTO meta VALUES ('idf', 0, 0)"

TOTALS_3 = "INSERT INTO meta VALUES ('objects', 0, 0), ('subscriptions', 0, 0)"

_TRIGGER_3 = """
CREATE TRIGGER {table}_{event} AFTER {event} ON {table} BEGIN
    UPDATE meta SET value = value {sign} 1, checksum = checksum {sign} {row}.checksum
    WHERE name = '{table}';
END
"""


def triggers_3(table: str) -> tuple[str, ...]:
    """Return what keeps the totals of a table."""
    events = (("INSERT", "+", "NEW"), ("DELETE", "-", "OLD"))
    return tuple(
        _TRIGGER_3.format(table=table, event=event, sign=sign, row=row) for event, sign, row in events
    )


CREATE = (
    META_3,
    OBJECTS_8,
    SUBSCRIPTIONS_9,
    IDF_6,
    OUTLET_7,
    TOTALS_3,
    IDF_TOTALS_6,
    OUTLET_TOTALS_7,
    *triggers_3("objects"),
    *triggers_3("subscriptions"),
    *triggers_3("idf"),
    *triggers_3("outlet"),
)
"""Makes a store of this version."""


def plain(statement: str) -> str:
    """Return a statement without comments and line breaks, which may be written otherwise any day."""
    return " ".join(re.sub(r"--[^\n]*", "", statement).split())


def tables(create: Iterable[str]) -> set[str]:
    """Return what SQLite keeps of statements that make a store."""
    return {plain(statement) for statement in create if not statement.startswith("INSERT")}


TABLES = tables(CREATE)

META_AREA = "area"
"""The service area, JSON [lon_min, lat_min, lon_max, lat_max]."""
META_TIME = "time_ms"
"""No time above it was ever told: a server begins there at the earliest, so time never goes backwards."""
META_NEXT_ID = "next_object_id"
"""Above every id ever assigned: ids are never reused."""
META_STORE = "store_id"
"""Which store it is: drawn when it is made, 32 hexadecimal digits."""
META_COMMITS = "commit_count"
"""How many commits there were; each adds one. Absent if there was none since there is such a count."""
META_OUTLET = "outlet_number"
"""The number of what was last to be told at the outlet; absent if nothing was."""
META_INLET = "inlet/"
"""Begins the settings that say up to where streams of the inlet were taken."""
