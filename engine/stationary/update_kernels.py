"""Update buffers, and the results among their entries, as objects arrive and leave.

A buffer is a partial k-skyband (skype.txt section 6.1): all objects below the reach that fewer than k
others dominate. An object dominates another if it is better, less in (length, id), and outlives it: it
does not expire earlier, and in a window it is newer. (Of equal lengths the older one is better, since
ties go to the smaller id, so a newer one does not dominate it; definition 10 of the paper allows it.) A
buffer with a size instead (kmax) keeps all objects, drops the worst when there are more, and lowers its
reach.

An object that expires or leaves a window has dominated none of the others. An object that is removed
earlier may have been one of k that kept another out: then the buffer is rebuilt (`oldest_left_out`).

Operations: O(entries) an object that enters or leaves a buffer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.change_kernels import emit
from engine.layout import NO_WINDOW
from engine.share_kernels import Texts, share_of
from engine.stationary.entry_kernels import hold, release
from engine.stationary.layout import NOBODY, NOTHING, Row, Rows, Slots
from index.batches import Floats, Ints
from index.tables.id_map_kernels import Values, find
from index.tables.prefetch_kernels import prefetch
from index.tables.selection_kernels import is_less
from safe_region.jit import kernel, leaf
from safe_region.scoring.kernels import length

_AHEAD = 4
"""The memory for this many iterations later is prefetched."""

_LOST = -1
"""In `oldest_left_out`: an object that was left out may have to return."""


class Best(NamedTuple):
    """The best objects of subscriptions, row i at `offsets[i] : offsets[i + 1]`, and the new reaches.

    All of them are below the reach.
    """

    offsets: Ints
    ids: Ints
    expiries_ms: Ints
    lengths: Floats
    shares: Floats
    reach_m: Floats
    reach_id: Ints


@leaf
def _is_dominated_by(entry: Row, length_m: float, object_id: int) -> bool:
    """Return whether an entry is worse than a pair."""
    return is_less(length_m, object_id, entry["length_m"], entry["object_id"])


@leaf
def _outlives(row: Row, expiry_ms: int, object_id: int, other_expiry_ms: int, other_id: int) -> bool:
    """Return whether an object counts for at least as long as another."""
    return bool(expiry_ms >= other_expiry_ms and (row["window"] == NO_WINDOW or object_id > other_id))


@leaf
def _worst_result(entries: Rows, start: int, end: int) -> int:
    """Return the worst of the entries that are results, or NOTHING."""
    worst = NOTHING
    for place in range(start, end):
        if entries[place]["is_result"] and (
            worst == NOTHING
            or _is_dominated_by(entries[place], entries[worst]["length_m"], entries[worst]["object_id"])
        ):
            worst = place
    return worst


@leaf
def _best_other(entries: Rows, start: int, end: int) -> int:
    """Return the best of the entries that are not results, or NOTHING."""
    best = NOTHING
    for place in range(start, end):
        if not entries[place]["is_result"] and (
            best == NOTHING
            or is_less(
                entries[place]["length_m"],
                entries[place]["object_id"],
                entries[best]["length_m"],
                entries[best]["object_id"],
            )
        ):
            best = place
    return best


@leaf
def _evict_dominated(heads: Slots, subscriptions: Rows, entries: Rows, owner: int) -> None:
    """Remove entries that k newer ones dominate; the k best are never dominated."""
    row = subscriptions[owner]
    start = int(row["entry_start"])
    for place in range(start + int(row["entry_count"]) - 1, start - 1, -1):
        if entries[place]["dominators"] >= row["k"]:
            row["oldest_left_out"] = min(row["oldest_left_out"], entries[place]["object_id"])
            release(heads, subscriptions, entries, place)


@leaf
def _drop_worst(heads: Slots, subscriptions: Rows, entries: Rows, owner: int) -> None:
    """Drop the worst entry of a buffer, which is not a result: it becomes the reach."""
    row = subscriptions[owner]
    start = int(row["entry_start"])
    worst = start
    for place in range(start + 1, start + int(row["entry_count"])):
        if _is_dominated_by(entries[place], entries[worst]["length_m"], entries[worst]["object_id"]):
            worst = place
    row["reach_m"] = entries[worst]["length_m"]
    row["reach_id"] = entries[worst]["object_id"]
    release(heads, subscriptions, entries, worst)


@leaf
def _compare(
    row: Row,
    entries: Rows,
    item: Row,
    length_m: float,
    counts: bool,  # noqa: FBT001 - kernels know no keywords
) -> tuple[int, int, bool]:
    """Compare a new object with the buffer, and count there the entries that it dominates.

    Without `counts` domination does not count.

    Returns
    -------
    tuple
        The number of better entries, the number of those that dominate it, and whether any entry is now
        dominated by k.
    """
    better, dominators = 0, 0
    evicts = False
    start = int(row["entry_start"])
    for place in range(start, start + int(row["entry_count"])):
        other = entries[place]
        other_ms, other_id = other["expiry_ms"], other["object_id"]
        if not _is_dominated_by(other, length_m, item["id"]):
            better += 1
            dominators += counts and _outlives(row, other_ms, other_id, item["expiry_ms"], item["id"])
        elif counts and _outlives(row, item["expiry_ms"], item["id"], other_ms, other_id):
            other["dominators"] += 1
            evicts |= other["dominators"] >= row["k"]
    return better, dominators, evicts


@leaf
def _ask_for(subscriptions: Rows, entries: Rows, owners: Slots, at: int) -> None:
    """Prefetch the memory of a subscription and its buffer that will be needed soon."""
    if at + 2 * _AHEAD < owners.shape[0]:
        prefetch(subscriptions, owners[at + 2 * _AHEAD])
    if at + _AHEAD < owners.shape[0]:
        row = subscriptions[owners[at + _AHEAD]]
        for place in range(row["entry_start"], row["entry_start"] + row["entry_count"]):
            prefetch(entries, place)


@kernel
def admit(
    objects: Rows,
    heads: Slots,
    subscriptions: Rows,
    texts: Texts,
    entries: Rows,
    owners: Slots,
    slots: Slots,
    size_factor: int,
    changes: Rows,
    lowered: Slots,
) -> tuple[int, int]:
    """Insert new objects into buffers, by pairs of a subscription and an object.

    Pairs are grouped by subscription, in the order of ids. Buffers have the capacity for all of them.
    With a `size_factor` above 0 they hold at most this many times k objects, and nothing is left out as
    dominated.

    Returns
    -------
    tuple of int
        The number of changes of results, at most two a pair, and the number of subscriptions in
        `lowered`, which have a lower reach, perhaps several times, at most one a pair.
    """
    emitted = 0
    lowered_count = 0
    for i in range(owners.shape[0]):
        _ask_for(subscriptions, entries, owners, i)
        owner = owners[i]
        row = subscriptions[owner]
        item = objects[slots[i]]
        r_m = share_of(row, item, texts)
        length_m = length(row["x_m"] - item["x_m"], row["y_m"] - item["y_m"], r_m)
        if not is_less(length_m, item["id"], row["reach_m"], row["reach_id"]):
            continue
        start = int(row["entry_start"])
        end = start + int(row["entry_count"])
        better, dominators, evicts = _compare(row, entries, item, length_m, size_factor == 0)
        if dominators >= row["k"]:
            row["oldest_left_out"] = min(row["oldest_left_out"], item["id"])
            continue
        if better < row["k"]:
            if end - start >= row["k"]:
                worst = _worst_result(entries, start, end)
                entries[worst]["is_result"] = 0
                emitted = emit(changes, emitted, row["id"], entries[worst]["object_id"], 0.0, 1)
            emitted = emit(changes, emitted, row["id"], item["id"], r_m, 0)
        place = hold(objects, heads, subscriptions, entries, owner, slots[i], length_m)
        entries[place]["dominators"] = dominators
        entries[place]["is_result"] = better < row["k"]
        if evicts:
            _evict_dominated(heads, subscriptions, entries, owner)
        if size_factor > 0 and row["entry_count"] > size_factor * row["k"]:
            _drop_worst(heads, subscriptions, entries, owner)
            lowered[lowered_count] = owner
            lowered_count += 1
    return emitted, lowered_count


@leaf
def _may_keep_out(row: Row, object_id: int) -> bool:
    """Return whether an object may be one of those that keep another out of a buffer."""
    least = row["oldest_left_out"]
    return bool(least != NOBODY and (row["window"] == NO_WINDOW or least < object_id))


@leaf
def _give_way(row: Row, entries: Rows, place: int) -> None:
    """Remove an object that leaves early from the dominators of other entries."""
    gone = entries[place]
    if _may_keep_out(row, gone["object_id"]):
        row["oldest_left_out"] = _LOST
    start = int(row["entry_start"])
    for at in range(start, start + int(row["entry_count"])):
        other = entries[at]
        if (
            other["dominators"] > 0
            and _outlives(
                row, gone["expiry_ms"], gone["object_id"], other["expiry_ms"], other["object_id"]
            )
            and _is_dominated_by(other, gone["length_m"], gone["object_id"])
        ):
            other["dominators"] -= 1


@leaf
def _owners(heads: Slots, entries: Rows, slots: Slots, owners: Slots) -> int:
    """Write the owners of buffers with these objects, object by object; return their number."""
    count = 0
    for i in range(slots.shape[0]):
        place = heads[slots[i]]
        while place != NOTHING:
            owners[count] = entries[place]["owner"]
            count += 1
            place = entries[place]["next"]
    return count


@leaf
def _promote(
    objects: Rows,
    subscriptions: Rows,
    texts: Texts,
    entries: Rows,
    owner: int,
    changes: Rows,
    emitted: int,
) -> int:
    """Add the next best entries to a result, until it has k or there are no more."""
    row = subscriptions[owner]
    start = int(row["entry_start"])
    end = start + int(row["entry_count"])
    missing = int(row["k"])
    for place in range(start, end):
        missing -= entries[place]["is_result"]
    while missing > 0:
        best = _best_other(entries, start, end)
        if best == NOTHING:
            break
        entries[best]["is_result"] = 1
        item = objects[entries[best]["object"]]
        r_m = share_of(row, item, texts)
        emitted = emit(changes, emitted, row["id"], item["id"], r_m, 0)
        missing -= 1
    return emitted


@kernel
def remove(
    objects: Rows,
    heads: Slots,
    subscriptions: Rows,
    texts: Texts,
    entries: Rows,
    gone: Slots,
    window: int,
    emits: int,
    now_ms: int,
    changes: Rows,
    touched: Slots,
    shrunk: Slots,
) -> tuple[int, int, int]:
    """Remove objects from buffers, of one window only or, if `window` is NOTHING, of all.

    Drops are written if `emits` is set, replacements always. An object that has not expired by `now_ms`
    is removed early. `touched` gets the subscriptions with buffers that must be rebuilt, perhaps several
    times, and `shrunk` those that lose one of k results without a report.

    Returns
    -------
    tuple of int
        The number of changes, at most two an entry, and the numbers in `touched` and `shrunk`, at most
        one each.
    """
    emitted = 0
    owners = _owners(heads, entries, gone, touched)
    seen, touched_count, shrunk_count = 0, 0, 0
    for i in range(gone.shape[0]):
        is_early = window == NOTHING and objects[gone[i]]["expiry_ms"] > now_ms
        place = int(heads[gone[i]])
        while place != NOTHING:
            following = int(entries[place]["next"])
            _ask_for(subscriptions, entries, touched[:owners], seen)
            seen += 1
            owner = entries[place]["owner"]
            row = subscriptions[owner]
            if window == NOTHING or row["window"] == window:
                if is_early:
                    _give_way(row, entries, place)
                if entries[place]["is_result"] and emits:
                    emitted = emit(changes, emitted, row["id"], entries[place]["object_id"], 0.0, 1)
                elif entries[place]["is_result"] and row["entry_count"] >= row["k"]:
                    shrunk[shrunk_count] = owner
                    shrunk_count += 1
                release(heads, subscriptions, entries, place)
                touched[touched_count] = owner
                touched_count += 1
            place = following
    short_count = 0
    for i in range(touched_count):
        row = subscriptions[touched[i]]
        lacks = row["entry_count"] < row["k"] and not np.isinf(row["reach_m"])
        if lacks or row["oldest_left_out"] == _LOST:
            touched[short_count] = touched[i]
            short_count += 1
        else:
            emitted = _promote(objects, subscriptions, texts, entries, touched[i], changes, emitted)
    return emitted, short_count, shrunk_count


@kernel
def count_entries(heads: Slots, entries: Rows, slots: Slots) -> int:
    """Return the number of buffers that hold these objects, summed."""
    total = 0
    for i in range(slots.shape[0]):
        place = heads[slots[i]]
        while place != NOTHING:
            total += 1
            place = entries[place]["next"]
    return total


@leaf
def _empty(heads: Slots, subscriptions: Rows, entries: Rows, owner: int, kept: Ints) -> int:
    """Empty a buffer; write the ids of the results into `kept` and return their number."""
    start = int(subscriptions[owner]["entry_start"])
    results = 0
    for place in range(start + int(subscriptions[owner]["entry_count"]) - 1, start - 1, -1):
        if entries[place]["is_result"]:
            kept[results] = entries[place]["object_id"]
            results += 1
        release(heads, subscriptions, entries, place)
    return results


@leaf
def _dominator_count(row: Row, ids: Ints, expiries_ms: Ints, first: int, j: int) -> int:
    """Return the number of better objects, which come first, that outlive object j."""
    dominators = 0
    for other in range(first, j):
        dominators += _outlives(row, expiries_ms[other], ids[other], expiries_ms[j], ids[j])
    return dominators


@leaf
def _take_away(kept: Ints, count: int, object_id: int) -> bool:
    """Remove an id from an array; return whether it was there."""
    for other in range(count):
        if kept[other] == object_id:
            kept[other] = NOBODY
            return True
    return False


@kernel
def settle(
    objects: Rows,
    heads: Slots,
    id_keys: Ints,
    id_values: Values,
    subscriptions: Rows,
    entries: Rows,
    slots: Slots,
    best: Best,
    is_skyband: int,
    changes: Rows,
    kept: Ints,
) -> int:
    """Fill the buffers of subscriptions with their best objects; capacity has been allocated.

    Unless the buffer is a skyband, nothing is left out. `kept` is scratch for the largest k. Returns the
    number of changes of results.
    """
    emitted = 0
    for i in range(slots.shape[0]):
        owner = slots[i]
        row = subscriptions[owner]
        results = _empty(heads, subscriptions, entries, owner, kept)
        row["oldest_left_out"] = NOBODY
        row["reach_m"] = best.reach_m[i]
        row["reach_id"] = best.reach_id[i]
        first = int(best.offsets[i])
        for j in range(first, int(best.offsets[i + 1])):
            object_id = best.ids[j]
            dominators = _dominator_count(row, best.ids, best.expiries_ms, first, j) if is_skyband else 0
            if dominators >= row["k"]:
                row["oldest_left_out"] = min(row["oldest_left_out"], object_id)
                continue
            slot = find(id_keys, id_values, object_id)
            place = hold(objects, heads, subscriptions, entries, owner, slot, best.lengths[j])
            entries[place]["dominators"] = dominators
            if j - first < row["k"]:
                entries[place]["is_result"] = 1
                if not _take_away(kept, results, object_id):
                    emitted = emit(changes, emitted, row["id"], object_id, best.shares[j], 0)
        for other in range(results):
            if kept[other] != NOBODY:
                emitted = emit(changes, emitted, row["id"], kept[other], 0.0, 1)
    return emitted
