"""A store in one SQLite file.

Operations: open O(1), O(rows) for an older version; recover O(rows); commit one transaction and one fsync
per batch, O(mutations). `commit` returns after the batch is on disk (WAL, synchronous=FULL).

Warnings: one server per store (a lock beside it ensures this), others may read; not for several threads
at once except for `overdue`.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import threading
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from safe_region.earth.frame import Frame
from server.errors import StoreError
from server.store import adopting, copies, files, log_frames, opening, reading, rows, schema
from server.store import mark as marks
from server.store.checksums import (
    idf_checksum,
    last_seen_checksum,
    outcome_checksum,
    sink_checksum,
)
from server.store.mutations import (
    DeleteDevice,
    DeleteObject,
    DeleteOutcomes,
    DeleteSent,
    DeleteSubscription,
    Happened,
    LogPosition,
    Mutation,
    PutChange,
    PutIdf,
    PutObject,
    PutOutcome,
    PutSubscription,
    Recovered,
    SetLastSeen,
    SetLogPosition,
    SetSinkPosition,
    SetSourceCursor,
    SetSourceOffset,
    SetTime,
    SetWindows,
    SinkPosition,
    SubscriptionColumns,
    WindowClaim,
)
from server.store.salvage import existing
from server.store.trees import TreeCheck
from server.store.upkeep import Upkeep

_log = logging.getLogger(__name__)

_LAST_SEEN_STEP_MS = 3_600_000
"""How late the time at which a device was last seen may be written: it is compared with days."""

_FREE_SHARE = 4
"""Pages are released while more than one in this many is free; the others will be needed again."""
_FREE_MIN = 256
_GIVEN_BACK = 64
"""Pages released by a commit: under a millisecond."""

_DELETE_IDF = "DELETE FROM idf"
_PUT_IDF = "INSERT INTO idf VALUES (?, ?, ?)"
_PUT_CHANGE = "INSERT INTO sink VALUES (?, ?, ?, ?, ?, ?, ?)"
_PUT_OUTCOME = "INSERT INTO outcomes VALUES (?, ?, ?, ?, ?)"
_DELETE_OUTCOMES = "DELETE FROM outcomes WHERE number <= ?"
_DELETE_SENT = "DELETE FROM sink WHERE number <= ?"
_DELETE_OBJECT = "DELETE FROM objects WHERE object_id = ?"
_PUT_OBJECT = "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_DELETE_SUBSCRIPTION = "DELETE FROM subscriptions WHERE device_id = ? AND subscription_id = ?"
_PUT_SUBSCRIPTION = "INSERT OR REPLACE INTO subscriptions VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_DELETE_DEVICE = "DELETE FROM subscriptions WHERE device_id = ?"
_SET_LAST_SEEN = (
    "UPDATE subscriptions SET last_seen_ms = ?, last_seen_checksum = ? "
    "WHERE device_id = ? AND last_seen_ms < ?"
)


class SqliteStore:
    """An open store.

    Parameters
    ----------
    path
        The database file; its folder must exist. ":memory:" for a store in memory.
    frame
        The service area. A new store adopts it, an existing one must agree.
    has_sink
        Whether changes of objects are kept until they were written to the sink.
    accept_loss
        Whether to continue with the intact rows of a damaged store; lost rows are logged.

    Raises
    ------
    StoreError
        If the file is no store, is in use, is damaged, of a version that is not supported or of another
        frame.
    """

    def __init__(
        self, path: Path | str, frame: Frame, *, has_sink: bool = False, accept_loss: bool = False
    ) -> None:
        self.path = str(path)
        if self.path != opening.MEMORY:
            self.path = files.resolved(path)
        self._has_sink = has_sink
        self._erases_pages = False
        self._sent_number = self._number = self._time_ms = 0
        self.upkeep: Upkeep | None = None
        self._writing = threading.Lock()
        self._is_new = False
        self._is_discarded = True
        self._mark: marks.MarkFile | None = None
        self._trees: TreeCheck | None = None
        self._store_id, self._commit_count, self._next_object_id = "", 0, 1
        with contextlib.ExitStack() as opened:
            try:
                known = None
                if self.path != opening.MEMORY:
                    opened.enter_context(files.locked(self.path))
                    known = existing(self.path, frame, accept_loss=accept_loss)
                    self._is_new = files.create_private(self.path)
                    opened.callback(self._remove_what_is_new)
                    opened.enter_context(files.held(self.path))
                was_killed = files.size_of(f"{self.path}{files.LOG}") > 0
                self.database = opened.enter_context(contextlib.closing(opening.connected(self.path)))
                opening.prepare(self.database, self.path, frame, known)
                self._read_numbers()
                if self.path != opening.MEMORY:
                    self._begin_beside(opened, was_killed=was_killed)
            except (OSError, sqlite3.Error, UnicodeError) as error:
                raise files.refusal(self.path, error) from error
            self._is_discarded = False
            self._opened = opened.pop_all()

    def _read_numbers(self) -> None:
        database = self.database
        self._store_id = opening.meta(database, self.path, schema.META_STORE)
        self._commit_count = opening.number(database, self.path, schema.META_COMMITS)
        self._next_object_id = opening.number(database, self.path, schema.META_NEXT_ID)
        self._time_ms = opening.number(database, self.path, schema.META_TIME)
        self._number = opening.number(database, self.path, schema.META_SINK)
        (first,) = database.execute("SELECT min(number) FROM sink").fetchone()
        self._sent_number = self._number if first is None else first - 1

    def _begin_beside(self, opened: contextlib.ExitStack, *, was_killed: bool) -> None:
        """Start the tasks beside commits: the mark, and the upkeep of the log."""
        self._mark = opened.enter_context(contextlib.closing(marks.MarkFile(self.path)))
        self._mark.write(self._marked())
        self._mark.sync()
        self.upkeep = Upkeep(self.path, self._writing, self._mark)
        if was_killed:  # maybe during a deletion
            self.upkeep.erase()

    def _marked(self) -> marks.Mark:
        return marks.Mark(self._store_id, self._commit_count, self._next_object_id, self._time_ms)

    def recover(self) -> Recovered:
        """Read all live data, in slices.

        Raises
        ------
        StoreError
            Here or while the slices are read, if data is not as it was written.
        """
        with reading.damage_named(self.path):
            time_ms = int(opening.meta(self.database, self.path, schema.META_TIME))
            next_object_id = int(opening.meta(self.database, self.path, schema.META_NEXT_ID))
            idf = reading.idf(self.database)
            reading.require_sink(self.database, self._number)
            source_offsets = reading.source_offsets(self.database)
            log = self._log_position()
        self._stop_tree_check()
        if self.path != opening.MEMORY:
            self._trees = TreeCheck(self.path)
        return Recovered(
            time_ms,
            next_object_id,
            idf,
            source_offsets,
            # By the time of the log, some objects are alive that devices hold to be expired.
            reading.objects(self.database, self.path, log.time_ms if log.log_id else time_ms),
            self._subscriptions(),
            log,
        )

    def _log_position(self) -> LogPosition:
        """Return how far the store has applied a log."""
        database = self.database
        if not opening.number(database, self.path, schema.META_LOG_OFFSET):
            return LogPosition()
        return LogPosition(
            opening.meta(database, self.path, schema.META_LOG_ID),
            opening.number(database, self.path, schema.META_LOG_OFFSET),
            opening.number(database, self.path, schema.META_LOG_TIME),
            reading.outcomes(database),
            opening.number(database, self.path, schema.META_LOG_RULES) or 1,
            reading.source_cursors(database),
            self._sink_position(),
            self._windows(),
            opening.number(database, self.path, schema.META_LOG_WEIGHTS) > 0,
        )

    def _windows(self) -> dict[str, WindowClaim]:
        text = opening.meta_or(self.database, self.path, schema.META_LOG_WINDOWS, "{}")
        return rows.windows_from(text)

    def _sink_position(self) -> SinkPosition:
        is_on = opening.number(self.database, self.path, schema.META_LOG_SINK) > 0
        return SinkPosition(is_on, self._number, self._sent_number)

    def _subscriptions(self) -> Iterator[SubscriptionColumns]:
        """Yield all subscriptions, after the objects, and then the result of the check of the file."""
        yield from reading.subscriptions(self.database, self.path)
        if self._trees is not None:
            self._trees.require()

    def overdue(self, before_ms: int, count_max: int) -> list[str]:
        """Return at most `count_max` devices last seen before a time. O(subscriptions), beside commits.

        Raises
        ------
        StoreError
            If the store cannot be read.
        """
        with self._beside_commits() as database:
            return reading.overdue(database, self.path, before_ms, count_max)

    def last_seen_ms(self, device_id: str) -> int | None:
        """Return when a device was last seen, to the hour; None without subscriptions. Beside commits.

        Raises
        ------
        StoreError
            If the store cannot be read.
        """
        with self._beside_commits() as database:
            return reading.last_seen_ms(database, self.path, device_id)

    @property
    def unsent_count(self) -> int:
        """The number of changes to be written to the sink; 0 while there is none."""
        return self._number - self._sent_number if self._has_sink else 0

    def unsent(self, count_max: int, after: int = 0) -> list[Happened]:
        """Return the next changes for the sink after a number, beside commits.

        Raises
        ------
        StoreError
            If the store cannot be read.
        """
        with self._beside_commits() as database:
            return reading.happened(database, self.path, count_max, after)

    @contextlib.contextmanager
    def _beside_commits(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection to read with. A store in memory has only one, so commits wait for it."""
        if self.path == opening.MEMORY:
            with self._writing:
                yield self.database
        else:
            with contextlib.closing(opening.connected(self.path, read_only=True)) as database:
                yield database

    def commit(self, mutations: Sequence[Mutation], time_ms: int, until_ms: int = 0) -> None:
        """Make mutations durable, all or none; write the time, and its limit until the next commit.

        Raises
        ------
        StoreError
            If they could not be written; none is.
        """
        numbers = self._number, self._sent_number, self._commit_count, self._next_object_id
        try:
            with self._writing:
                log_bytes = 0 if self.upkeep is None else self.upkeep.log_bytes()
                self.database.execute("BEGIN IMMEDIATE")
                try:
                    self._write(mutations, time_ms, until_ms)
                    self._give_back_pages()
                    self.database.execute("COMMIT")
                except BaseException:
                    self._number, self._sent_number, self._commit_count, self._next_object_id = numbers
                    # A failed COMMIT on a full disk leaves the transaction open or has rolled it back.
                    with contextlib.suppress(sqlite3.Error):
                        self.database.execute("ROLLBACK")
                    self._cut_log(log_bytes)
                    raise
                self._mark_commit()
        except (sqlite3.Error, OverflowError) as error:  # of a number beyond 64 bits
            raise StoreError(f"store {self.path} cannot be written: {error}") from error
        except reading.Damage as error:
            raise StoreError(f"store {self.path} is damaged: {error}; nothing was written") from error
        if self.upkeep is not None:
            if any(isinstance(one, DeleteDevice) for one in mutations):
                self.upkeep.erase()
            self.upkeep.look()

    def _write(self, mutations: Sequence[Mutation], time_ms: int, until_ms: int) -> None:
        of = _by_type(mutations)
        deleted = of[DeleteObject]
        puts = [one.item for one in of[PutObject]]
        latest = max([time_ms, until_ms, *(one.time_ms for one in of[SetTime])])
        self._commit_count += 1
        self._time_ms = latest
        write = self.database.executemany
        self._erase_pages(bool(of[DeleteSubscription] or of[DeleteDevice] or of[PutSubscription]))
        if deleted:
            found = write(_DELETE_OBJECT, [(one.object_id,) for one in deleted])
            _require_deleted("objects", found.rowcount, len(deleted))
        if puts:
            write(_PUT_OBJECT, [rows.object_values(item) for item in puts])
            highest = max(item.object_id for item in puts)
            self._next_object_id = highest + 1
            opening.put_meta(self.database, schema.META_NEXT_ID, str(self._next_object_id))
        for one in of[PutIdf]:
            self.database.execute(_DELETE_IDF)
            packed = zlib.compress(one.table.as_json().encode())
            values = (one.generation, idf_checksum(one.generation, packed), packed)
            self.database.execute(_PUT_IDF, values)
        self._write_subscriptions(of, time_ms)
        for source in of[SetSourceOffset]:
            opening.put_meta(self.database, f"{schema.META_SOURCE}{source.stream}", source.offset)
        for sent in of[DeleteSent]:
            found = self.database.execute(_DELETE_SENT, (sent.number,))
            _require_deleted("sink", found.rowcount, sent.number - self._sent_number)
            self._sent_number = sent.number
        if of[SetLogPosition]:
            self._write_log(of)
        if self._has_sink:
            self._keep_for_sink(mutations, time_ms)
        opening.put_meta(self.database, schema.META_TIME, str(latest))
        opening.put_meta(self.database, schema.META_COMMITS, str(self._commit_count))

    def _write_log(self, of: defaultdict[type[Mutation], list[Any]]) -> None:
        """Write the position in the log, the outcomes of its requests, and the cursors of the source."""
        write = self.database.executemany
        numbered = [
            (one.offset * schema.PLACES + one.place, one.request_id, one.time_ms, one.reply)
            for one in (put.outcome for put in of[PutOutcome])
        ]
        write(_PUT_OUTCOME, [(row[0], outcome_checksum(*row), *row[1:]) for row in numbered])
        write(_DELETE_OUTCOMES, [(one.offset * schema.PLACES + one.place,) for one in of[DeleteOutcomes]])
        for one in of[SetSourceCursor]:
            opening.put_meta(
                self.database, f"{schema.META_LOG_SOURCE}{one.stream}", rows.cursor_text(one.cursor)
            )
        for sink in of[SetSinkPosition]:
            self._write_sink([one.change for one in of[PutChange]], sink.position)
        for used in of[SetWindows]:
            opening.put_meta(self.database, schema.META_LOG_WINDOWS, rows.windows_text(used.claims))
        position = of[SetLogPosition][-1]
        self._next_object_id = position.next_object_id
        for name, value in (
            (schema.META_LOG_ID, position.log_id),
            (schema.META_LOG_OFFSET, str(position.offset)),
            (schema.META_LOG_TIME, str(position.time_ms)),
            (schema.META_NEXT_ID, str(position.next_object_id)),
            (schema.META_LOG_RULES, str(position.rules)),
            (schema.META_LOG_WEIGHTS, str(int(position.weights_pending))),
        ):
            opening.put_meta(self.database, name, value)

    def _write_sink(self, changes: Sequence[Happened], position: SinkPosition) -> None:
        """Write which changes wait for the sink of a cluster; all of `changes` do."""
        known = max(0, min(position.sent_number, self._number) - self._sent_number)
        found = self.database.execute(_DELETE_SENT, (position.sent_number,))
        _require_deleted("sink", found.rowcount, known)
        self._put_changes(changes)
        self._number, self._sent_number = position.number, position.sent_number
        opening.put_meta(self.database, schema.META_SINK, str(position.number))
        opening.put_meta(self.database, schema.META_LOG_SINK, str(int(position.is_on)))

    def _put_changes(self, changes: Iterable[Happened]) -> None:
        rows = ((one.number, sink_checksum(*one), *one[1:]) for one in changes)
        self.database.executemany(_PUT_CHANGE, rows)

    def adopt(self, snapshot: Path, log_id: str | None = None) -> None:
        """Take the content of a snapshot, which is intact, in place of the own, all or nothing.

        Parameters
        ----------
        snapshot
            Of another store; a file of its own.
        log_id
            The id of the log with which the store is to continue; by default that of the snapshot.

        Raises
        ------
        StoreError
            If it is of another area, or the store cannot be written; nothing has changed.
        """
        self._stop_tree_check()
        try:
            with self._writing:
                self.database.execute("ATTACH ? AS snapshot", (str(snapshot),))
                try:
                    self._copy_rows(snapshot, log_id)
                finally:
                    self.database.execute("DETACH snapshot")
                self._read_numbers()
                self._mark_commit()
        except sqlite3.Error as error:
            raise StoreError(f"store {self.path} cannot take a snapshot: {error}") from error
        if self.upkeep is not None:
            self.upkeep.look()

    def _copy_rows(self, snapshot: Path, log_id: str | None) -> None:
        self.database.execute("BEGIN IMMEDIATE")
        try:
            adopting.copy_rows(self.database, self.path, snapshot)
            if log_id is not None:
                opening.put_meta(self.database, schema.META_LOG_ID, log_id)
            opening.put_meta(self.database, schema.META_COMMITS, str(self._commit_count + 1))
            self.database.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self.database.execute("ROLLBACK")
            raise

    def write_snapshot(self, target: Path) -> None:
        """Copy the content as of now into a new file, beside commits if the store is a file.

        Raises
        ------
        StoreError
            If the copy cannot be written.
        """
        if self.path != opening.MEMORY:
            copies.write_snapshot(Path(self.path), target)
            return
        try:
            with self._writing, contextlib.closing(sqlite3.connect(target)) as copy:
                self.database.backup(copy)
        except sqlite3.Error as error:
            raise StoreError(f"{target} cannot be written: {error}") from error

    def _mark_commit(self) -> None:
        """Write to the mark that a commit is on disk, before it is acknowledged."""
        if self._mark is not None:
            try:
                self._mark.write(self._marked())
            except OSError as error:
                _log.warning("the mark of commits of store %s cannot be written: %s", self.path, error)

    def _cut_log(self, log_bytes: int) -> None:
        """Remove the frames of a transaction that was rolled back from the end of the log."""
        if self.upkeep is not None and not self.database.in_transaction:
            try:
                log_frames.cut(f"{self.path}{files.LOG}", log_bytes)
            except OSError as error:
                _log.warning("the log keeps the remains of a failed commit: %s", error)

    def _write_subscriptions(self, of: defaultdict[type[Mutation], list[Any]], time_ms: int) -> None:
        write = self.database.executemany
        ended = of[DeleteSubscription]
        forgotten = of[DeleteDevice]
        subscribed = of[PutSubscription]
        last_seen = of[SetLastSeen]
        if ended:
            found = write(_DELETE_SUBSCRIPTION, [(one.device_id, one.subscription_id) for one in ended])
            _require_deleted("subscriptions", found.rowcount, len(ended))
        if forgotten:
            write(_DELETE_DEVICE, [(one.device_id,) for one in forgotten])
        if subscribed:
            write(_PUT_SUBSCRIPTION, [rows.subscription_values(one, time_ms) for one in subscribed])
        if last_seen:
            before_ms = time_ms - _LAST_SEEN_STEP_MS
            devices = [one.device_id for one in last_seen]
            write(
                _SET_LAST_SEEN,
                [(time_ms, last_seen_checksum(one, time_ms), one, before_ms) for one in devices],
            )

    def _erase_pages(self, are_whole: bool) -> None:  # noqa: FBT001
        """Let SQLite overwrite deleted data, also in pages that it frees, or only where it writes anyway.

        Data of devices is overwritten in freed pages, too. For payloads of objects that would double the
        writes.
        """
        if are_whole is not self._erases_pages:
            self.database.execute(f"PRAGMA secure_delete={'ON' if are_whole else 'FAST'}")
            self._erases_pages = are_whole

    def _keep_for_sink(self, mutations: Sequence[Mutation], time_ms: int) -> None:
        """Keep changes of objects, in order, until they were written to the sink."""
        of_objects = (one for one in mutations if isinstance(one, PutObject | DeleteObject))
        changes = [rows.happened(i, one, time_ms) for i, one in enumerate(of_objects, self._number + 1)]
        if changes:
            self._put_changes(changes)
            self._number = changes[-1].number
            opening.put_meta(self.database, schema.META_SINK, str(self._number))

    def _give_back_pages(self) -> None:
        (free,) = self.database.execute("PRAGMA freelist_count").fetchone()
        if free > _FREE_MIN:
            (pages,) = self.database.execute("PRAGMA page_count").fetchone()
            if free * _FREE_SHARE > pages:
                for _ in range(_GIVEN_BACK):  # sqlite3 takes one step of this statement, one page
                    self.database.execute("PRAGMA incremental_vacuum(1)")

    def close(self) -> None:
        """Close the file. No acknowledged data depends on it."""
        self._stop_tree_check()
        if self.upkeep is not None:
            self.upkeep.close()
        if self._mark is not None:
            with contextlib.suppress(OSError):  # an older mark claims less
                self._mark.sync()
        self._opened.close()

    def _stop_tree_check(self) -> None:
        if self._trees is not None:
            self._trees.stop()
            self._trees = None

    def discard(self) -> None:
        """Close the file, and remove it if the store is new. For a start that failed."""
        self._is_discarded = True
        self.close()

    def _remove_what_is_new(self) -> None:
        """Remove the files of a discarded store, while the lock is still held."""
        if self._is_new and self._is_discarded:
            for suffix in ("", *files.BESIDE, files.LOCK):
                Path(f"{self.path}{suffix}").unlink(missing_ok=True)


def _require_deleted(table: str, count: int, expected: int) -> None:
    """Verify that all rows to be deleted were there: a row that is not found would reappear."""
    if count != expected:
        raise reading.Damage(f"{count} of the {expected} rows of {table} to delete were found")


def _by_type(mutations: Iterable[Mutation]) -> defaultdict[type[Mutation], list[Any]]:
    """Return mutations by their type, in their order."""
    found: defaultdict[type[Mutation], list[Any]] = defaultdict(list)
    for one in mutations:
        found[type(one)].append(one)
    return found
