"""Facts about a store, read without opening it to write."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from safe_region.earth.frame import Area
from server.errors import StoreError
from server.store import files, losses, opening, reading, schema

_COUNTS = {
    "objects": "SELECT count(*) FROM objects",
    "objects_expired": "SELECT count(*) FROM objects WHERE expiry_ms <= ?",
    "subscriptions": "SELECT count(*) FROM subscriptions",
    "devices": "SELECT count(DISTINCT device_id) FROM subscriptions",
}
_KINDS = "SELECT kind, count(*) FROM subscriptions GROUP BY kind ORDER BY kind"

_KIND_NAMES = {0: "top-k", 1: "boolean", 2: "top-k_stationary"}


def facts(path: Path) -> dict[str, Any]:
    """Return the counts and sizes of a store, and whether a server has it open. O(rows).

    Raises
    ------
    StoreError
        If it does not exist, is no store, or is damaged.
    """
    name = str(path)
    losses.require_database(files.resolved(path))
    if not path.is_file():
        raise StoreError(f"store {name} does not exist")
    with (
        contextlib.closing(opening.connected(name, read_only=True)) as database,
        reading.damage_named(name),
    ):
        version = opening.require_store(database, name)
        if version < schema.SCHEMA_VERSION:
            return {"path": name, "version": version, "file_bytes": path.stat().st_size}
        database.execute("BEGIN")
        time_ms = int(opening.meta(database, name, schema.META_TIME))
        counts = {}
        for what, query in _COUNTS.items():
            (counts[what],) = database.execute(query, (time_ms,) * query.count("?")).fetchone()
        for kind, count in database.execute(_KINDS):
            kind_name = _KIND_NAMES.get(kind, f"of_kind_{kind}")
            counts[f"subscriptions_{kind_name}"] = count
        (free,) = database.execute("PRAGMA freelist_count").fetchone()
        (page_bytes,) = database.execute("PRAGMA page_size").fetchone()
        log = path.with_name(f"{path.name}-wal")
        return {
            "path": name,
            "version": version,
            "in_use": files.in_use(name),
            "area": ", ".join(str(bound) for bound in opening.stored_area(database, name)),
            "time_ms": time_ms,
            "next_object_id": int(opening.meta(database, name, schema.META_NEXT_ID)),
            **counts,
            "file_bytes": path.stat().st_size,
            "free_bytes": free * page_bytes,
            "log_bytes": log.stat().st_size if log.exists() else 0,
        }


def stored_area(path: Path) -> Area:
    """Return the service area of a store.

    Raises
    ------
    StoreError
        If it cannot be read.
    """
    with (
        contextlib.closing(opening.connected(str(path), read_only=True)) as database,
        reading.damage_named(str(path)),
    ):
        return opening.stored_area(database, str(path))
