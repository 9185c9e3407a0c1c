"""Check the invariants of top-k subscriptions, from the definitions: O(subscriptions * objects)."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np

from engine.items import Item, items_of
from engine.objects import Objects
from engine.top_k.layout import ELLIPSE, NO_HOLDING, NO_PENDING, TFIDF, Row, Rows
from engine.top_k.tables import TopKTables
from index.contracts import InconsistentIndexError
from index.tables import SlotTable
from safe_region.scoring.formulas import length, text_distance

Pair = tuple[float, int]


class Ranked(Protocol):
    """Tables of subscriptions that are ranked over the objects."""

    subscriptions: SlotTable
    objects: Objects


def check_top_k(tables: TopKTables) -> None:
    """Verify every invariant.

    Raises
    ------
    InconsistentIndexError
        Names the invariant that does not hold.
    """
    awake = tables.indexes.check_holds(tables.subscriptions)
    rows, used = tables.subscriptions.rows, tables.subscriptions.used()
    room = int(rows["buffer_room"][awake].sum()) + tables.buffers.free_count()
    if room != tables.buffers.end or rows["buffer_room"][used].sum() != rows["buffer_room"][awake].sum():
        raise InconsistentIndexError("the buffers have a wrong count of free entries")
    _check_chains(tables)
    _check_pending(tables)
    items = items_of(tables.objects.table) if len(awake) > 0 else []
    for slot in awake.tolist():
        _check_buffer(tables, slot, items)


def _check_chains(tables: TopKTables) -> None:
    """Require that the result index is the inverse of the buffers."""
    holdings, objects = tables.buffers.holdings, tables.objects.table
    held = set()
    for slot in tables.subscriptions.used().tolist():
        row = tables.subscriptions.rows[slot]
        start = int(row["buffer_start"])
        held |= {(slot, place) for place in range(start, start + int(row["buffer_count"]))}
    chained = set()
    for slot in objects.used().tolist():
        previous, place = NO_HOLDING, int(objects.rows["first_holding"][slot])
        while place != NO_HOLDING:
            holding = holdings[place]
            if holding["object"] != slot or holding["previous"] != previous:
                raise InconsistentIndexError(f"the chain of object slot {slot} is broken at {place}")
            chained.add((int(holding["owner"]), place))
            previous, place = place, int(holding["next"])
    if chained != held:
        raise InconsistentIndexError("the result index is not the inverse of the buffers")


def _check_pending(tables: TopKTables) -> None:
    """Require that only awake subscriptions have pending objects, each once, and that no pair is lost."""
    rows, pending = tables.subscriptions.rows, tables.pending
    count = 0
    for slot in tables.subscriptions.used().tolist():
        ids = pending.ids(rows, slot)
        if len(ids) != len(set(ids)) or (ids and not rows["is_awake"][slot]):
            raise InconsistentIndexError(f"subscription {rows['id'][slot]} has invalid pending objects")
        count += len(ids)
    if count != len(pending) or count + pending.free_count() != pending.end:
        raise InconsistentIndexError("pending pairs are missing")


def ranked(tables: Ranked, slot: int, items: Iterable[Item]) -> Iterator[tuple[Pair, float]]:
    """Yield ((length at the anchor, id), r) for every live object that qualifies."""
    row = tables.subscriptions.rows[slot]
    similarity, weight_m = int(row["similarity"]), float(row["weight_m"])
    x_m, y_m = float(row["x_m"]), float(row["y_m"])
    wanted = frozenset(tables.subscriptions.keywords(slot).tolist())
    first_id = tables.objects.windows.first_ids[row["window"]]
    for item in items:
        common = wanted & item.keywords
        if common and item.id >= first_id:
            masses = (_mass(tables, row, one) for one in (common, wanted, item.keywords))
            r_m = weight_m * text_distance(similarity, *masses)
            yield (length(x_m - item.x_m, y_m - item.y_m, r_m), item.id), r_m


def _mass(tables: Ranked, row: Any, words: Collection[int]) -> float:  # noqa: ANN401 - a row
    """Return the norm of keywords: their number, or the sum of their squared weights."""
    if row["similarity"] != TFIDF:
        return len(words)
    return sum(float(tables.objects.weights.squares[word, row["index"] - 1]) for word in words)


def _check_buffer(tables: TopKTables, slot: int, items: Iterable[Item]) -> None:
    """Require that a buffer is correct for its region mode, and within its capacity."""
    row = tables.subscriptions.rows[slot]
    handle, k = int(row["id"]), int(row["k"])
    if not 0 <= int(row["buffer_count"]) <= int(row["buffer_room"]):
        raise InconsistentIndexError(f"the buffer of subscription {handle} exceeds its bound")
    start = int(row["buffer_start"])
    holdings = tables.buffers.holdings[start : start + int(row["buffer_count"])]
    ids = tables.objects.table.rows["id"][holdings["object"]]
    held = dict(zip(ids.tolist(), holdings["r_m"].tolist(), strict=True))
    best = sorted(ranked(tables, slot, items))
    reach = (float(row["reach_m"]), int(row["reach_id"]))
    if row["region"] == ELLIPSE:
        if row["first_pending"] != NO_PENDING or (len(held) < k and math.isfinite(reach[0])):
            return  # the result is unknown until the device reports its position
        expected = {pair[1]: r_m for pair, r_m in best[:k]}
    else:
        expected = {pair[1]: r_m for pair, r_m in best if pair < reach}
        needless = [
            one
            for one in expected
            if one not in held and _is_needless(tables, slot, one, expected[one], held)
        ]
        if needless and not row["is_pruned"]:
            raise InconsistentIndexError(
                f"subscription {handle} has omitted objects without recording it"
            )
        for one in needless:
            del expected[one]
    if held != expected:
        raise InconsistentIndexError(f"subscription {handle} does not hold exactly its objects")


def _is_needless(
    tables: TopKTables, slot: int, object_id: int, r_m: float, held: Mapping[int, float]
) -> bool:
    """Return whether k held objects are better than an object everywhere, and count for as long."""
    row = tables.subscriptions.rows[slot]
    one, *others = _items(tables, [object_id, *held])
    beating = 0
    for other, other_r_m in zip(others, held.values(), strict=True):
        apart_m = math.hypot(one["x_m"] - other["x_m"], one["y_m"] - other["y_m"])
        beating += bool(apart_m + other_r_m < r_m and _outlives(tables, row, other, one))
    return beating >= int(row["k"])


def _outlives(tables: TopKTables, subscription: Row, item: Row, other: Row) -> bool:
    """Return whether an object counts for at least as long as another."""
    duration_ms, count = tables.objects.windows.last(int(subscription["window"]))
    if duration_ms:
        ends = [min(int(one["expiry_ms"]), int(one["created_ms"]) + duration_ms) for one in (item, other)]
        return ends[0] >= ends[1]
    return bool(item["expiry_ms"] >= other["expiry_ms"] and (not count or item["id"] > other["id"]))


def _items(tables: TopKTables, ids: list[int]) -> Rows:
    """Return rows of objects."""
    table = tables.objects.table
    found: Rows = table.rows[table.slots(np.array(ids, dtype=np.int64))]
    return found
