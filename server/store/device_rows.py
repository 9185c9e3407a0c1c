"""Subscriptions in the backup of a cluster: a store of objects, to which they are added."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from server.store import opening, rows, schema
from server.store.mutations import PutSubscription

_PUT = "INSERT INTO subscriptions VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_ALL = (
    "SELECT device_id, subscription_id, kind, spec, name FROM subscriptions "
    "ORDER BY device_id, subscription_id"
)


def put_devices(path: Path, subscriptions: Iterable[PutSubscription], founding: bytes) -> None:
    """Add subscriptions and the first entry of the log to a snapshot, which no server has open."""
    name = str(path)
    with contextlib.closing(opening.connected(name)) as database:
        time_ms = opening.number(database, name, schema.META_TIME)
        database.execute("BEGIN")
        database.executemany(_PUT, (rows.subscription_values(one, time_ms) for one in subscriptions))
        opening.put_meta(database, schema.META_FOUNDING, founding.hex())
        database.execute("COMMIT")


def founding_in(path: Path) -> bytes | None:
    """Return the first entry of the log in the backup of a cluster; None for another store."""
    name = str(path)
    with contextlib.closing(opening.connected(name, read_only=True)) as database:
        query = "SELECT 1 FROM meta WHERE name = ?"
        if database.execute(query, (schema.META_FOUNDING,)).fetchone() is None:
            return None
        return bytes.fromhex(opening.meta(database, name, schema.META_FOUNDING))


def devices_in(path: Path) -> Iterator[PutSubscription]:
    """Yield the subscriptions in the backup of a cluster, which is intact."""
    with contextlib.closing(opening.connected(str(path), read_only=True)) as database:
        for row in database.execute(_ALL):
            yield PutSubscription(*row)
