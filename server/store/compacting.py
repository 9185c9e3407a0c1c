"""Compaction of a store that no server has open: rewritten without any deleted data.

Deleted data is overwritten at once where SQLite can reach it. A row that SQLite has moved between pages
may have left a copy in the unused part of one, until that part is used again. Compaction removes such
copies, too.
"""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from server.errors import StoreError
from server.store import files, losses, opening


def compact(path: Path, *, accept_loss: bool = False) -> None:
    """Rewrite a store in its minimal size. O(rows); needs as much space again meanwhile.

    Raises
    ------
    StoreError
        If it does not exist, is no store, is in use, has lost data and the loss is not accepted, or
        cannot be written; it is unchanged.
    """
    name = files.resolved(path)
    files.require_one_name(name)
    losses.require_database(name)
    if not path.is_file():
        raise StoreError(f"store {name} does not exist")
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
