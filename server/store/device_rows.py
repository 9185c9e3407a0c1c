"""Subscriptions in the backup of a cluster: a store of objects, to which they are added.

The rows of a device also have the time when it was last seen, if the cluster knows it. Other rows have
the time of the store: such a device counts as seen when the cluster starts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from server.store import opening, rows, schema
from server.store.mutations import PutSubscription

_PUT = "INSERT INTO subscriptions VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_ALL = (
    "SELECT device_id, subscription_id, kind, spec, name FROM subscriptions "
    "ORDER BY device_id, subscription_id"
)
_SEEN = "SELECT device_id, min(last_seen_ms) FROM subscriptions WHERE last_seen_ms < ? GROUP BY device_id"


def put_devices(
    path: Path, subscriptions: Iterable[PutSubscription], seen_ms: Mapping[str, int], founding: bytes
) -> None:
    """Add subscriptions and the first entry of the log to a snapshot, which no server has open.

    Parameters
    ----------
    path
        The snapshot.
    subscriptions
        All subscriptions.
    seen_ms
        When devices were last seen, as far as it is known.
    founding
        The first entry of the log.
    """
    name = str(path)
    with contextlib.closing(opening.connected(name)) as database:
        time_ms = opening.number(database, name, schema.META_TIME)
        database.execute("BEGIN")
        times_ms = {device_id: min(one_ms, time_ms) for device_id, one_ms in seen_ms.items()}
        values = (
            rows.subscription_values(one, times_ms.get(one.device_id, time_ms)) for one in subscriptions
        )
        database.executemany(_PUT, values)
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


def last_seen_in(path: Path) -> Iterator[tuple[str, int]]:
    """Yield the devices in the backup of a cluster of which it is known when they were last seen."""
    name = str(path)
    with contextlib.closing(opening.connected(name, read_only=True)) as database:
        time_ms = opening.number(database, name, schema.META_TIME)
        yield from database.execute(_SEEN, (time_ms,))
