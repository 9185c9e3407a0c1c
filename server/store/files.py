"""The files of a store: private to their owner, with a single name, held by one server.

The files beside a store are its log (`-wal`), the log's index (`-shm`), the mark of acknowledged commits
(`-mark`), and the lock (`.lock`). Each is readable and writable for its owner alone from its first byte,
whatever the umask: the store, the lock and the mark are created so, and SQLite gives log and index the
mode of the store.

Two locks exclude a second server: one beside the store, under its resolved name, and one on the file
itself. Neither prevents others from reading the store.

Warnings: a file that SQLite has open must not be opened and closed by other means in the same process,
which would end SQLite's locks on it; so the file is held open, and examined by its name.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from server.errors import StoreError
from server.store.reading import ADVICE, without_values

_log = logging.getLogger(__name__)

LOG = "-wal"
INDEX = "-shm"
JOURNAL = "-journal"
MARK = "-mark"
LOCK = ".lock"
PART = ".part"
"""Suffixes of the files beside a store."""

BESIDE = (LOG, INDEX, JOURNAL, MARK)

_PRIVATE = 0o600
_IN_USE = "another server has it open"


def resolved(path: Path | str) -> str:
    """Return the unique name of a store: without symbolic links."""
    return str(Path(path).resolve())


def size_of(path: str) -> int:
    """Return the size of a file in bytes; 0 if there is none."""
    try:
        return os.stat(path).st_size  # noqa: PTH116 - a name, as in all of the store
    except FileNotFoundError:
        return 0


def create_private(path: str) -> bool:
    """Create an empty, private file; return whether there was none. Follows no links."""
    try:
        os.close(_created(path))
    except FileExistsError:
        return False
    return True


def open_private(path: str) -> int:
    """Create an empty, private file that must not exist, and return its descriptor."""
    return _created(path)


def _created(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, _PRIVATE)


def is_same(number: int, path: str) -> bool:
    """Return whether a name is the only name of an open file."""
    ours, named = os.fstat(number), os.lstat(path)
    return (ours.st_dev, ours.st_ino, ours.st_nlink) == (named.st_dev, named.st_ino, 1)


def sync_folder(path: str) -> None:
    """Make the name of a file durable."""
    number = os.open(Path(path).parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def warn_if_open_to_others(path: str) -> None:
    """Warn if other users may use a store. Its mode stays, since it may be intended."""
    mode = stat.S_IMODE(os.stat(path).st_mode)  # noqa: PTH116
    if mode & 0o077:
        _log.warning(
            "store %s has mode %04o: other users can access it and its log; run chmod 600 %s*",
            path,
            mode,
            path,
        )


@contextmanager
def locked(path: str) -> Iterator[None]:
    """Hold the lock beside a store; it ends with the process. Others may read the store.

    Raises
    ------
    StoreError
        If another process holds it, or it cannot be written.
    """
    name = f"{path}{LOCK}"
    lock = None
    try:
        create_private(name)
        lock = sqlite3.connect(name, isolation_level=None, check_same_thread=False, timeout=0.5)
        lock.execute("PRAGMA journal_mode=MEMORY")  # no further file beside it
        lock.execute("BEGIN EXCLUSIVE")
        if not Path(name).exists():  # the server that held it has removed it with the store
            raise sqlite3.OperationalError("its lock was removed")
    except OSError as error:
        raise StoreError(f"store {path} cannot be opened: {error}") from error
    except sqlite3.Error as error:
        if lock is not None:
            lock.close()
        raise StoreError(f"store {path} cannot be used: {explained(error)}") from error
    with contextlib.closing(lock):
        yield


def drop_part(path: str) -> None:
    """Remove the second name of a store that a restore has left when it was killed at its very end."""
    part = f"{path}{PART}"
    with contextlib.suppress(FileNotFoundError):
        if Path(part).samefile(path) and not Path(part).is_symlink():
            Path(part).unlink()


def in_use(path: str) -> bool:
    """Return whether a server holds the lock beside a store."""
    name = f"{path}{LOCK}"
    if not Path(name).exists():
        return False
    with contextlib.closing(sqlite3.connect(name, timeout=0.0)) as lock:
        try:
            lock.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        except sqlite3.OperationalError as error:
            return "locked" in str(error)
    return False


def require_one_name(path: str) -> None:
    """Verify that a store has no hard links: its log lies beside one of its names only.

    Raises
    ------
    StoreError
        If it has some.
    """
    try:
        names = os.stat(path).st_nlink  # noqa: PTH116
    except FileNotFoundError:
        return
    if names > 1:
        raise StoreError(
            f"store {path} has {names} names (hard links), must have one: its log belongs to one of "
            "them, and a second server could open the store under another name; remove the others"
        )


@contextmanager
def held(path: str) -> Iterator[None]:
    """Hold the file itself, which must have a single name. Leave the block after SQLite has closed it.

    Raises
    ------
    StoreError
        If it has several names, or another server holds it under any name.
    """
    require_one_name(path)
    number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if sys.platform == "linux":  # elsewhere it would be the same lock as SQLite's
            import fcntl  # noqa: PLC0415

            try:
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise StoreError(f"store {path} cannot be used: {_IN_USE}") from error
            except OSError as error:  # a file system without such locks
                _log.warning("store %s is locked under its name only: %s", path, error)
        yield
    finally:
        os.close(number)


def refusal(path: str, error: Exception) -> StoreError:
    """Return the refusal of a store that cannot be opened."""
    if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) == sqlite3.SQLITE_CORRUPT:
        return StoreError(f"store {path} is damaged: {without_values(error)}; {ADVICE}")
    return StoreError(f"store {path} cannot be used: {explained(error)}")


def explained(error: Exception) -> str:
    """Return the reason why a store cannot be used."""
    if "locked" in str(error):
        return _IN_USE
    return without_values(error)
