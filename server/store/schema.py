"""The tables of a store, and how it says what it is."""

APPLICATION_ID = 0x6E656172
"""Marks the file as ours in SQLite's header: "near" in ASCII."""

SCHEMA_VERSION = 2
"""Raised by every change of the tables below."""

TABLES = """
CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE objects (
    object_id INTEGER PRIMARY KEY,
    lon REAL NOT NULL,
    lat REAL NOT NULL,
    keywords TEXT NOT NULL,     -- JSON array
    created_ms INTEGER NOT NULL,
    expiry_ms INTEGER NOT NULL,
    payload BLOB NOT NULL,
    object_key TEXT NOT NULL
);

CREATE TABLE subscriptions (
    device_id TEXT NOT NULL,
    subscription_id INTEGER NOT NULL,
    keywords TEXT NOT NULL,     -- JSON array
    k INTEGER NOT NULL,
    alpha REAL NOT NULL,
    similarity INTEGER NOT NULL,
    region INTEGER NOT NULL DEFAULT 1,
    PRIMARY KEY (device_id, subscription_id)
) WITHOUT ROWID;
"""

MIGRATIONS = {
    1: "ALTER TABLE subscriptions ADD COLUMN region INTEGER NOT NULL DEFAULT 1",
}
"""What makes a store of a version one of the next."""

META_AREA = "area"
"""The service area, JSON [lon_min, lat_min, lon_max, lat_max]."""
META_TIME = "time_ms"
"""The highest time ever acknowledged: time never goes backwards."""
META_NEXT_ID = "next_object_id"
"""Above every id ever assigned: ids are never reused."""
