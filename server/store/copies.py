"""Copies of a store: backups while a server writes, and what is made of them again.

A copy is one snapshot: it has every commit that was there when it began, and none of later ones. Nothing
waits for it, commits go on; the write-ahead log is not begun anew until it has ended.

Both ways are the same: SQLite's backup into a file beside the target, which is then checked, synced and
given its name, in one step, unless that name is taken.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

from server.errors import StoreError
from server.store import opening
from server.store.checking import Progress, older_problems, problems
from server.store.schema import SCHEMA_VERSION
from server.store.sqlite import locked

_PAGES = 512
"""Copied in one go: progress is told between."""


def backup(source: Path, target: Path, progress: Progress) -> None:
    """Copy a store, whether or not a server has it open.

    Raises
    ------
    StoreError
        If the target is there already, the source is no store or damaged, or the copy cannot be written.
    """
    _require_free(target)
    _copy(source, target, progress)


def restore(source: Path, target: Path, progress: Progress) -> None:
    """Make a store of a backup, where there is none.

    Raises
    ------
    StoreError
        If there is a store, or the rest of one; if the backup is no store or damaged; if the store cannot
        be written.
    """
    # The log of another store would be taken for that of this one.
    for suffix in ("", "-wal", "-shm", "-journal"):
        _require_free(target.with_name(target.name + suffix))
    _require_folder(target)
    with contextlib.closing(locked(str(target))):
        _copy(source, target, progress)


def _require_free(path: Path) -> None:
    if path.exists():
        raise StoreError(f"{path} is there already: move it away, or choose another name")


def _require_folder(target: Path) -> None:
    if not target.parent.is_dir():
        raise StoreError(f"{target} cannot be written: there is no folder {target.parent}, make it first")


def _copy(source: Path, target: Path, progress: Progress) -> None:
    if not source.is_file():
        raise StoreError(f"store {source} is not there")
    _require_folder(target)
    part = target.with_name(f"{target.name}.part")
    try:
        part.unlink(missing_ok=True)
        try:
            _copy_pages(source, part, progress)
            _sync(part)
            os.link(part, target)  # unlike a rename it fails if the name is taken
        finally:
            part.unlink(missing_ok=True)
        _sync(target.parent)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"store {source} cannot be copied to {target}: {error}") from error


def _copy_pages(source: Path, part: Path, progress: Progress) -> None:
    with (
        contextlib.closing(opening.connected(str(source), read_only=True)) as original,
        contextlib.closing(sqlite3.connect(part, isolation_level=None)) as copy,
    ):
        version = opening.require_store(original, str(source))
        original.execute("BEGIN")
        original.execute("SELECT count(*) FROM sqlite_schema").fetchone()  # the snapshot is taken here
        original.backup(
            copy,
            pages=_PAGES,
            progress=lambda _status, left, total: progress("pages", total - left, total),
        )
        copy.execute("PRAGMA journal_mode=DELETE")  # one file, without a log
        if version == SCHEMA_VERSION:
            found = problems(copy, str(source), progress)
        else:
            found = older_problems(copy, version)
        if found:
            more = f", and {len(found) - 1} more" if len(found) > 1 else ""
            raise StoreError(f"store {source} is damaged: {found[0]}{more}")


def _sync(path: Path) -> None:
    """Make a file, or the names in a folder, durable."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
