"""Copies of a store: backups while a server writes, and stores that are restored from them.

A copy is one snapshot: it has every commit up to its start, and none of later ones. Commits do not wait
for it; the write-ahead log is not reset until it has ended.

Both directions work the same way: SQLite's backup into a file beside the target, which is then checked,
synced and linked to its name in one step, unless that name is taken.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

from server.errors import StoreError
from server.store import files, losses, opening, schema
from server.store.checking import Progress, file_problems, problems
from server.store.reading import ADVICE

_PAGES = 512
"""Pages to copy at a time, after which the progress is reported."""


def backup(source: Path, target: Path, progress: Progress, *, accept_loss: bool = False) -> None:
    """Copy a store, whether or not a server has it open.

    Raises
    ------
    StoreError
        If the target exists already, the source is no store or damaged, has lost data and the loss is not
        accepted, or the copy cannot be written.
    """
    _require_free(target)
    _copy(source, target, progress, accept_loss=accept_loss)


def restore(source: Path, target: Path, progress: Progress, *, accept_loss: bool = False) -> None:
    """Restore a store from a backup, where there is none.

    Raises
    ------
    StoreError
        If there is a store, or the rest of one; if the backup is no store or damaged, or has lost data
        and the loss is not accepted; if the store cannot be written.
    """
    # SQLite would use the log of another store as that of this one.
    for suffix in ("", *files.BESIDE):
        _require_free(target.with_name(target.name + suffix))
    _require_folder(target)
    name = files.resolved(target)
    with files.locked(name):
        try:
            _copy(source, target, progress, accept_loss=accept_loss)
        except StoreError:
            if not target.exists():
                Path(f"{name}{files.LOCK}").unlink(missing_ok=True)  # of no store
            raise


def write_snapshot(source: Path, target: Path) -> None:
    """Copy a store that this process has open into a new file, without a check.

    Commits do not wait for it. It holds the interpreter for moments only, however large the store is.

    Raises
    ------
    StoreError
        If the store cannot be read, or the copy not be written.
    """
    try:
        os.close(files.open_private(str(target)))
        _copy_file(source, target, None)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"store {source} cannot be copied to {target}: {error}") from error


def _require_free(path: Path) -> None:
    if path.exists():
        raise StoreError(f"{path} already exists: move it away, or choose another name")


def _require_folder(target: Path) -> None:
    if not target.parent.is_dir():
        raise StoreError(f"{target} cannot be written: the folder {target.parent} does not exist")


def _copy(source: Path, target: Path, progress: Progress, *, accept_loss: bool) -> None:
    name = files.resolved(source)
    losses.look_only(losses.Losses(name, is_accepted=accept_loss))
    if not source.is_file():
        raise StoreError(f"store {source} does not exist")
    _require_folder(target)
    part = target.with_name(f"{target.name}{files.PART}")
    try:
        part.unlink(missing_ok=True)
        number = files.open_private(str(part))
        try:
            _copy_pages(Path(name), part, progress)
            os.fsync(number)
            if not files.is_same(number, str(part)):
                raise StoreError(
                    f"{part} was replaced by another process during the copy: copy into a folder that "
                    "only this user can write"
                )
            os.link(part, target, follow_symlinks=False)  # unlike a rename it fails if the name is taken
        finally:
            part.unlink(missing_ok=True)
            os.close(number)
        files.sync_folder(str(target))
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"store {source} cannot be copied to {target}: {error}") from error


def _copy_pages(source: Path, part: Path, progress: Progress) -> None:
    version = _copy_file(
        source, part, lambda _status, left, total: progress("pages", total - left, total)
    )
    with contextlib.closing(sqlite3.connect(part, isolation_level=None)) as copy:
        if version == schema.SCHEMA_VERSION:
            found = problems(copy, str(source), progress)
        else:  # its rows are verified when a server migrates it
            found = list(file_problems(copy))
        if found:
            more = f", and {len(found) - 1} more" if len(found) > 1 else ""
            raise StoreError(f"store {source} is damaged: {found[0]}{more}; {ADVICE}")


def _copy_file(source: Path, target: Path, progress: Callable[[int, int, int], object] | None) -> int:
    """Copy all pages of a store as of one moment into one file; return the version of the store."""
    with (
        contextlib.closing(opening.connected(str(source), read_only=True)) as original,
        contextlib.closing(sqlite3.connect(target, isolation_level=None)) as copy,
    ):
        version = opening.require_store(original, str(source))
        original.execute("BEGIN")
        original.execute("SELECT count(*) FROM sqlite_schema").fetchone()  # takes the snapshot
        original.backup(copy, pages=_PAGES, progress=progress)
        copy.execute("PRAGMA journal_mode=DELETE")  # one file, without a log
    return version
