"""Prune objects that k longer-lived others dominate everywhere: devices do not need them.

An object j can be left out of a buffer if k objects in it are nearer at every place of the device, and do
not end earlier. For o_i and o_j, with constant parts r_i and r_j of their lengths,

    |o_i o_j| + r_i < r_j    hence    |p o_i| + r_i < |p o_j| + r_j    at every place p,

and o_i does not cease to count before o_j does. If o_i is left out itself, the k objects that dominate it
dominate o_j, too. When one of the k is removed early, the pruned objects are searched again (`restore`).

It is the k-skyband of skype.txt section 6.1, for devices that may be anywhere.
Cost: O(k + b) an object.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.change_kernels import emit
from engine.layout import NO_WINDOW
from engine.share_kernels import Texts, share_of
from engine.top_k.chain_kernels import hold
from engine.top_k.choice_kernels import STRICT, Chosen
from engine.top_k.layout import ELLIPSE, Row, Rows
from index.batches import Floats, Ints
from index.tables.id_map_kernels import Values, find
from safe_region.jit import kernel, leaf
from safe_region.scoring.kernels import length

Slots = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]

_MARGIN_M = 0.001
"""Rounding errors of lengths are far smaller."""


@leaf
def _outlives(window: int, durations: Ints, item: Row, other: Row) -> bool:
    """Return whether an object counts for at least as long as another.

    `durations` are those of windows, in ms.
    """
    end, other_end = int(item["expiry_ms"]), int(other["expiry_ms"])
    if window == NO_WINDOW:
        return end >= other_end
    duration = int(durations[window])
    if duration == 0:
        return end >= other_end and bool(item["id"] > other["id"])
    end = min(end, int(item["created_ms"]) + duration)
    return end >= min(other_end, int(other["created_ms"]) + duration)


@leaf
def _dominates(window: int, durations: Ints, item: Row, r_m: float, other: Row, other_r_m: float) -> bool:
    """Return whether an object is better than another everywhere, for as long as the other counts."""
    if r_m >= other_r_m or not _outlives(window, durations, item, other):
        return False
    apart_m = length(item["x_m"] - other["x_m"], item["y_m"] - other["y_m"], r_m)
    return bool(apart_m + _MARGIN_M < other_r_m * STRICT)


@kernel
def prune(
    objects: Rows,
    id_keys: Ints,
    id_values: Values,
    rows: Rows,
    durations: Ints,
    chosen: Chosen,
    slots: Slots,
) -> int:
    """Prune chosen buffers; return the number of objects that are left in all of them.

    `rows` are copies of the rows of subscriptions, where `is_pruned` is set; `slots` is scratch for a
    slot for each object. The best come first, and an object comes after those that dominate it.
    """
    end = 0
    first = 0
    for i in range(rows.shape[0]):
        row = rows[i]
        last = chosen.offsets[i + 1]
        begin = end
        row["is_pruned"] = 0
        for j in range(first, last):
            slot = find(id_keys, id_values, chosen.ids[j])
            dominators = 0
            if end - begin >= row["k"] and row["region"] != ELLIPSE:
                for other in range(begin, end):
                    item = objects[slots[other]]
                    dominators += _dominates(
                        row["window"], durations, item, chosen.r_m[other], objects[slot], chosen.r_m[j]
                    )
            if dominators >= row["k"]:
                row["is_pruned"] = 1
                continue
            chosen.ids[end] = chosen.ids[j]
            chosen.r_m[end] = chosen.r_m[j]
            slots[end] = slot
            end += 1
        first = last
        chosen.offsets[i + 1] = end
    return end


@kernel
def undominated(
    objects: Rows,
    subscriptions: Rows,
    texts: Texts,
    durations: Ints,
    holdings: Rows,
    owners: Slots,
    slots: Slots,
    kept: Flags,
) -> None:
    """Write to `kept` which new objects buffers need.

    `owners` and `slots` are pairs of a subscription and an object below its reach.
    """
    for i in range(owners.shape[0]):
        row = subscriptions[owners[i]]
        item = objects[slots[i]]
        start = row["buffer_start"]
        kept[i] = True
        if row["buffer_count"] < row["k"]:
            continue
        r_m = share_of(row, item, texts)
        dominators = 0
        for place in range(start, start + row["buffer_count"]):
            held = holdings[place]
            other = objects[held["object"]]
            dominators += _dominates(row["window"], durations, other, held["r_m"], item, r_m)
        if dominators >= row["k"]:
            kept[i] = False
            row["is_pruned"] = 1


@kernel
def restore(
    objects: Rows,
    id_keys: Ints,
    id_values: Values,
    subscriptions: Rows,
    durations: Ints,
    holdings: Rows,
    owners: Slots,
    offsets: Ints,
    ids: Ints,
    shares: Floats,
    changes: Rows,
) -> int:
    """Insert objects below the reach that k others do not dominate; return the number of changes.

    Row i has objects below its reach at `offsets[i] : offsets[i + 1]`, the best first. There is capacity
    for those that it does not hold.
    """
    emitted = 0
    for i in range(owners.shape[0]):
        row = subscriptions[owners[i]]
        row["is_pruned"] = 0
        for j in range(offsets[i], offsets[i + 1]):
            slot = find(id_keys, id_values, ids[j])
            start = row["buffer_start"]
            dominators = 0
            is_held = False
            for place in range(start, start + row["buffer_count"]):
                held = holdings[place]
                other = objects[held["object"]]
                is_held |= held["object"] == slot
                dominators += _dominates(
                    row["window"], durations, other, held["r_m"], objects[slot], shares[j]
                )
            if is_held:
                continue
            if dominators >= row["k"]:
                row["is_pruned"] = 1
                continue
            hold(objects, subscriptions, holdings, owners[i], slot, shares[j])
            emitted = emit(changes, emitted, row["id"], ids[j], shares[j], 0)
    return emitted


@kernel
def pruned_holders(objects: Rows, subscriptions: Rows, holdings: Rows, gone: Slots, found: Slots) -> int:
    """Write the subscriptions with pruned buffers that hold one of these objects; return their number.

    Each may be written several times.
    """
    count = 0
    for i in range(gone.shape[0]):
        place = objects[gone[i]]["first_holding"]
        while place >= 0:
            owner = holdings[place]["owner"]
            if subscriptions[owner]["is_pruned"]:
                found[count] = owner
                count += 1
            place = holdings[place]["next"]
    return count
