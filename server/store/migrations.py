"""Migration of a store of an older version to this one, in the transaction that opens it. O(rows).

A step migrates a store from version n to version n + 1. A step that rewrites checksums reads the rows
with `reading.slices`, which verifies them: a damaged row gets no new checksum but is reported, and the
file stays unchanged.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from server.store import schema


def _add_outcomes(database: sqlite3.Connection) -> None:
    """Version 2: the outcomes of requests in the log of a cluster."""
    for statement in schema.CREATE_OUTCOMES:
        database.execute(statement)


STEPS: dict[int, Callable[[sqlite3.Connection], None]] = {1: _add_outcomes}
"""By the version n, for every version that was released before this one."""


def migrate(database: sqlite3.Connection, version: int) -> None:
    """Migrate a store to this version, in the open transaction.

    Raises
    ------
    Damage
        If a row is not as it was written, or one is lost.
    """
    for older in range(version, schema.SCHEMA_VERSION):
        STEPS[older](database)
    database.execute(f"PRAGMA user_version={schema.SCHEMA_VERSION}")
