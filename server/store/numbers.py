"""The numbers of a salvaged store: next id, time, and those of the changes for the sink. None goes back.

A number that is damaged is replaced by that of the mark, and is never below what the intact rows need.
"""

from __future__ import annotations

import sqlite3

from server.store import opening, schema
from server.store.checksums import sink_checksum
from server.store.mark import Mark

_LATEST_ID = """
SELECT ifnull(max(latest), 0) FROM (
    SELECT max(object_id) AS latest FROM objects UNION ALL SELECT max(object_id) FROM sink
)
"""
_LATEST_MS = """
SELECT ifnull(max(latest), 0) FROM (
    SELECT max(created_ms) AS latest FROM objects UNION ALL SELECT max(time_ms) FROM sink
    UNION ALL SELECT max(last_seen_ms) FROM subscriptions
)
"""
_LATEST_CHANGE = "SELECT ifnull(max(number), 0) FROM sink"

_CHANGE = "SELECT action, object_id, time_ms, about, payload FROM sink WHERE number = ?"
_DELETE_CHANGE = "DELETE FROM sink WHERE number = ?"
_PUT_CHANGE = "INSERT INTO sink VALUES (?, ?, ?, ?, ?, ?, ?)"


def write_mark(database: sqlite3.Connection, known: Mark) -> None:
    """Write the settings that a mark has. Those of the damaged store, if intact, replace them later."""
    for name, value in zip(
        (schema.META_STORE, schema.META_COMMITS, schema.META_NEXT_ID, schema.META_TIME),
        known,
        strict=True,
    ):
        opening.put_meta(database, name, str(value))


def raise_numbers(database: sqlite3.Connection, path: str) -> None:
    """Raise next id, time and the number of the latest change to what the rows need at least."""
    for name, query, more in (
        (schema.META_NEXT_ID, _LATEST_ID, 1),
        (schema.META_TIME, _LATEST_MS, 0),
        (schema.META_SINK, _LATEST_CHANGE, 0),
    ):
        (latest,) = database.execute(query).fetchone()
        opening.raise_number(database, path, name, latest + more)


def close_gaps(database: sqlite3.Connection, path: str, *, is_latest_lost: bool) -> None:
    """Renumber the changes for the sink, upwards, so that they end at the latest one without a gap.

    If the number of the latest one is lost, it becomes the greatest that it can have been: an object has
    at most two changes. A sink in Redis takes no number below those that it has.
    """
    if is_latest_lost:
        next_id = opening.number(database, path, schema.META_NEXT_ID)
        opening.raise_number(database, path, schema.META_SINK, 2 * (next_id - 1))
    latest = opening.number(database, path, schema.META_SINK)
    numbers = database.execute("SELECT number FROM sink ORDER BY number DESC").fetchall()
    for place, (number,) in enumerate(numbers):
        if number != latest - place:
            _renumber(database, number, latest - place)


def _renumber(database: sqlite3.Connection, number: int, new_number: int) -> None:
    values = database.execute(_CHANGE, (number,)).fetchone()
    database.execute(_DELETE_CHANGE, (number,))  # the triggers that keep the totals know no update
    database.execute(_PUT_CHANGE, (new_number, sink_checksum(new_number, *values), *values))
