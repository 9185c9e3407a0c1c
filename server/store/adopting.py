"""A snapshot of another store in place of the content of this one: how a node joins a cluster.

The rows are copied within one transaction, so that a store has its old content or the new one, and keeps
its own id, its lock and its mark. O(rows), some microseconds each.
"""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import NamedTuple

from server.errors import StoreError
from server.store import checking, opening, schema

_TABLES = ("objects", "outcomes", "idf", "sink")
"""Without subscriptions: those of a cluster are not in the stores of its nodes."""
_SETTINGS = (
    schema.META_LOG_ID,
    schema.META_LOG_OFFSET,
    schema.META_LOG_TIME,
    schema.META_NEXT_ID,
    schema.META_TIME,
)
_SETTINGS_OF_LOG = (
    f"name IN ('{schema.META_LOG_RULES}', '{schema.META_LOG_SINK}', '{schema.META_SINK}', "
    f"'{schema.META_LOG_WINDOWS}', '{schema.META_LOG_WEIGHTS}') OR name GLOB '{schema.META_LOG_SOURCE}*'"
)
"""Further ones, which may be absent: the rules in force, the cursors of the source, the sink, windows."""


class SnapshotFacts(NamedTuple):
    """The place of a snapshot in its log."""

    log_id: str
    """Hexadecimal; empty for a store without a log."""
    offset: int


def snapshot_facts(path: Path) -> SnapshotFacts:
    """Return the place of a snapshot in its log. O(1).

    Raises
    ------
    StoreError
        If it is no store, or damaged.
    """
    name = str(path)
    try:
        with contextlib.closing(opening.connected(name, read_only=True)) as database:
            opening.require_store(database, name)
            offset = opening.number(database, name, schema.META_LOG_OFFSET)
            log_id = opening.meta(database, name, schema.META_LOG_ID) if offset else ""
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be read: {error}") from error
    return SnapshotFacts(log_id, offset)


def require_intact(path: Path, progress: checking.Progress = lambda *_: None) -> None:
    """Verify every row of a snapshot. O(rows).

    Raises
    ------
    StoreError
        If it is no store of this version, or not as it was written.
    """
    found = checking.check(path, progress)
    if found:
        more = f", and {len(found) - 1} more" if len(found) > 1 else ""
        raise StoreError(f"snapshot {path} is damaged: {found[0]}{more}")


def copy_rows(database: sqlite3.Connection, store: str, path: Path) -> None:
    """Replace the rows of a store by those of a snapshot, within a transaction that is open.

    The snapshot is attached as `snapshot`.

    Raises
    ------
    StoreError
        If it is of another area.
    """
    area = opening.stored_area(database, store)
    (found,) = database.execute(
        "SELECT value FROM snapshot.meta WHERE name = ?", (schema.META_AREA,)
    ).fetchone()
    if found != opening.meta(database, store, schema.META_AREA):
        raise StoreError(f"snapshot {path} has the area {found}, must have {list(area)}")
    for table in _TABLES:
        database.execute(f"DELETE FROM main.{table}")  # noqa: S608 - names of our own
        database.execute(f"INSERT INTO main.{table} SELECT * FROM snapshot.{table}")  # noqa: S608
    time_ms = opening.number(database, store, schema.META_TIME)
    marks = ", ".join("?" * len(_SETTINGS))
    database.execute(
        f"INSERT OR REPLACE INTO main.meta SELECT * FROM snapshot.meta WHERE name IN ({marks})",  # noqa: S608
        _SETTINGS,
    )
    database.execute(f"DELETE FROM main.meta WHERE {_SETTINGS_OF_LOG}")  # noqa: S608
    database.execute(
        f"INSERT INTO main.meta SELECT * FROM snapshot.meta WHERE {_SETTINGS_OF_LOG}"  # noqa: S608
    )
    if opening.number(database, store, schema.META_TIME) < time_ms:  # time never goes back
        opening.put_meta(database, schema.META_TIME, str(time_ms))
