"""A store in one SQLite file.

Operations: open O(rows) to recover; commit one transaction and one fsync a batch, O(rows) in it.
Nothing is returned from `commit` before it is on disk (WAL, synchronous=FULL).

Warnings: one process a store (an exclusive lock says so); not for several threads at once.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

from safe_region.anchored import RegionMode
from safe_region.frame import Area, Frame
from safe_region.scoring import Similarity
from server.errors import StoreError
from server.model import LiveObject, TopK
from server.rows import (
    DeleteObject,
    DeleteSubscription,
    PutObject,
    PutSubscription,
    Recovered,
    Row,
    SetTime,
)
from server.store import schema

_PUT_META = "INSERT OR REPLACE INTO meta VALUES (?, ?)"


class SqliteStore:
    """An open store.

    Parameters
    ----------
    path
        The database file; its folder must exist. ":memory:" for one that is forgotten.
    frame
        The service area. A new store takes it over, an existing one must agree.

    Raises
    ------
    StoreError
        If the file is no store, is in use, is of a newer version or of another frame.
    """

    def __init__(self, path: Path | str, frame: Frame) -> None:
        self.path = str(path)
        self._frame = frame
        try:
            self._database = sqlite3.connect(
                self.path, isolation_level=None, check_same_thread=False, timeout=0.5
            )
        except sqlite3.Error as error:
            raise StoreError(f"store {self.path} cannot be opened: {error}") from error
        try:
            self._prepare()
        except sqlite3.Error as error:
            self._database.close()
            raise StoreError(f"store {self.path} cannot be used: {_explained(error)}") from error
        except StoreError:
            self._database.close()
            raise

    def _prepare(self) -> None:
        execute = self._database.execute
        execute("PRAGMA locking_mode=EXCLUSIVE")
        execute("PRAGMA journal_mode=WAL")
        execute("PRAGMA synchronous=FULL")
        execute("BEGIN IMMEDIATE")
        try:
            (table_count,) = execute("SELECT count(*) FROM sqlite_schema").fetchone()
            if table_count == 0:
                self._create()
            self._require_version()
            self._migrate()
            self._require_frame()
        except BaseException:
            execute("ROLLBACK")
            raise
        execute("COMMIT")

    def _create(self) -> None:
        for statement in schema.TABLES.split(";"):
            if statement.strip():
                self._database.execute(statement)
        self._database.execute(f"PRAGMA application_id={schema.APPLICATION_ID}")
        self._database.execute(f"PRAGMA user_version={schema.SCHEMA_VERSION}")
        self._put_meta(schema.META_AREA, json.dumps(self._frame.area))
        self._put_meta(schema.META_TIME, "0")
        self._put_meta(schema.META_NEXT_ID, "1")

    def _require_version(self) -> None:
        (application_id,) = self._database.execute("PRAGMA application_id").fetchone()
        (version,) = self._database.execute("PRAGMA user_version").fetchone()
        if application_id != schema.APPLICATION_ID:
            raise StoreError(f"{self.path} is a database of another application, not a store")
        if version > schema.SCHEMA_VERSION:
            raise StoreError(
                f"store {self.path} is of version {version}, this program reads up to "
                f"{schema.SCHEMA_VERSION}: use a newer program or another store"
            )

    def _migrate(self) -> None:
        """Bring an older store up to date; part of the transaction that opens it."""
        (version,) = self._database.execute("PRAGMA user_version").fetchone()
        for older in range(version, schema.SCHEMA_VERSION):
            self._database.execute(schema.MIGRATIONS[older])
        self._database.execute(f"PRAGMA user_version={schema.SCHEMA_VERSION}")

    def _require_frame(self) -> None:
        area = Area(*json.loads(self._meta(schema.META_AREA)))
        if area != self._frame.area:
            raise StoreError(
                f"store {self.path} is of the area {tuple(area)}, the server was given "
                f"{tuple(self._frame.area)}: give it the same area or another store"
            )

    def recover(self) -> Recovered:
        """Read everything that is alive."""
        time_ms = int(self._meta(schema.META_TIME))
        objects = self._database.execute(
            "SELECT * FROM objects WHERE expiry_ms > ? ORDER BY object_id", (time_ms,)
        )
        subscriptions = self._database.execute(
            "SELECT * FROM subscriptions ORDER BY device_id, subscription_id"
        )
        return Recovered(
            time_ms,
            int(self._meta(schema.META_NEXT_ID)),
            tuple(self._object(*row) for row in objects),
            tuple(_subscription(*row) for row in subscriptions),
        )

    def commit(self, rows: Sequence[Row], time_ms: int) -> None:
        """Make rows durable, all or none, and note the time.

        Raises
        ------
        StoreError
            If they could not be written; none is.
        """
        try:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                self._write(rows, time_ms)
                self._database.execute("COMMIT")
            except BaseException:
                # A failed COMMIT of a full disk leaves the transaction open or has rolled it back.
                with contextlib.suppress(sqlite3.Error):
                    self._database.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise StoreError(f"store {self.path} cannot be written: {error}") from error

    def _write(self, rows: Sequence[Row], time_ms: int) -> None:
        write = self._database.executemany
        puts = [row.item for row in rows if isinstance(row, PutObject)]
        write("DELETE FROM objects WHERE object_id = ?", _deleted(rows))
        write(
            "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    item.object_id,
                    item.lon,
                    item.lat,
                    json.dumps(item.keywords, ensure_ascii=False),
                    item.created_ms,
                    item.expiry_ms,
                    item.payload,
                    item.key,
                )
                for item in puts
            ],
        )
        write(
            "DELETE FROM subscriptions WHERE device_id = ? AND subscription_id = ?",
            [(row.device_id, row.subscription_id) for row in rows if isinstance(row, DeleteSubscription)],
        )
        write(
            "INSERT OR REPLACE INTO subscriptions VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    row.device_id,
                    row.subscription_id,
                    json.dumps(row.spec.keywords, ensure_ascii=False),
                    row.spec.k,
                    row.spec.alpha,
                    int(row.spec.similarity),
                    int(row.spec.region),
                )
                for row in rows
                if isinstance(row, PutSubscription)
            ],
        )
        if puts:
            highest = max(item.object_id for item in puts)
            self._put_meta(schema.META_NEXT_ID, str(highest + 1))
        times = [time_ms, *(row.time_ms for row in rows if isinstance(row, SetTime))]
        self._put_meta(schema.META_TIME, str(max(times)))

    def close(self) -> None:
        """Close the file. Nothing acknowledged depends on it."""
        self._database.close()

    def _meta(self, name: str) -> str:
        row = self._database.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        if row is None:
            raise StoreError(f"store {self.path} is damaged: it has no {name}")
        return str(row[0])

    def _put_meta(self, name: str, value: str) -> None:
        self._database.execute(_PUT_META, (name, value))

    def _object(
        self,
        object_id: int,
        lon: float,
        lat: float,
        keywords: str,
        created_ms: int,
        expiry_ms: int,
        payload: bytes,
        key: str,
    ) -> LiveObject:
        return LiveObject(
            object_id,
            lon,
            lat,
            self._frame.project(lon, lat),
            tuple(json.loads(keywords)),
            created_ms,
            expiry_ms,
            payload,
            key,
        )


def _deleted(rows: Iterable[Row]) -> list[tuple[int]]:
    return [(row.object_id,) for row in rows if isinstance(row, DeleteObject)]


def _subscription(
    device_id: str,
    subscription_id: int,
    keywords: str,
    k: int,
    alpha: float,
    similarity: int,
    region: int,
) -> PutSubscription:
    spec = TopK(tuple(json.loads(keywords)), k, alpha, Similarity(similarity), RegionMode(region))
    return PutSubscription(device_id, subscription_id, spec)


def _explained(error: sqlite3.Error) -> str:
    if "locked" in str(error):
        return "another server has it open"
    return str(error)
