"""Compacting a store that no server has open: written again without anything that was deleted.

What is deleted is overwritten at once where SQLite can reach it. A row that SQLite has moved between
pages may have left a copy in the unused part of one, until that part is used: here such copies go, too.
"""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from server.errors import StoreError
from server.store import opening
from server.store.sqlite import locked


def compact(path: Path) -> None:
    """Write a store again, as small as it can be. O(rows); needs as much space again meanwhile.

    Raises
    ------
    StoreError
        If it is not there, is no store, is in use, or cannot be written; it is as it was.
    """
    name = str(path)
    if not path.is_file():
        raise StoreError(f"store {name} is not there")
    try:
        with contextlib.closing(opening.connected(name)) as database:
            opening.require_store(database, name)
            with contextlib.closing(locked(name)):
                database.execute("PRAGMA secure_delete=ON")
                database.execute("VACUUM")
                database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as error:
        raise StoreError(f"store {name} cannot be compacted: {error}") from error
