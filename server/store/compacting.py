"""Compacting a store that no server has open: written again without anything that was deleted.

What is deleted is overwritten at once where SQLite can reach it. A row that SQLite has moved between
pages may have left a copy in the unused part of one, until that part is used: here such copies go, too.
"""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from server.errors import StoreError
from server.store import files, losses, opening


def compact(path: Path, *, accept_loss: bool = False) -> None:
    """Write a store again, as small as it can be. O(rows); needs as much space again meanwhile.

    Raises
    ------
    StoreError
        If it is not there, is no store, is in use, has lost something that is not accepted, or cannot be
        written; it is as it was.
    """
    name = files.resolved(path)
    files.require_one_name(name)
    losses.require_database(name)
    if not path.is_file():
        raise StoreError(f"store {name} is not there")
    try:
        with contextlib.closing(opening.connected(name, read_only=True)) as database:
            opening.require_store(database, name)
        with files.locked(name), files.held(name):
            losses.look(losses.Losses(name, is_accepted=accept_loss))
            with contextlib.closing(opening.connected(name)) as database:
                database.execute("PRAGMA secure_delete=ON")
                database.execute("VACUUM")
                database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"store {name} cannot be compacted: {error}") from error
