"""The check of the file: pages in their places, each in one place, none lost, keys in order.

Rows are verified while they are read, in order. That detects neither a page of the free list that is in
use, nor a key of an inner page that leads past its rows. SQLite's check does, in its own thread while
rows are read, without holding the interpreter.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading

from server.store import opening, reading


class TreeCheck:
    """Checks a file while others read it; a server continues to write only once it has ended."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._found: list[str] = []
        self._database = opening.connected(path, read_only=True)
        self._thread = threading.Thread(target=self._check, name="tree check")
        self._thread.start()

    def _check(self) -> None:
        with contextlib.closing(self._database):
            try:
                rows = self._database.execute("PRAGMA quick_check(1)").fetchall()
            except sqlite3.Error as error:
                rows = [(str(error),)]
        self._found = [text for (text,) in rows if text != "ok"]

    def stop(self) -> None:
        """End the check, whether or not it has found anything."""
        with contextlib.suppress(sqlite3.Error):  # closed already
            self._database.interrupt()
        self._thread.join()

    def require(self) -> None:
        """Wait for the end of the check.

        Raises
        ------
        StoreError
            If the file is damaged.
        """
        self._thread.join()
        with reading.damage_named(self._path):
            if self._found:
                raise reading.Damage(self._found[0])
