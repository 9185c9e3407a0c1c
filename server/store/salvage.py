"""Salvage of a store whose rows are damaged, into a new file, only when a loss is accepted.

Every row that is readable and as it was written is kept, and so is every setting; lost rows are counted
by table and logged. A copy of the damaged file is kept. O(rows), twice: the store is checked first.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from safe_region.earth.frame import Frame
from server.errors import StoreError
from server.store import checking, files, numbers, opening, reading, schema
from server.store.checksums import (
    idf_checksum,
    last_seen_checksum,
    object_checksum,
    outcome_checksum,
    sink_checksum,
    subscription_checksum,
)
from server.store.losses import Losses, look
from server.store.mark import Mark

_log = logging.getLogger(__name__)

_PART = ".salvaged"
_DAMAGED = ".damaged"
_SKIP_MAX = 1 << 40
"""Maximum distance at which rows are searched beyond a page that cannot be read."""

Row = tuple[Any, ...]


class _Table(NamedTuple):
    """How to read, verify and write the rows of a table."""

    name: str
    columns: str
    """The checksum first, then the columns that it covers."""
    key: str
    checksum_of: Callable[..., int]


_TABLES = (
    _Table(
        "objects",
        "checksum, object_id, lon, lat, keywords, created_ms, expiry_ms, payload, object_key, area, "
        "owner",
        "object_id",
        object_checksum,
    ),
    _Table("idf", "checksum, generation, weights", "generation", idf_checksum),
    _Table(
        "sink",
        "checksum, number, action, object_id, time_ms, about, payload",
        "number",
        sink_checksum,
    ),
    _Table("outcomes", "checksum, number, request_id, time_ms, reply", "number", outcome_checksum),
)
_UNKNOWN = "an unknown number of"
_SUBSCRIPTIONS = (
    "checksum, device_id, subscription_id, kind, spec, name, last_seen_ms, last_seen_checksum"
)


def existing(path: str, frame: Frame, *, accept_loss: bool) -> Mark | None:
    """Examine the files of a store before SQLite opens them to write; return its mark, if any.

    Raises
    ------
    StoreError
        If it is of a version that is not supported, has lost acknowledged data and the loss is not
        accepted, is in use, or has several names.
    """
    found = Losses(path, is_accepted=accept_loss)
    if not Path(path).exists():
        return look(found)
    files.drop_part(path)
    with files.held(path):
        opening.require_version(path)
        known = look(found)
        files.warn_if_open_to_others(path)
        if accept_loss and files.size_of(path):
            salvage(found, frame, known)
    return known


def salvage(losses: Losses, frame: Frame, known: Mark | None) -> None:
    """Replace a damaged store with its intact rows; leave an intact store unchanged.

    Where id, progress, next id or time of the store are damaged, those of its mark take their place.

    Raises
    ------
    StoreError
        If nothing of it can be read, or the new file cannot be written.
    """
    path = losses.path
    try:
        with contextlib.closing(opening.connected(path, read_only=True)) as database:
            if opening.require_store(database, path) < schema.SCHEMA_VERSION:
                return  # its rows are verified when it is migrated
            found = checking.problems(database, path, lambda *_: None)
            if not found:
                return
            part = f"{path}{_PART}"
            Path(part).unlink(missing_ok=True)
            files.create_private(part)
            lost = _written(database, part, frame, known)
    except (sqlite3.Error, UnicodeError) as error:  # SQLite's message may contain damaged text
        raise StoreError(
            f"store {path} is damaged: {reading.without_values(error)}; no part of it can be read: "
            "restore a backup"
        ) from error
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    losses.add(f"{found[0]}{more}", f"{lost} are lost")
    _exchange(path, part)


def _written(damaged: sqlite3.Connection, part: str, frame: Frame, known: Mark | None) -> str:
    """Write the intact rows into a new store; return a description of the lost ones."""
    damaged.text_factory = lambda data: data.decode("utf-8", "replace")
    lost = []
    with contextlib.closing(opening.connected(part)) as database:
        opening.prepare(database, part, frame)
        database.execute("BEGIN IMMEDIATE")
        if known is not None:
            numbers.write_mark(database, known)
        lost.append(("settings", _write_settings(damaged, database)))
        has_latest = opening.number(database, part, schema.META_SINK) > 0
        for table in _TABLES:
            count = _write_table(database, table, _intact(damaged, table))
            lost.append((table.name, _count_of(damaged, table.name, count)))
        numbers.raise_numbers(database, part)
        now_ms = opening.number(database, part, schema.META_TIME)
        count = _write_subscriptions(database, _intact_subscriptions(damaged, now_ms))
        lost.append(("subscriptions", _count_of(damaged, "subscriptions", count)))
        numbers.raise_numbers(database, part)
        numbers.close_gaps(database, part, is_latest_lost=lost[0][1] != "0" and not has_latest)
        database.execute("COMMIT")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    named = [f"{count} rows of {name}" for name, count in lost if count != "0"]
    return ", ".join(named) or "0 rows"


def _count_of(damaged: sqlite3.Connection, table: str, kept: int) -> str:
    """Return how many rows of a table are lost, as far as that is known."""
    try:
        query = "SELECT value FROM meta WHERE name = ?"
        row = damaged.execute(query, (table,)).fetchone()
        return f"{max(0, int(row[0]) - kept):,}"
    except (sqlite3.Error, TypeError, ValueError):
        return _UNKNOWN


def _write_settings(damaged: sqlite3.Connection, database: sqlite3.Connection) -> str:
    """Write the intact settings; return how many are lost, as far as that is known."""
    lost_count = 0
    try:
        for name, value, is_intact in reading.settings(damaged):
            if not is_intact:
                lost_count += 1
            elif name != schema.META_AREA:
                opening.put_meta(database, name, value)
    except sqlite3.Error:
        return _UNKNOWN
    return str(lost_count)


def _write_table(database: sqlite3.Connection, table: _Table, rows: Iterator[Row]) -> int:
    marks = ", ".join("?" * (table.columns.count(",") + 1))
    statement = f"INSERT OR IGNORE INTO {table.name} ({table.columns}) VALUES ({marks})"  # noqa: S608
    return int(database.executemany(statement, rows).rowcount)


def _write_subscriptions(database: sqlite3.Connection, rows: Iterator[Row]) -> int:
    statement = f"INSERT OR IGNORE INTO subscriptions ({_SUBSCRIPTIONS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
    return int(database.executemany(statement, rows).rowcount)


def _intact(damaged: sqlite3.Connection, table: _Table) -> Iterator[Row]:
    """Yield intact rows, and continue beyond pages that cannot be read."""
    query = f"SELECT {table.columns} FROM {table.name} WHERE {table.key} >= ? ORDER BY {table.key}"  # noqa: S608
    begin, skip = 0, 1
    while skip < _SKIP_MAX:
        try:
            for row in damaged.execute(query, (begin,)):
                if not isinstance(row[1], int) or row[1] < begin:  # pages out of order
                    continue
                begin, skip = row[1] + 1, 1
                if _is_intact(row, table.name, table.checksum_of):
                    yield row
        except sqlite3.Error:
            begin, skip = begin + skip, 2 * skip
        else:
            return


def _intact_subscriptions(damaged: sqlite3.Connection, now_ms: int) -> Iterator[Row]:
    """Yield intact rows, from both ends up to a page that cannot be read."""
    query = f"SELECT {_SUBSCRIPTIONS} FROM subscriptions ORDER BY device_id {{0}}, subscription_id {{0}}"  # noqa: S608
    for order in ("", "DESC"):
        try:
            for row in damaged.execute(query.format(order)):
                *values, last_seen_ms, checksum = row
                if not _is_intact(tuple(values), "subscriptions", subscription_checksum):
                    continue
                # The time is unknown: use the latest one.
                if last_seen_checksum(row[1], last_seen_ms) != checksum:
                    row = (*values, now_ms, last_seen_checksum(row[1], now_ms))  # noqa: PLW2901
                yield row
        except sqlite3.Error:
            continue
        return


def _is_intact(row: Row, table: str, checksum_of: Callable[..., int]) -> bool:
    try:
        reading.verified([row], table, checksum_of)
    except reading.Damage:
        return False
    return True


def _exchange(path: str, part: str) -> None:
    """Put the new file in place, and keep a copy of the damaged one.

    A process that is killed on the way leaves one of the two stores with all that it has: the commits in
    the log of the damaged one are copied into its file before the log is removed.
    """
    number = 1
    while Path(f"{path}{_DAMAGED}{number}").exists():
        number += 1
    for suffix in ("", files.LOG):
        if Path(f"{path}{suffix}").exists():
            _copied(f"{path}{suffix}", f"{path}{_DAMAGED}{number}{suffix}")
    with (
        contextlib.suppress(sqlite3.Error, StoreError),  # too damaged for that: its copy has the log
        contextlib.closing(opening.connected(path)) as database,
    ):
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for name in (
        f"{part}{files.LOG}",
        f"{part}{files.INDEX}",
        f"{path}{files.INDEX}",
        f"{path}{files.LOG}",
    ):
        Path(name).unlink(missing_ok=True)
    Path(part).rename(path)
    files.sync_folder(path)
    _log.warning("the damaged store is kept as %s%s%d", path, _DAMAGED, number)


def _copied(name: str, copy: str) -> None:
    with open(name, "rb") as source, os.fdopen(files.open_private(copy), "wb") as target:  # noqa: PTH123
        shutil.copyfileobj(source, target)
        target.flush()
        os.fsync(target.fileno())
