"""The tables of a store, and its identification. `migrations` upgrades older stores.

SQLite detects damaged trees, but not changed rows. So every row has a checksum, and `meta` has the number
of rows of each table and the sum of their checksums, which triggers maintain: a row that was changed or
lost by anything but this program is detected when it is read. All of `meta` is in one page, so that it
cannot be of two moments.
"""

from __future__ import annotations

import re

APPLICATION_ID = 0x6E637374
"""Identifies the file in SQLite's header: "ncst" in ASCII."""

UNRELEASED_ID = 0x6E656172
"""The id of stores from before the format was stable. Their versions differ."""

SCHEMA_VERSION = 2
"""Incremented by every change of the tables below, with a step in `migrations`."""

_META = """
CREATE TABLE meta (
    name TEXT PRIMARY KEY,      -- a setting, or a table
    value NOT NULL,             -- a text, or how many rows it has
    checksum INTEGER NOT NULL   -- of name and value, or the sum of those of its rows
) WITHOUT ROWID
"""

_OBJECTS = """
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
    area BLOB NOT NULL,         -- float64 in degrees (`areas`); empty if the object is a point
    owner TEXT NOT NULL         -- empty if whoever published it need not say who it is
)
"""

_SUBSCRIPTIONS = """
CREATE TABLE subscriptions (
    device_id TEXT NOT NULL,
    subscription_id INTEGER NOT NULL,
    checksum INTEGER NOT NULL,  -- of all other columns up to name
    kind INTEGER NOT NULL,
    spec TEXT NOT NULL CHECK (json_valid(spec)),  -- only its kind knows more of it
    name TEXT NOT NULL,         -- unique among those of the device; empty for none
    last_seen_ms INTEGER NOT NULL,  -- when the device was last seen, coarsely
    last_seen_checksum INTEGER NOT NULL,  -- of device_id and last_seen_ms
    PRIMARY KEY (device_id, subscription_id)
) WITHOUT ROWID
"""

_IDF = """
CREATE TABLE idf (
    generation INTEGER PRIMARY KEY,
    checksum INTEGER NOT NULL,  -- of all other columns
    weights BLOB NOT NULL       -- what keywords weigh, JSON, compressed
)
"""

_SINK = """
CREATE TABLE sink (
    number INTEGER PRIMARY KEY,
    checksum INTEGER NOT NULL,  -- of all other columns
    action TEXT NOT NULL,
    object_id INTEGER NOT NULL,
    time_ms INTEGER NOT NULL,
    about TEXT NOT NULL,        -- JSON [lon, lat, keywords, ttl_ms] of what was published; else empty
    payload BLOB NOT NULL
)
"""

_OUTCOMES = """
CREATE TABLE outcomes (
    number INTEGER PRIMARY KEY, -- offset in the log, and place among the requests of the message
    checksum INTEGER NOT NULL,  -- of all other columns
    request_id BLOB NOT NULL,
    time_ms INTEGER NOT NULL,   -- of the log
    reply TEXT NOT NULL         -- JSON: ids, or a refusal
)
"""

PLACES = 1 << 16
"""Requests that a message of the log may have: `number` is the offset times this, plus the place."""

_NO_ROWS = "INSERT INTO meta VALUES ('{table}', 0, 0)"

_TRIGGER = """
CREATE TRIGGER {table}_{event} AFTER {event} ON {table} BEGIN
    UPDATE meta SET value = value {sign} 1, checksum = checksum {sign} {row}.checksum
    WHERE name = '{table}';
END
"""


def totals(table: str) -> tuple[str, ...]:
    """Return the statements that create the totals of an empty table, and maintain them."""
    events = (("INSERT", "+", "NEW"), ("DELETE", "-", "OLD"))
    return (
        _NO_ROWS.format(table=table),
        *(_TRIGGER.format(table=table, event=event, sign=sign, row=row) for event, sign, row in events),
    )


CREATE_OUTCOMES = (_OUTCOMES, *totals("outcomes"))
"""The statements that version 2 has added."""

CREATE = (
    _META,
    *(_OBJECTS, *totals("objects")),
    *(_SUBSCRIPTIONS, *totals("subscriptions")),
    *(_IDF, *totals("idf")),
    *(_SINK, *totals("sink")),
    *CREATE_OUTCOMES,
)
"""The statements that create a store of this version."""


def plain(statement: str) -> str:
    """Return a statement without comments and line breaks, which may change."""
    return " ".join(re.sub(r"--[^\n]*", "", statement).split())


TABLES = {plain(statement) for statement in CREATE if not statement.startswith("INSERT")}
"""The statements as SQLite stores them."""

META_AREA = "area"
"""The service area, JSON [lon_min, lat_min, lon_max, lat_max]."""
META_TIME = "time_ms"
"""No later time was ever sent. A server starts there at the earliest, so time never goes backwards."""
META_NEXT_ID = "next_object_id"
"""Above every id ever assigned: ids are never reused."""
META_STORE = "store_id"
"""The id of the store: random, from its creation, 32 hexadecimal digits."""
META_COMMITS = "commit_count"
"""The number of commits; each adds one. Absent before the first."""
META_SINK = "sink_number"
"""The number of the latest change for the sink; absent if there was none."""
META_SOURCE = "source/"
"""Prefix of the settings with the offsets up to which streams of the source were read."""
META_LOG_OFFSET = "log_offset"
"""The offset up to which the log was applied; absent without a log."""
META_LOG_SOURCE = "log_source/"
"""Prefix of the settings with the cursors up to which streams of the source were read into the log."""
META_LOG_SINK = "log_sink"
"""Whether changes are kept for the sink of a cluster, 0 or 1; absent before there was one."""
META_LOG_WEIGHTS = "log_weights_pending"
"""Whether some node may not be done with the last table of weights, 0 or 1; may be absent."""
META_LOG_WINDOWS = "log_windows"
"""The windows in use in a cluster, JSON {node: [time_ms, [[duration_ms, count], ...]]}; may be absent."""
META_LOG_TIME = "log_time_ms"
"""The time of the log at that offset."""
META_FOUNDING = "log_founding"
"""The first entry of the log, hexadecimal; in the backup of a cluster only."""
META_LOG_RULES = "log_rules"
"""The rules of applying in force at that offset; absent for the first ones."""
META_LOG_ID = "log_id"
"""The id of the log, hexadecimal: a store continues with the log that its objects are from."""
