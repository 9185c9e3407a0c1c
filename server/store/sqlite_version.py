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


def log_sqlite_version() -> None:
    """Log the version of SQLite, and whether it has a bug that other programs could trigger."""
    advice = ""
    if has_reset_bug(sqlite3.sqlite_version_info):
        advice = (
            ", with the WAL-reset bug: let no other program than nearcast write to the store "
            "(docs/operations.md, Files of a store)"
        )
    _log.info("SQLite %s%s", sqlite3.sqlite_version, advice)
