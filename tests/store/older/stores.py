"""Stores as older versions made them, and what is in them."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from safe_region.region import RegionMode
from safe_region.scoring import Similarity
from server.core.specs.top_k import TopKKind
from server.model import LiveObject, TopK
from server.store.areas import decoded_area
from server.store.mutations import PutSubscription
from tests.store.conftest import FRAME, an_object

_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE objects (
    object_id INTEGER PRIMARY KEY, lon REAL NOT NULL, lat REAL NOT NULL, keywords TEXT NOT NULL,
    created_ms INTEGER NOT NULL, expiry_ms INTEGER NOT NULL, payload BLOB NOT NULL,
    object_key TEXT NOT NULL
);
"""
"""Of versions 1 and 2, as these had them."""

_SUBSCRIPTIONS = {
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
SCRIPTS = {number: Path(__file__).with_name(f"version_{number}.sql") for number in range(3, 9)}
COUNT = 300
"""Objects and subscriptions of a store of version 1 or 2."""


def older(path, version):
    """Write a file as a server of that version did."""
    written(path, version).close()


def written(path, version):
    """Write a file as a server of that version did, and has open: what was written is in the log."""
    database = sqlite3.connect(path, isolation_level=None)
    if version > 2:
        database.execute("PRAGMA auto_vacuum=INCREMENTAL")
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=OFF")
    if version > 2:
        database.executescript(SCRIPTS[version].read_text(encoding="utf-8"))
    else:
        _fill(database, version)
    return database


def _fill(database, version):
    database.executescript(_TABLES + _SUBSCRIPTIONS[version])
    database.execute("BEGIN")
    database.execute(f"PRAGMA application_id={0x6E656172}")
    database.execute(f"PRAGMA user_version={version}")
    meta = {"area": json.dumps(FRAME.area), "time_ms": "700", "next_object_id": str(COUNT + 50)}
    database.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
    for number in range(1, COUNT + 1):
        item = an_object(number, 10_000 + number)
        words = json.dumps(item.keywords, ensure_ascii=False)
        times = (item.created_ms, item.expiry_ms)
        database.execute(
            "INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (number, item.lon, item.lat, words, *times, item.payload, item.key),
        )
    for number in range(COUNT):
        words = json.dumps(["sushi", "茶"], ensure_ascii=False)
        said = [f"device {number:04d} é", 1 + number % 3, words, 1 + number % 9, 0.1 + number / 777, 2]
        said += [1 + number % 2] if version > 1 else []
        marks = ", ".join("?" * len(said))
        database.execute(f"INSERT INTO subscriptions VALUES ({marks})", said)  # noqa: S608
    database.execute("COMMIT")


def contents(path):
    """Read a file as a server of its version did: objects and subscriptions, the time, the next id.

    Subscriptions as their kind writes them today; when their devices were heard of, if it knows.
    """
    database = sqlite3.connect(path)
    (version,) = database.execute("PRAGMA user_version").fetchone()
    meta = dict(database.execute("SELECT name, value FROM meta"))
    area = "area" if version > 4 else "''"
    objects = [
        LiveObject(
            number,
            lon,
            lat,
            FRAME.project(lon, lat),
            tuple(json.loads(words)),
            *others,
            decoded_area(text) if text else None,
        )
        for number, lon, lat, words, *others, text in database.execute(
            f"SELECT object_id, lon, lat, keywords, created_ms, expiry_ms, payload, object_key, {area} "  # noqa: S608
            "FROM objects WHERE expiry_ms > ? ORDER BY object_id",
            (int(meta["time_ms"]),),
        )
    ]
    if version > 3:
        query = "SELECT device_id, subscription_id, kind, spec FROM subscriptions ORDER BY 1, 2"
        subscriptions = [PutSubscription(*row) for row in database.execute(query)]
    else:
        subscriptions = _subscriptions(database, "region" if version > 1 else "1")
    database.close()
    return tuple(objects), tuple(subscriptions), int(meta["time_ms"]), int(meta["next_object_id"])


def _subscriptions(database, region):
    """Read those of up to version 3, which were all top-k."""
    rows = database.execute(
        f"SELECT device_id, subscription_id, keywords, k, alpha, similarity, {region} FROM subscriptions "  # noqa: S608
        "ORDER BY device_id, subscription_id"
    ).fetchall()
    return [
        PutSubscription(device, number, TopKKind.number, TopKKind.encoded(_spec(*others)))
        for device, number, *others in rows
    ]


def _spec(words, k, alpha, similarity, region):
    return TopK(tuple(json.loads(words)), k, alpha, Similarity(similarity), RegionMode(region))
