"""Opening a store: application, version and frame; creating a new one, migrating an older one."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import TypeVar

from safe_region.earth.frame import Area, Frame
from server.errors import StoreError
from server.store import checksums, files, migrations, reading, schema
from server.store.mark import Mark, new_store_id

_INCREMENTAL = 2
"""SQLite's number for auto_vacuum=INCREMENTAL: free pages are released on request."""

_WAIT_S = 0.5
"""How long a connection waits for a lock of another: checkpoints and copies hold them for moments."""

SYNCHRONOUS = "FULL"
"""A commit is on disk before it is acknowledged. Tests of content rather than timing turn it off."""

MEMORY = ":memory:"

_NONE = 0
"""The version of a file that is no store yet."""

_FILE_BYTES_MIN = 512
"""Minimum size of a database: SQLite's smallest page."""

_Default = TypeVar("_Default", str, None)

PUT_META = "INSERT OR REPLACE INTO meta VALUES (?, ?, ?)"


def connected(path: str, *, read_only: bool = False) -> sqlite3.Connection:
    """Connect to a file. Transactions are explicit; several threads may use the connection in turn.

    Raises
    ------
    StoreError
        If it cannot be opened.
    """
    # The examination of the log assumes that commits are not padded to sectors (psow).
    name = f"file:{_quoted(path)}?psow=1{'&mode=ro' if read_only else ''}"
    try:
        return sqlite3.connect(
            path if path == MEMORY else name,
            uri=path != MEMORY,
            isolation_level=None,
            check_same_thread=False,
            timeout=_WAIT_S,
        )
    except sqlite3.Error as error:
        raise StoreError(f"store {path} cannot be opened: {error}") from error


def _quoted(path: str) -> str:
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def prepare(database: sqlite3.Connection, path: str, frame: Frame, known: Mark | None = None) -> None:
    """Prepare a connection for writing: create a store in a new file, migrate an older store.

    Ids and time start no earlier than in its mark, where one is known.

    Raises
    ------
    StoreError
        If the file is no store, is damaged, of a version that is not supported or of another frame. It is
        unchanged.
    """
    execute = database.execute
    (table_count,) = execute("SELECT count(*) FROM sqlite_schema").fetchone()
    version = require_store(database, path) if table_count else _NONE
    if version == _NONE and path != MEMORY and 0 < Path(path).stat().st_size < _FILE_BYTES_MIN:
        raise StoreError(f"store {path} is damaged: it has been cut short")  # it is empty to SQLite
    execute(f"PRAGMA synchronous={SYNCHRONOUS}")
    if version == _NONE:
        execute(
            "PRAGMA journal_mode=MEMORY"
        )  # a kill leaves no journal beside a file that is still empty
        execute(f"PRAGMA auto_vacuum={_INCREMENTAL}")  # writes even if unchanged
    execute("PRAGMA secure_delete=FAST")  # deleted rows are overwritten where that costs no writing
    execute("PRAGMA journal_mode=WAL")
    execute("PRAGMA wal_autocheckpoint=0")  # `upkeep` does it
    execute("PRAGMA journal_size_limit=0")
    execute("PRAGMA recursive_triggers=ON")  # rows replaced by INSERT OR REPLACE count as deleted
    execute("BEGIN IMMEDIATE")
    try:
        if version == _NONE:
            _create(database, frame)
        elif version < schema.SCHEMA_VERSION:
            migrations.migrate(database, version)
        require_tables(database, path)
        _require_frame(database, path, frame)
        _number_from(database, path, known)
    except BaseException as error:
        with contextlib.suppress(sqlite3.Error):  # a full disk may have rolled it back
            execute("ROLLBACK")
        if isinstance(error, reading.Damage):
            raise StoreError(f"store {path} is damaged: {error}") from error
        raise
    execute("COMMIT")


def _create(database: sqlite3.Connection, frame: Frame) -> None:
    for statement in schema.CREATE:
        database.execute(statement)
    database.execute(f"PRAGMA application_id={schema.APPLICATION_ID}")
    database.execute(f"PRAGMA user_version={schema.SCHEMA_VERSION}")
    put_meta(database, schema.META_AREA, json.dumps(frame.area))
    put_meta(database, schema.META_TIME, "0")
    put_meta(database, schema.META_NEXT_ID, "1")


def require_store(database: sqlite3.Connection, path: str) -> int:
    """Return the version of a store.

    Raises
    ------
    StoreError
        If it is a database of another application, or of a version that this program does not read.
    """
    (application_id,) = database.execute("PRAGMA application_id").fetchone()
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if application_id == schema.UNRELEASED_ID:
        raise StoreError(
            f"store {path} is of version {version} from before the first release, this program reads "
            f"those since then, up to version {schema.SCHEMA_VERSION}: use the program that wrote it, "
            "or move it away and start with a new store"
        )
    if application_id != schema.APPLICATION_ID:
        raise StoreError(f"{path} is a database of another application, not a store")
    if version < 1:
        raise StoreError(f"store {path} is damaged: its version is {version}")
    if version > schema.SCHEMA_VERSION:
        raise StoreError(
            f"store {path} is of version {version}, this program reads up to {schema.SCHEMA_VERSION}: "
            "use a newer version or another store"
        )
    return int(version)


def require_version(path: str) -> None:
    """Verify that this program reads a store, before any of its files is changed.

    Raises
    ------
    StoreError
        If it does not. Damage is no error here.
    """
    if not files.size_of(path):
        return  # SQLite would remove its log
    with (
        contextlib.closing(connected(path, read_only=True)) as database,
        contextlib.suppress(sqlite3.Error, UnicodeError),
    ):
        (table_count,) = database.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if table_count:
            require_store(database, path)


def require_tables(database: sqlite3.Connection, path: str) -> None:
    """Verify that the tables and triggers of a store of this version are as they were created.

    Raises
    ------
    StoreError
        If they are not.
    """
    try:
        reading.require_tables(database, schema.TABLES)
    except reading.Damage as damage:
        raise StoreError(f"store {path} is damaged: {damage}") from damage


def _number_from(database: sqlite3.Connection, path: str, known: Mark | None) -> None:
    """Give a store its id, if it has none, and raise its next id and time to those of its mark."""
    store_id = database.execute("SELECT 1 FROM meta WHERE name = ?", (schema.META_STORE,)).fetchone()
    if store_id is None:
        put_meta(database, schema.META_STORE, new_store_id())
    if known is None or (
        store_id is not None and meta(database, path, schema.META_STORE) != known.store_id
    ):
        return
    raise_number(database, path, schema.META_NEXT_ID, known.next_object_id)
    raise_number(database, path, schema.META_TIME, known.time_ms)


def raise_number(database: sqlite3.Connection, path: str, name: str, least: int) -> None:
    """Write a setting that is a number, unless it is at least as large already."""
    if number(database, path, name) < least:
        put_meta(database, name, str(least))


def _require_frame(database: sqlite3.Connection, path: str, frame: Frame) -> None:
    area = stored_area(database, path)
    if area != frame.area:
        raise StoreError(
            f"store {path} has the area {tuple(area)}, the server was given {tuple(frame.area)}: give "
            "it the same area or another store"
        )


def stored_area(database: sqlite3.Connection, path: str) -> Area:
    """Return the service area of a store."""
    return Area(*json.loads(meta(database, path, schema.META_AREA)))


def meta(database: sqlite3.Connection, path: str, name: str) -> str:
    """Return a setting.

    Raises
    ------
    StoreError
        If it does not exist, or is not as it was written.
    """
    value = meta_or(database, path, name, None)
    if value is None:
        raise StoreError(f"store {path} is damaged: it has no {name}")
    return value


def number(database: sqlite3.Connection, path: str, name: str) -> int:
    """Return a setting that is a number; 0 if it does not exist."""
    return int(meta_or(database, path, name, "0"))


def meta_or(database: sqlite3.Connection, path: str, name: str, default: _Default) -> str | _Default:
    """Return a setting, or what counts if it does not exist; see `meta`."""
    try:
        value = reading.setting(database, name)
    except reading.Damage as damage:
        raise StoreError(f"store {path} is damaged: {damage}") from damage
    return default if value is None else value


def put_meta(database: sqlite3.Connection, name: str, value: str) -> None:
    """Write a setting."""
    database.execute(PUT_META, (name, value, checksums.meta_checksum(name, value)))
