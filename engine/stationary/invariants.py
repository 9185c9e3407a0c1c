"""Check the invariants of stationary subscriptions, from the definitions."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from engine.items import Item, items_of
from engine.layout import NO_WINDOW
from engine.options import StationaryPolicy
from engine.stationary.entry_kernels import free_count
from engine.stationary.layout import NOTHING
from engine.stationary.tables import StationaryTables
from engine.top_k.invariants import ranked
from index.contracts import InconsistentIndexError

Pair = tuple[float, int]


def check_stationary(tables: StationaryTables, policy: StationaryPolicy) -> None:
    """Verify every invariant. O(subscriptions * objects).

    Raises
    ------
    InconsistentIndexError
        Names the invariant that does not hold.
    """
    awake = tables.indexes.check_holds(tables.subscriptions)
    rows, used = tables.subscriptions.rows, tables.subscriptions.used()
    room = int(rows["entry_room"][used].sum()) + free_count(tables.entries, tables.free)
    if room != tables.end:
        raise InconsistentIndexError("the buffers have a wrong count of free entries")
    _check_chains(tables)
    items = items_of(tables.objects.table) if len(awake) > 0 else []
    for slot in awake.tolist():
        _check_buffer(tables, slot, policy, items)


def _check_chains(tables: StationaryTables) -> None:
    """Require that the result index is the inverse of the buffers."""
    entries, objects = tables.entries, tables.objects.table
    held = set()
    for slot in tables.subscriptions.used().tolist():
        row = tables.subscriptions.rows[slot]
        start = int(row["entry_start"])
        held |= {(slot, place) for place in range(start, start + int(row["entry_count"]))}
    chained = set()
    for slot in objects.used().tolist():
        previous, place = NOTHING, int(tables.heads()[slot])
        while place != NOTHING:
            entry = entries[place]
            if entry["object"] != slot or entry["previous"] != previous:
                raise InconsistentIndexError(f"the chain of object slot {slot} is broken at {place}")
            if entry["object_id"] != objects.rows["id"][slot]:
                raise InconsistentIndexError(f"entry {place} has the id of another object")
            chained.add((int(entry["owner"]), place))
            previous, place = place, int(entry["next"])
    if chained != held:
        raise InconsistentIndexError("the result index is not the inverse of the buffers")


def _check_buffer(
    tables: StationaryTables, slot: int, policy: StationaryPolicy, items: Iterable[Item]
) -> None:
    """Require that a buffer is a partial k-skyband, or everything, and that its best k are the result."""
    row = tables.subscriptions.rows[slot]
    handle, k = int(row["id"]), int(row["k"])
    start = int(row["entry_start"])
    entries = tables.entries[start : start + int(row["entry_count"])]
    reach = (float(row["reach_m"]), int(row["reach_id"]))
    found = sorted(pair for pair, _ in ranked(tables, slot, items) if pair < reach)
    held = {
        (float(entry["length_m"]), int(entry["object_id"])): int(entry["dominators"]) for entry in entries
    }
    if policy is StationaryPolicy.KMAX:
        expected = dict.fromkeys(found, 0)
    else:
        dominators = {
            pair: sum(_outlives(tables, int(row["window"]), other[1], pair[1]) for other in found[:place])
            for place, pair in enumerate(found)
        }
        expected = {pair: count for pair, count in dominators.items() if count < k}
    # An object that was left out as dominated stays out until the buffer is rebuilt.
    if any(held.get(pair, count) != count for pair, count in expected.items()):
        raise InconsistentIndexError(f"subscription {handle} has wrong dominance counts")
    if held.keys() != expected.keys():
        raise InconsistentIndexError(f"subscription {handle} does not hold exactly its objects")
    if len(held) < k and not math.isinf(reach[0]):
        raise InconsistentIndexError(f"subscription {handle} holds too few objects")
    results = {int(entry["object_id"]) for entry in entries if entry["is_result"]}
    if results != {pair[1] for pair in found[:k]}:
        raise InconsistentIndexError(f"the result of subscription {handle} is not its k best")


def _outlives(tables: StationaryTables, window: int, object_id: int, other_id: int) -> bool:
    """Return whether an object counts for at least as long as another."""
    table = tables.objects.table
    ends = table.rows["expiry_ms"][table.slots(np.array([object_id, other_id], dtype=np.int64))]
    return bool(ends[0] >= ends[1]) and (window == NO_WINDOW or object_id > other_id)
