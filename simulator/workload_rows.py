"""Rows of a simulation as the replay uses them: one typed tuple a row, grouped by tick."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import pyarrow as pa


class ObjectRow(NamedTuple):
    """An object to publish, and when to take it back."""

    object_key: str
    publish_ms: int
    lon: float
    lat: float
    keywords: list[str]
    ttl_ms: int
    retract_ms: int | None


class SubscriptionRow(NamedTuple):
    """A subscription of a device."""

    device_id: str
    subscription_id: int
    keywords: list[str]
    k: int
    alpha: float
    similarity: str


class Fix(NamedTuple):
    """Where a device is at a tick."""

    device_id: str
    lon: float
    lat: float
    heading_deg: float
    speed_mps: float


def object_rows(table: pa.Table) -> list[ObjectRow]:
    """Return the objects in the order of their publication."""
    columns = [table.column(name).to_pylist() for name in ObjectRow._fields]
    return [ObjectRow(*row) for row in zip(*columns, strict=True)]


def subscription_rows(table: pa.Table) -> list[SubscriptionRow]:
    """Return the subscriptions."""
    columns = [table.column(name).to_pylist() for name in SubscriptionRow._fields]
    return [SubscriptionRow(*row) for row in zip(*columns, strict=True)]


def fixes_by_tick(table: pa.Table) -> list[list[Fix]]:
    """Return where every device is, tick by tick."""
    ticks = table.column("tick").to_pylist()
    columns = [table.column(name).to_pylist() for name in Fix._fields]
    found: list[list[Fix]] = [[] for _ in range(max(ticks, default=-1) + 1)]
    for tick, *row in zip(ticks, *columns, strict=True):
        found[tick].append(Fix(*row))
    return found


def by_tick(rows: list[ObjectRow], period_ms: int) -> dict[int, list[ObjectRow]]:
    """Group objects by the first tick at or after their publication."""
    found: dict[int, list[ObjectRow]] = defaultdict(list)
    for row in rows:
        found[-(-row.publish_ms // period_ms)].append(row)
    return found


def retractions_by_tick(rows: list[ObjectRow], period_ms: int) -> dict[int, list[ObjectRow]]:
    """Group objects by the first tick at or after the moment they are taken back."""
    found: dict[int, list[ObjectRow]] = defaultdict(list)
    for row in rows:
        if row.retract_ms is not None:
            found[-(-row.retract_ms // period_ms)].append(row)
    return found
