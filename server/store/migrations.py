"""How a store of an older version becomes one of this version: in the transaction that opens it. O(rows).

A step makes of a store of version n one of version n + 1. One that writes checksums again reads the rows
with `reading.slices`, which verifies them: no new checksum is made for a damaged row, it is named, and
the file stays as it was.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from server.store import schema

STEPS: dict[int, Callable[[sqlite3.Connection], None]] = {}
"""By the version n. It has every version that was released before this one."""


def migrate(database: sqlite3.Connection, version: int) -> None:
    """Bring a store up to date, in the transaction that has begun.

    Raises
    ------
    Damage
        If a row is not what was written, or one is lost.
    """
    for older in range(version, schema.SCHEMA_VERSION):
        STEPS[older](database)
    database.execute(f"PRAGMA user_version={schema.SCHEMA_VERSION}")
