"""A store in one SQLite file.

Operations: open O(1), O(rows) for an older version; recover O(rows); commit one transaction and one fsync
a batch, O(mutations). Nothing is returned from `commit` before it is on disk (WAL, synchronous=FULL).

Warnings: one server a store (a lock beside it says so), others may read; not for several threads at once
but for `overdue`.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from safe_region.frame import Frame
from server.errors import StoreError
from server.model import LiveObject
from server.store import opening, reading, schema
from server.store.areas import encoded_area
from server.store.checksums import (
    heard_checksum,
    idf_checksum,
    object_checksum,
    outlet_checksum,
    subscription_checksum,
)
from server.store.mutations import (
    DeleteDevice,
    DeleteObject,
    DeleteSubscription,
    DeleteTold,
    Happened,
    Mutation,
    PutIdf,
    PutObject,
    PutSubscription,
    Recovered,
    SetInlet,
    SetLastSeen,
    SetTime,
)
from server.store.upkeep import Upkeep

_Sought = TypeVar("_Sought")

_HEARD_STEP_MS = 3_600_000
"""When a device was heard of is written an hour late at most: it is weighed against days."""

_LOCK = ".lock"
"""What the file beside a store is called that keeps a second server out, after the store."""

_FREE_SHARE = 4
"""Pages are given back while more than one in so many is free; the others will be needed again."""
_FREE_MIN = 256
_GIVEN_BACK = 64
"""Pages given back by a commit: under a millisecond."""

_encoded = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

_DELETE_IDF = "DELETE FROM idf"
_PUT_IDF = "INSERT INTO idf VALUES (?, ?, ?)"
_PUT_OUTLET = "INSERT INTO outlet VALUES (?, ?, ?, ?, ?, ?, ?)"
_DELETE_TOLD = "DELETE FROM outlet WHERE number <= ?"
_DELETE_OBJECT = "DELETE FROM objects WHERE object_id = ?"
_PUT_OBJECT = "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_DELETE_SUBSCRIPTION = "DELETE FROM subscriptions WHERE device_id = ? AND subscription_id = ?"
_PUT_SUBSCRIPTION = "INSERT OR REPLACE INTO subscriptions VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_DELETE_DEVICE = "DELETE FROM subscriptions WHERE device_id = ?"
_SET_HEARD = (
    "UPDATE subscriptions SET heard_ms = ?, heard_checksum = ? WHERE device_id = ? AND heard_ms < ?"
)


class SqliteStore:
    """An open store.

    Parameters
    ----------
    path
        The database file; its folder must exist. ":memory:" for one that is forgotten.
    frame
        The service area. A new store takes it over, an existing one must agree.

    tells
        Whether what happens to objects is kept until it was told at the outlet.

    Raises
    ------
    StoreError
        If the file is no store, is in use, is damaged, of a newer version or of another frame.
    """

    def __init__(self, path: Path | str, frame: Frame, *, tells: bool = False) -> None:
        self.path = str(path)
        self._tells = tells
        self._erases_pages = False
        self._told_number = self._number = 0
        self._upkeep: Upkeep | None = None
        self._writing = threading.Lock()
        self._is_new = False
        self._is_discarded = True
        with contextlib.ExitStack() as opened:
            if self.path != opening.MEMORY:
                self._lock = opened.enter_context(contextlib.closing(locked(self.path)))
                self._is_new = not Path(self.path).exists()
                opened.callback(self._remove_what_is_new)
            was_killed = Path(f"{self.path}-wal").exists()
            self._database = opened.enter_context(contextlib.closing(opening.connected(self.path)))
            try:
                opening.prepare(self._database, self.path, frame)
                self._number = opening.number(self._database, self.path, schema.META_OUTLET)
                (first,) = self._database.execute("SELECT min(number) FROM outlet").fetchone()
                self._told_number = self._number if first is None else first - 1
                if self.path != opening.MEMORY:
                    self._upkeep = Upkeep(self.path, self._writing)
                    if was_killed:  # maybe while it deleted
                        self._upkeep.erase()
            except (sqlite3.Error, UnicodeError) as error:
                raise StoreError(f"store {self.path} cannot be used: {_explained(error)}") from error
            self._is_discarded = False
            self._opened = opened.pop_all()

    def recover(self) -> Recovered:
        """Read everything that is alive, in slices.

        Raises
        ------
        StoreError
            Here or while the slices are read, if something is not what was written.
        """
        with reading.damage_named(self.path):
            time_ms = int(opening.meta(self._database, self.path, schema.META_TIME))
            next_object_id = int(opening.meta(self._database, self.path, schema.META_NEXT_ID))
            idf = reading.idf(self._database)
            inlets = reading.inlets(self._database)
        return Recovered(
            time_ms,
            next_object_id,
            idf,
            inlets,
            reading.objects(self._database, self.path, time_ms),
            reading.subscriptions(self._database, self.path),
        )

    def overdue(self, before_ms: int, count_max: int) -> list[str]:
        """Return devices last heard of before a time, or some of them. O(subscriptions), beside commits.

        Raises
        ------
        StoreError
            If the store cannot be read.
        """
        if self.path == opening.MEMORY:
            with self._writing:
                return reading.overdue(self._database, self.path, before_ms, count_max)
        with contextlib.closing(opening.connected(self.path, read_only=True)) as database:
            return reading.overdue(database, self.path, before_ms, count_max)

    def last_seen_ms(self, device_id: str) -> int | None:
        """Return when a device was last seen, to the hour; None without subscriptions. Beside commits.

        Raises
        ------
        StoreError
            If the store cannot be read.
        """
        if self.path == opening.MEMORY:
            with self._writing:
                return reading.last_seen_ms(self._database, self.path, device_id)
        with contextlib.closing(opening.connected(self.path, read_only=True)) as database:
            return reading.last_seen_ms(database, self.path, device_id)

    @property
    def untold_count(self) -> int:
        """How much is to be told at the outlet."""
        return self._number - self._told_number

    def untold(self, count_max: int) -> list[Happened]:
        """Return what is to be told next at the outlet, beside commits.

        Raises
        ------
        StoreError
            If the store cannot be read.
        """
        if self.path == opening.MEMORY:
            with self._writing:
                return reading.happened(self._database, self.path, count_max)
        with contextlib.closing(opening.connected(self.path, read_only=True)) as database:
            return reading.happened(database, self.path, count_max)

    def commit(self, mutations: Sequence[Mutation], time_ms: int, until_ms: int = 0) -> None:
        """Make mutations durable, all or none; note the time, and how far it may go before the next.

        Raises
        ------
        StoreError
            If they could not be written; none is.
        """
        numbers = self._number, self._told_number
        try:
            with self._writing:
                self._database.execute("BEGIN IMMEDIATE")
                try:
                    self._write(mutations, time_ms, until_ms)
                    self._give_back_pages()
                    self._database.execute("COMMIT")
                except BaseException:
                    self._number, self._told_number = numbers
                    # A failed COMMIT of a full disk leaves the transaction open or has rolled it back.
                    with contextlib.suppress(sqlite3.Error):
                        self._database.execute("ROLLBACK")
                    raise
        except sqlite3.Error as error:
            raise StoreError(f"store {self.path} cannot be written: {error}") from error
        if self._upkeep is not None:
            if any(isinstance(one, DeleteDevice) for one in mutations):
                self._upkeep.erase()
            self._upkeep.look()

    def _write(self, mutations: Sequence[Mutation], time_ms: int, until_ms: int) -> None:
        deleted = _of(mutations, DeleteObject)
        puts = [one.item for one in _of(mutations, PutObject)]
        latest = max([time_ms, until_ms, *(one.time_ms for one in _of(mutations, SetTime))])
        write = self._database.executemany
        is_of_devices = (DeleteSubscription, DeleteDevice, PutSubscription)
        self._erase_pages(any(isinstance(one, is_of_devices) for one in mutations))
        if deleted:
            write(_DELETE_OBJECT, [(one.object_id,) for one in deleted])
        if puts:
            write(_PUT_OBJECT, [_object_values(item) for item in puts])
            highest = max(item.object_id for item in puts)
            opening.put_meta(self._database, schema.META_NEXT_ID, str(highest + 1))
        for one in _of(mutations, PutIdf):
            self._database.execute(_DELETE_IDF)
            packed = zlib.compress(one.table.as_json().encode())
            values = (one.generation, idf_checksum(one.generation, packed), packed)
            self._database.execute(_PUT_IDF, values)
        self._write_subscriptions(mutations, time_ms)
        for inlet in _of(mutations, SetInlet):
            opening.put_meta(self._database, f"{schema.META_INLET}{inlet.stream}", inlet.offset)
        for told in _of(mutations, DeleteTold):
            self._database.execute(_DELETE_TOLD, (told.number,))
            self._told_number = told.number
        if self._tells:
            self._keep_for_the_outlet(mutations, time_ms)
        opening.put_meta(self._database, schema.META_TIME, str(latest))

    def _write_subscriptions(self, mutations: Sequence[Mutation], time_ms: int) -> None:
        write = self._database.executemany
        ended = _of(mutations, DeleteSubscription)
        forgotten = _of(mutations, DeleteDevice)
        standing = _of(mutations, PutSubscription)
        heard = _of(mutations, SetLastSeen)
        if ended:
            write(_DELETE_SUBSCRIPTION, [(one.device_id, one.subscription_id) for one in ended])
        if forgotten:
            write(_DELETE_DEVICE, [(one.device_id,) for one in forgotten])
        if standing:
            write(_PUT_SUBSCRIPTION, [_subscription_values(one, time_ms) for one in standing])
        if heard:
            before_ms = time_ms - _HEARD_STEP_MS
            devices = [one.device_id for one in heard]
            write(
                _SET_HEARD, [(time_ms, heard_checksum(one, time_ms), one, before_ms) for one in devices]
            )

    def _erase_pages(self, are_whole: bool) -> None:  # noqa: FBT001
        """Let SQLite overwrite what is deleted, in pages that it frees, too, or only where it writes.

        The former for all that is of devices; for payloads of objects it would be as much to write again.
        """
        if are_whole is not self._erases_pages:
            self._database.execute(f"PRAGMA secure_delete={'ON' if are_whole else 'FAST'}")
            self._erases_pages = are_whole

    def _keep_for_the_outlet(self, mutations: Sequence[Mutation], time_ms: int) -> None:
        """Keep what happens to objects, in order, until it was told."""
        rows: list[tuple[object, ...]] = []
        for one in mutations:
            if isinstance(one, PutObject | DeleteObject):
                happened = _happened(self._number + len(rows) + 1, one, time_ms)
                rows.append((happened.number, outlet_checksum(*happened), *happened[1:]))
        if rows:
            self._database.executemany(_PUT_OUTLET, rows)
            opening.put_meta(self._database, schema.META_OUTLET, str(rows[-1][0]))
            self._number += len(rows)

    def _give_back_pages(self) -> None:
        (free,) = self._database.execute("PRAGMA freelist_count").fetchone()
        if free > _FREE_MIN:
            (pages,) = self._database.execute("PRAGMA page_count").fetchone()
            if free * _FREE_SHARE > pages:
                for _ in range(_GIVEN_BACK):  # the module takes one step of this statement, one page
                    self._database.execute("PRAGMA incremental_vacuum(1)")

    def close(self) -> None:
        """Close the file. Nothing acknowledged depends on it."""
        if self._upkeep is not None:
            self._upkeep.close()
        self._opened.close()

    def discard(self) -> None:
        """Close the file; if there was none before it was opened, remove it. For a start that failed."""
        self._is_discarded = True
        self.close()

    def _remove_what_is_new(self) -> None:
        """Remove the files of a discarded store, while the lock is still held."""
        if self._is_new and self._is_discarded:
            for suffix in ("", "-wal", "-shm", "-journal", _LOCK):
                Path(f"{self.path}{suffix}").unlink(missing_ok=True)


def locked(path: str) -> sqlite3.Connection:
    """Hold a lock beside a store for as long as the connection is open; it ends with the process.

    A lock of its own, and not one of the store, so that others may read that. SQLite takes it, as it
    knows how on every system.
    """
    lock = opening.connected(f"{path}{_LOCK}")
    try:
        lock.execute("PRAGMA journal_mode=MEMORY")  # no further file beside it
        lock.execute("BEGIN EXCLUSIVE")
        if not Path(f"{path}{_LOCK}").exists():  # who held it has removed it with the store
            raise sqlite3.OperationalError("its lock was removed")
    except sqlite3.Error as error:
        lock.close()
        raise StoreError(f"store {path} cannot be used: {_explained(error)}") from error
    return lock


def _of(mutations: Sequence[Mutation], sought: type[_Sought]) -> list[_Sought]:
    return [one for one in mutations if isinstance(one, sought)]


def _happened(number: int, one: PutObject | DeleteObject, time_ms: int) -> Happened:
    if isinstance(one, DeleteObject):
        action = "expire" if one.has_expired else "retract"
        return Happened(number, action, one.object_id, time_ms, "", b"")
    item = one.item
    said = _encoded([item.lon, item.lat, item.keywords, item.expiry_ms - item.created_ms])
    return Happened(number, "publish", item.object_id, item.created_ms, said, item.payload)


def _object_values(item: LiveObject) -> tuple[object, ...]:
    words = _encoded(item.keywords)
    times = (item.created_ms, item.expiry_ms)
    place = (item.lon, item.lat)
    said = (*place, words, *times, item.payload, item.key, encoded_area(item.area), item.owner)
    return (item.object_id, object_checksum(item.object_id, *said), *said)


def _subscription_values(put: PutSubscription, time_ms: int) -> tuple[object, ...]:
    said = (put.device_id, put.subscription_id, put.kind, put.spec, put.name)
    heard = (time_ms, heard_checksum(put.device_id, time_ms))
    return (*said[:2], subscription_checksum(*said), *said[2:], *heard)


def _explained(error: Exception) -> str:
    if "locked" in str(error):
        return "another server has it open"
    return str(error)
