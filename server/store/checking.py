"""The check of a store: the file is intact, rows are as written, and their values are valid.

The check treats specs of subscriptions as JSON; only their kinds validate more, when a server recovers.
O(rows), a few microseconds each, in one snapshot of the file; a server may write meanwhile.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from safe_region.earth.frame import Area
from safe_region.earth.shapes import Bounds
from server.errors import StoreError
from server.store import files, losses, opening, reading, schema
from server.store.areas import decoded_area
from server.store.checksums import (
    idf_checksum,
    last_seen_checksum,
    object_checksum,
    outcome_checksum,
    sink_checksum,
    subscription_checksum,
)

Progress = Callable[[str, int, int], None]
"""Called with a stage, the amount done, and the total."""

_SLICE = 10_000
_PROBLEMS_MAX = 100
"""Maximum number of problems that are reported."""
_REQUIRED = (schema.META_AREA, schema.META_TIME, schema.META_NEXT_ID)
"""Settings that every store has."""

_LAST_SEEN = "SELECT DISTINCT device_id, last_seen_ms, last_seen_checksum FROM subscriptions"


def check(path: Path, progress: Progress) -> list[str]:
    """Return the problems of a store or a backup, as sentences; an empty list if it is intact.

    Raises
    ------
    StoreError
        If it does not exist, is no store, or not of this version.
    """
    name = files.resolved(path)
    losses.require_database(name)
    if not path.is_file():
        raise StoreError(f"store {path} does not exist")
    found = []
    try:
        losses.look_only(losses.Losses(name, is_accepted=False))
    except StoreError as error:
        found.append(str(error))
    with contextlib.closing(opening.connected(str(path), read_only=True)) as database:
        return found + problems(database, str(path), progress)


def problems(database: sqlite3.Connection, path: str, progress: Progress) -> list[str]:
    """Return the problems of a store, as sentences; an empty list if it is intact.

    Raises
    ------
    StoreError
        If it is no store, or not of this version.
    """
    found: list[str] = []
    try:
        version = opening.require_store(database, path)
        if version < schema.SCHEMA_VERSION:
            raise StoreError(
                f"store {path} is of version {version}, this program checks version "
                f"{schema.SCHEMA_VERSION}: a server that opens the store migrates it"
            )
        opening.require_tables(database, path)
        database.execute("BEGIN")  # one snapshot
        for problem in _all(database, progress):
            found.append(problem)
            if len(found) >= _PROBLEMS_MAX:
                break
        database.execute("ROLLBACK")
    except (sqlite3.Error, UnicodeError) as error:
        found.append(f"the file is damaged: {reading.without_values(error)}")
    return found


def file_problems(database: sqlite3.Connection) -> Iterator[str]:
    """Yield the problems of the file, regardless of its rows."""
    for (problem,) in database.execute(f"PRAGMA integrity_check({_PROBLEMS_MAX})"):
        if problem != "ok":
            yield f"the file is damaged: {problem}"


def _all(database: sqlite3.Connection, progress: Progress) -> Iterator[str]:
    progress("file", 0, 1)
    yield from file_problems(database)
    progress("file", 1, 1)
    found = list(reading.settings(database))
    settings = {name: value for name, value, is_intact in found if is_intact}
    yield from (f"{name} does not match its checksum" for name, _, is_intact in found if not is_intact)
    yield from (f"it has no {name}" for name in _REQUIRED if name not in {one for one, _, _ in found})
    area = Area(*json.loads(settings.get(schema.META_AREA, "[-180, -90, 180, 90]")))
    time_ms, next_id = (int(settings.get(one, 2**63)) for one in (schema.META_TIME, schema.META_NEXT_ID))
    wrong = _ObjectRules(area, time_ms, next_id)
    yield from _rows(database, "objects", reading.OBJECTS, object_checksum, wrong, progress)
    yield from _rows(
        database,
        "subscriptions",
        reading.SUBSCRIPTIONS,
        subscription_checksum,
        _SubscriptionRules(),
        progress,
    )
    yield from _rows(database, "sink", reading.SINK, sink_checksum, _sink_wrong, progress)
    if schema.META_SINK in settings:
        yield from _gap(database, int(settings[schema.META_SINK]))
    yield from _rows(database, "outcomes", reading.OUTCOMES, outcome_checksum, _outcome_wrong, progress)
    yield from _rows(database, "idf", reading.IDF, idf_checksum, _idf_wrong, progress)
    for device_id, last_seen_ms, checksum in database.execute(_LAST_SEEN):
        if last_seen_checksum(device_id, last_seen_ms) != checksum or last_seen_ms > time_ms:
            yield f"the last-seen time of device {device_id!r} does not match its checksum"


def _gap(database: sqlite3.Connection, latest: int) -> Iterator[str]:
    """Yield the gap in the numbers of the changes for the sink, if any."""
    try:
        reading.require_no_gap(database, latest)
    except reading.Damage as damage:
        yield str(damage)


def _rows(
    database: sqlite3.Connection,
    table: str,
    query: str,
    checksum_of: Callable[..., int],
    wrong: Callable[..., str | None],
    progress: Progress,
) -> Iterator[str]:
    """Yield the problems of the rows of a table, which start with their checksums."""
    (expected,) = database.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608 - names of our own
    count = total = 0
    cursor = database.execute(query)
    progress(table, 0, expected)
    while rows := cursor.fetchmany(_SLICE):
        for row in rows:
            problem = _row_wrong(row, table, checksum_of, wrong)
            if problem is not None:
                yield problem
            total += row[0] if isinstance(row[0], int) else 0
        count += len(rows)
        progress(table, count, expected)
    try:
        reading.require_totals(database, table, count, total)
    except reading.Damage as damage:
        yield str(damage)


def _row_wrong(
    row: tuple[Any, ...], table: str, checksum_of: Callable[..., int], wrong: Callable[..., str | None]
) -> str | None:
    try:
        reading.verified([row], table, checksum_of)
        found = wrong(*row[1:])
    except reading.Damage as damage:
        return str(damage)
    except (TypeError, ValueError) as error:
        found = f"cannot be read: {error}"
    return None if found is None else f"row {row[1]!r} of {table} {found}"


class _ObjectRules:
    """The rules for objects. A call with a row returns the violation, or None."""

    def __init__(self, area: Area, time_ms: int, next_id: int) -> None:
        self._area = area
        self._time_ms = time_ms
        self._next_id = next_id
        self._keys: set[tuple[str, str]] = set()

    def __call__(  # noqa: PLR0913 - a row, in the order of its columns
        self,
        object_id: int,
        lon: float,
        lat: float,
        keywords: str,
        created_ms: int,
        expiry_ms: int,
        _payload: bytes,
        key: str,
        area_data: bytes,
        owner: str,
    ) -> str | None:
        if not 0 < object_id < self._next_id:
            return f"has an id that is not below {self._next_id}, the next one"
        problem = self._place_wrong(lon, lat, area_data)
        if problem is not None:
            return problem
        if not created_ms < expiry_ms:
            return f"expires at {expiry_ms}, not after {created_ms}, when it was created"
        if created_ms > self._time_ms:
            return f"was created at {created_ms}, after {self._time_ms}, the time of the store"
        if key and expiry_ms > self._time_ms:
            if (owner, key) in self._keys:
                return f"has the key {key!r} of another object of its owner"
            self._keys.add((owner, key))
        return _keywords_wrong(keywords)

    def _place_wrong(self, lon: float, lat: float, area_data: bytes) -> str | None:
        area = self._area
        if not (area.lon_min <= lon <= area.lon_max and area.lat_min <= lat <= area.lat_max):
            return f"lies at ({lon}, {lat}), outside the service area"
        if area_data and not _is_around(area_data, lon, lat):
            return f"lies at ({lon}, {lat}), outside its own area"
        return None


class _SubscriptionRules:
    """The rules for subscriptions. A call with the next row in order returns the violation, or None."""

    def __init__(self) -> None:
        self._device_id = ""
        self._names: set[str] = set()
        """Names of the present device's subscriptions."""

    def __call__(
        self, device_id: str, subscription_id: int, kind: int, spec: str, name: str
    ) -> str | None:
        if subscription_id < 1:
            return f"has the number {subscription_id}, below 1"
        if kind < 0:
            return f"is of kind {kind}, below 0"
        if not reading.is_json(spec):
            return f"has the spec {spec!r}, which is not JSON"
        if device_id != self._device_id:
            self._device_id = device_id
            self._names.clear()
        if name in self._names:
            return f"has the name {name!r} of another subscription of the device"
        if name:
            self._names.add(name)
        return None if name.isprintable() else f"has the name {name!r}, which is not printable"


def _sink_wrong(
    number: int, action: str, object_id: int, _time_ms: int, about: str, _payload: bytes
) -> str | None:
    if number < 1 or object_id < 1:
        return f"has the number {number} and the object {object_id}, not both above 0"
    if bool(about) != (action == "publish"):
        return f"has {about!r} in the column about with the action {action}"
    if about and not reading.is_json(about):
        return f"has {about!r} in the column about, which is not JSON"
    return None


def _outcome_wrong(number: int, request_id: bytes, time_ms: int, reply: str) -> str | None:
    if number < schema.PLACES or time_ms < 0 or not request_id:
        return f"has the number {number}, the time {time_ms} and an id of {len(request_id)} bytes"
    return None if reading.is_json(reply) else f"has the reply {reply!r}, which is not JSON"


def _idf_wrong(generation: int, packed: bytes) -> str | None:
    if generation < 1:
        return f"has the generation {generation}, below 1"
    reading.unpacked_idf(packed)
    return None


def _is_around(data: bytes, lon: float, lat: float) -> bool:
    """Return whether the box of an area contains a point. Raises ValueError if the data is no area."""
    try:
        area = decoded_area(data)
    except TypeError as error:
        raise ValueError(f"its area is {data!r}") from error
    if isinstance(area, Bounds):
        lons, lats = (area.lon_min, area.lon_max), (area.lat_min, area.lat_max)
    else:
        lons, lats = zip(*(area.outer if area else ()), strict=True)
    return min(lons) <= lon <= max(lons) and min(lats) <= lat <= max(lats)


def _keywords_wrong(text: str) -> str | None:
    words = json.loads(text)
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        return f"has keywords {text!r}, not a list of texts"
    if words != sorted(set(words)):
        return f"has keywords {text!r}, not sorted or not unique"
    return None
