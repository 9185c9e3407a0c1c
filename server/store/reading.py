"""Reading a whole store: slices of columns, every row verified. About 3 us per row."""

from __future__ import annotations

import json
import sqlite3
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from operator import itemgetter, lt
from typing import Any

import numpy as np

from cluster.entries import Cursor
from index.batches import Floats, Ints
from safe_region.earth.shapes import ObjectArea
from safe_region.scoring.idf import IdfError, IdfTable
from server.errors import StoreError
from server.store import schema
from server.store.areas import decoded_area
from server.store.checksums import (
    idf_checksum,
    last_seen_checksum,
    meta_checksum,
    object_checksum,
    outcome_checksum,
    sink_checksum,
    subscription_checksum,
)
from server.store.mutations import Happened, ObjectColumns, Outcome, PutIdf, SubscriptionColumns
from server.store.rows import cursor_from

_SLICE = 20_000
"""Rows to read at a time, which bounds the memory in addition to the result."""

OBJECTS = (
    "SELECT checksum, object_id, lon, lat, keywords, created_ms, expiry_ms, payload, object_key, area, "
    "owner FROM objects ORDER BY object_id"
)
SUBSCRIPTIONS = (
    "SELECT checksum, device_id, subscription_id, kind, spec, name FROM subscriptions "
    "ORDER BY device_id, subscription_id"
)
_SUBSCRIPTIONS_SEEN = (
    "SELECT checksum, device_id, subscription_id, kind, spec, name, last_seen_ms, last_seen_checksum "
    "FROM subscriptions ORDER BY device_id, subscription_id"
)
IDF = "SELECT checksum, generation, weights FROM idf ORDER BY generation"
_SINK = "SELECT checksum, number, action, object_id, time_ms, about, payload FROM sink"
SINK = f"{_SINK} ORDER BY number"
_UNSENT = f"{_SINK} WHERE number > ? ORDER BY number LIMIT ?"
OUTCOMES = "SELECT checksum, number, request_id, time_ms, reply FROM outcomes ORDER BY number"
_EXPIRY = 6
"""Index of the column in OBJECTS."""
_OVERDUE = (
    # With max() SQLite returns the checksum of the same row.
    "SELECT device_id, max(last_seen_ms) AS latest_ms, last_seen_checksum FROM subscriptions "
    "GROUP BY device_id HAVING latest_ms < ? LIMIT ?"
)

_LAST_SEEN = (
    "SELECT max(last_seen_ms), last_seen_checksum FROM subscriptions "
    "WHERE device_id = ? GROUP BY device_id"
)

_SETTINGS = (
    "SELECT name, value, checksum FROM meta "
    "WHERE name NOT IN ('objects', 'subscriptions', 'idf', 'sink', 'outcomes')"
)

_KEYS = {"subscriptions": itemgetter(1, 2)}
"""The keys that order the rows of a table, where they are not the one column after the checksum."""

Rows = list[tuple[Any, ...]]


ADVICE = "restore a backup, or continue with what is intact: nearcast serve --accept-loss"
"""The end of every refusal of a damaged store."""


class Damage(Exception):  # noqa: N818 - a condition, for a sentence
    """A store is not as it was written."""


def without_values(error: Exception) -> str:
    """Return SQLite's message without stored values, so that no position or keyword gets into a log."""
    text = str(error).removeprefix("*** in database main ***\n")
    return text.split(" with text ", 1)[0].split("\n", 1)[0]


@contextmanager
def damage_named(path: str) -> Iterator[None]:
    """Turn the errors of reading a damaged file into a StoreError that describes the damage."""
    try:
        yield
    except (Damage, sqlite3.Error, UnicodeError) as error:
        raise StoreError(f"store {path} is damaged: {without_values(error)}; {ADVICE}") from error


def objects(database: sqlite3.Connection, path: str, time_ms: int) -> Iterator[ObjectColumns]:
    """Yield the objects that are alive after a time.

    Raises
    ------
    StoreError
        At the first row that is damaged; at the end, if one is lost.
    """
    with damage_named(path):
        for rows in slices(database, "objects", OBJECTS, object_checksum):
            alive = [row for row in rows if row[_EXPIRY] > time_ms]
            expired = [row[1] for row in rows if row[_EXPIRY] <= time_ms]
            columns = list(zip(*alive, strict=True)) or [()] * 11
            _, ids, lon, lat, words, created_ms, expiry_ms, payloads, keys, areas, owners = columns
            yield ObjectColumns(
                _ints(ids),
                _floats(lon),
                _floats(lat),
                _parsed("objects", ids, words),
                _ints(created_ms),
                _ints(expiry_ms),
                payloads,
                keys,
                _areas(ids, areas),
                owners,
                expired,
            )


def idf(database: sqlite3.Connection) -> PutIdf | None:
    """Return the table of keyword weights, if there is one.

    Raises
    ------
    Damage
        If it is not as it was written, or lost.
    """
    found = None
    for rows in slices(database, "idf", IDF, idf_checksum):
        for _, generation, packed in rows:
            found = PutIdf(generation, unpacked_idf(packed))
    return found


def source_offsets(database: sqlite3.Connection) -> dict[str, str]:
    """Return the offsets up to which streams of the source were read.

    Raises
    ------
    Damage
        If a setting is not as it was written.
    """
    return _settings_of(database, schema.META_SOURCE)


def source_cursors(database: sqlite3.Connection) -> dict[str, Cursor]:
    """Return how far streams of the source were read into the log.

    Raises
    ------
    Damage
        If a setting is not as it was written.
    """
    found = _settings_of(database, schema.META_LOG_SOURCE)
    return {stream: cursor_from(text) for stream, text in found.items()}


def _settings_of(database: sqlite3.Connection, prefix: str) -> dict[str, str]:
    """Return the settings whose names have a prefix, by the rest of their names."""
    require_settings(database)  # the query below would not find a damaged name
    return {
        name.removeprefix(prefix): value
        for name, value, _ in settings(database)
        if name.startswith(prefix)
    }


def outcomes(database: sqlite3.Connection) -> list[Outcome]:
    """Return the outcomes of requests in the log, oldest first.

    Raises
    ------
    Damage
        If one is not as it was written, or lost.
    """
    return [
        Outcome(number // schema.PLACES, number % schema.PLACES, request_id, time_ms, reply)
        for rows in slices(database, "outcomes", OUTCOMES, outcome_checksum)
        for _, number, request_id, time_ms, reply in rows
    ]


def happened(database: sqlite3.Connection, path: str, count_max: int, after: int) -> list[Happened]:
    """Return the changes after a number to be written to the sink next.

    Raises
    ------
    StoreError
        If a change is not as it was written.
    """
    with damage_named(path):
        rows = database.execute(_UNSENT, (after, count_max)).fetchall()
        verified(rows, "sink", sink_checksum)
    return [Happened(*row[1:]) for row in rows]


def unpacked_idf(packed: bytes) -> IdfTable:
    """Return the table in its stored form. Raises Damage if it is none."""
    try:
        return IdfTable.from_stored(zlib.decompress(packed).decode())
    except (zlib.error, IdfError, UnicodeError) as error:
        raise Damage(f"the table of weights cannot be read: {error}") from None


def subscriptions(database: sqlite3.Connection, path: str) -> Iterator[SubscriptionColumns]:
    """Yield all subscriptions, by device and number.

    Raises
    ------
    StoreError
        At the first row that is damaged; at the end, if one is lost.
    """
    with damage_named(path):
        for rows in slices(database, "subscriptions", _SUBSCRIPTIONS_SEEN, subscription_checksum, 6):
            _, devices, numbers, kinds, specs, names, seen_ms, checksums = zip(*rows, strict=True)
            _require_seen(devices, seen_ms, checksums)
            parsed = _parsed("subscriptions", devices, specs)
            yield SubscriptionColumns(devices, _ints(numbers), _ints(kinds), parsed, names)


def overdue(database: sqlite3.Connection, path: str, before_ms: int, count_max: int) -> list[str]:
    """Return at most `count_max` devices that were not seen since a time. O(rows).

    Raises
    ------
    StoreError
        If the store cannot be read.
    """
    with damage_named(path):
        rows = database.execute(_OVERDUE, (before_ms, count_max)).fetchall()
        for device_id, last_seen_ms, checksum in rows:
            if last_seen_checksum(device_id, last_seen_ms) != checksum:
                raise Damage(f"the last-seen time of device {device_id!r} does not match its checksum")
    return [device_id for device_id, _, _ in rows]


def last_seen_ms(database: sqlite3.Connection, path: str, device_id: str) -> int | None:
    """Return the time a device was last seen; None if it has no subscriptions. O(log rows).

    Raises
    ------
    StoreError
        If the store cannot be read.
    """
    with damage_named(path):
        row = database.execute(_LAST_SEEN, (device_id,)).fetchone()
        if row is None:
            return None
        seen_ms, checksum = row
        if last_seen_checksum(device_id, seen_ms) != checksum:
            raise Damage(f"the last-seen time of device {device_id!r} does not match its checksum")
    return int(seen_ms)


def slices(
    database: sqlite3.Connection,
    table: str,
    query: str,
    checksum_of: Callable[..., int],
    column_count: int | None = None,
) -> Iterator[Rows]:
    """Yield verified rows, which start with their checksums; at the end, verify that none is lost.

    Checksums cover columns up to `column_count`, themselves included; all by default.

    Raises
    ------
    Damage
        If a row is not as it was written, or one is lost.
    """
    count = total = 0
    key_of = _KEYS.get(table, itemgetter(1))
    latest = None
    cursor = database.execute(query)
    while rows := cursor.fetchmany(_SLICE):
        total += verified(rows, table, checksum_of, column_count)
        keys = list(map(key_of, rows))
        require_ascending(table, keys if latest is None else [latest, *keys])
        latest = keys[-1]
        count += len(rows)
        yield rows
    require_totals(database, table, count, total)


def require_ascending(table: str, keys: list[Any]) -> None:
    """Verify that keys ascend: SQLite returns rows in their stored order, which exchanged pages break."""
    if not all(map(lt, keys, keys[1:])):
        key = next(later for earlier, later in pairwise(keys) if not earlier < later)
        raise Damage(f"row {key!r} of {table} is out of order")


def _require_seen(devices: Sequence[str], seen_ms: Sequence[int], checksums: Sequence[int]) -> None:
    """Verify the checksums of the times at which devices were last seen."""
    found = list(map(last_seen_checksum, devices, seen_ms))
    if found != list(checksums):
        wrong = next(i for i, one in enumerate(found) if one != checksums[i])
        raise Damage(f"the last-seen time of device {devices[wrong]!r} does not match its checksum")


def require_sink(database: sqlite3.Connection, latest: int) -> None:
    """Verify that all changes for the sink up to the latest number are there."""
    for _ in slices(database, "sink", SINK, sink_checksum):
        pass
    require_no_gap(database, latest)


def require_no_gap(database: sqlite3.Connection, latest: int) -> None:
    """Verify that the numbers of the changes for the sink go up to the latest one without a gap."""
    query = "SELECT count(*), min(number), max(number) FROM sink"
    count, first, last = database.execute(query).fetchone()
    if count and (last, count) != (latest, latest - first + 1):
        raise Damage(f"sink has {count} rows, not all of {first} to {latest}")


def verified(
    rows: Rows, table: str, checksum_of: Callable[..., int], column_count: int | None = None
) -> int:
    """Verify rows that start with their checksums; return the sum of the checksums."""
    total = 0
    for row in rows:
        try:
            found = checksum_of(*row[1:column_count])
        except (struct.error, AttributeError, TypeError, ValueError):
            found = None  # not even of the types that were written
        if found is None or found != row[0]:
            raise Damage(f"row {row[1]!r} of {table} does not match its checksum")
        total += row[0]
    return total


def require_tables(database: sqlite3.Connection, tables: set[str]) -> None:
    """Verify that tables and triggers are as they were created."""
    rows = database.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")
    if {schema.plain(str(sql)) for (sql,) in rows} != tables:
        raise Damage("its tables are not those of a store")


def setting(database: sqlite3.Connection, name: str) -> str | None:
    """Return a setting; None if it does not exist.

    Raises
    ------
    Damage
        If it is not as it was written.
    """
    query = "SELECT value, checksum FROM meta WHERE name = ?"
    row = database.execute(query, (name,)).fetchone()
    if row is None:
        return None
    value, checksum = row
    if meta_checksum(name, value) != checksum:
        raise Damage(f"{name} does not match its checksum")
    return str(value)


def settings(database: sqlite3.Connection) -> Iterator[tuple[str, str, bool]]:
    """Yield name and value of all settings, and whether they are as they were written."""
    for name, value, checksum in database.execute(_SETTINGS):
        yield str(name), str(value), meta_checksum(str(name), str(value)) == checksum


def require_settings(database: sqlite3.Connection) -> None:
    """Verify all settings."""
    for name, _, is_intact in settings(database):
        if not is_intact:
            raise Damage(f"{name} does not match its checksum")


def require_totals(database: sqlite3.Connection, table: str, count: int, total: int) -> None:
    """Verify that all rows that were written are there."""
    query = "SELECT value, checksum FROM meta WHERE name = ?"
    expected = database.execute(query, (table,)).fetchone()
    if expected != (count, total):
        written = "an unknown number" if expected is None else expected[0]
        raise Damage(f"{table} has {count} rows, must have the {written} rows that were written")


def _ints(values: tuple[int, ...]) -> Ints:
    return np.array(values, dtype=np.int64)


def _floats(values: tuple[float, ...]) -> Floats:
    return np.array(values, dtype=np.float64)


def _areas(ids: Sequence[int], stored: Sequence[bytes]) -> dict[int, ObjectArea]:
    """Return the areas of the objects that have one, by id."""
    found = {}
    for object_id, data in zip(ids, stored, strict=True):
        if data:
            try:
                area = decoded_area(data)
            except (TypeError, ValueError):
                raise Damage(f"row {object_id} of objects has an invalid area") from None
            if area is not None:
                found[object_id] = area
    return found


def _parsed(table: str, names: Sequence[object], texts: Sequence[str]) -> list[Any]:
    """Return parsed JSON texts, parsed all at once."""
    try:
        found: list[Any] = json.loads(f"[{','.join(texts)}]")
    except ValueError:
        found = []
    if len(found) != len(texts):
        name = next(name for name, text in zip(names, texts, strict=True) if not is_json(text))
        raise Damage(f"row {name!r} of {table} has a value that is not JSON")
    return found


def is_json(text: str) -> bool:
    """Return whether a text is JSON."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
