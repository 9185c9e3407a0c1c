"""The version of SQLite, and its known bugs."""

from __future__ import annotations

import logging
import sqlite3

_log = logging.getLogger(__name__)

_FIXED = ((3, 44, 6), (3, 50, 7), (3, 51, 3))
"""Versions with the fix of the WAL-reset bug, the older two for their own line only."""


def has_reset_bug(version: tuple[int, ...]) -> bool:
    """Return whether a version of SQLite has the WAL-reset bug (sqlite.org/wal.html#walresetbug)."""
    return version < _FIXED[-1] and not any(
        version[:2] == fixed[:2] and version >= fixed for fixed in _FIXED
    )


def warn_of_sqlite() -> None:
    """Log the version of SQLite; a warning if it has a bug that other programs could trigger."""
    if not has_reset_bug(sqlite3.sqlite_version_info):
        _log.info("SQLite %s", sqlite3.sqlite_version)
        return
    _log.warning(
        "SQLite %s: the server is safe; let no other program write to its store or checkpoint it while "
        "it runs (readers and `nearcast store backup` do neither). This version has the WAL-reset bug, "
        "fixed in 3.51.3, 3.50.7 and 3.44.6, which such a program could trigger; the connections of the "
        "server take turns",
        sqlite3.sqlite_version,
    )
