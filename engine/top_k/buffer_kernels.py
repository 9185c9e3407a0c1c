"""Update buffers: insert and remove objects, and write the changes.

A kernel that changes buffers writes one row a change, grouped by subscription; the caller provides the
capacity for all of them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.change_kernels import emit
from engine.share_kernels import Texts, share_of
from engine.top_k.chain_kernels import hold, release
from engine.top_k.choice_kernels import Chosen
from engine.top_k.layout import NO_HOLDING, Row, Rows
from index.batches import Floats, Ints
from index.tables.id_map_kernels import Values, find
from index.tables.selection_kernels import drain, is_less, offer
from safe_region.jit import kernel, leaf
from safe_region.scoring.kernels import length

Slots = npt.NDArray[np.int32]


@kernel
def remove_objects(objects: Rows, subscriptions: Rows, holdings: Rows, gone: Slots, changes: Rows) -> int:
    """Remove objects from all buffers; write changes, object by object; return their number.

    If `changes` has no rows, none are written.
    """
    emitted = 0
    for i in range(gone.shape[0]):
        slot = gone[i]
        while objects[slot]["first_holding"] != NO_HOLDING:
            place = objects[slot]["first_holding"]
            if changes.shape[0]:
                handle = subscriptions[holdings[place]["owner"]]["id"]
                emitted = emit(changes, emitted, handle, objects[slot]["id"], 0.0, 1)
            release(objects, subscriptions, holdings, place)
    return emitted


@kernel
def release_in_window(
    objects: Rows, subscriptions: Rows, holdings: Rows, gone: Slots, window: int, changes: Rows
) -> int:
    """Remove objects from buffers of one window; write changes as `remove_objects` does."""
    emitted = 0
    for i in range(gone.shape[0]):
        slot = gone[i]
        place = objects[slot]["first_holding"]
        while place != NO_HOLDING:
            owner = holdings[place]["owner"]
            following = holdings[place]["next"]
            if subscriptions[owner]["window"] == window:
                if changes.shape[0]:
                    handle = subscriptions[owner]["id"]
                    emitted = emit(changes, emitted, handle, objects[slot]["id"], 0.0, 1)
                release(objects, subscriptions, holdings, place)
            place = following
    return emitted


@kernel
def count_holders(objects: Rows, holdings: Rows, slots: Slots) -> int:
    """Return the number of buffers that hold these objects, summed."""
    total = 0
    for i in range(slots.shape[0]):
        place = objects[slots[i]]["first_holding"]
        while place != NO_HOLDING:
            total += 1
            place = holdings[place]["next"]
    return total


@kernel
def clear(objects: Rows, subscriptions: Rows, holdings: Rows, slots: Slots) -> None:
    """Empty the buffers of these subscriptions."""
    for i in range(slots.shape[0]):
        start = subscriptions[slots[i]]["buffer_start"]
        while subscriptions[slots[i]]["buffer_count"] > 0:
            last = start + subscriptions[slots[i]]["buffer_count"] - 1
            release(objects, subscriptions, holdings, last)


@leaf
def _place_of(objects: Rows, holdings: Rows, start: int, end: int, object_id: int) -> int:
    """Return the holding of an object in a span, or NO_HOLDING."""
    for place in range(start, end):
        if objects[holdings[place]["object"]]["id"] == object_id:
            return place
    return NO_HOLDING


@leaf
def _release_others(
    objects: Rows, subscriptions: Rows, holdings: Rows, slot: int, best: Ints, changes: Rows, emitted: int
) -> int:
    """Remove objects from a buffer that are not among the best."""
    start = subscriptions[slot]["buffer_start"]
    for place in range(start + subscriptions[slot]["buffer_count"] - 1, start - 1, -1):
        object_id = objects[holdings[place]["object"]]["id"]
        is_best = False
        for j in range(best.shape[0]):
            if best[j] == object_id:
                is_best = True
                break
        if not is_best:
            emitted = emit(changes, emitted, subscriptions[slot]["id"], object_id, 0.0, 1)
            release(objects, subscriptions, holdings, place)
    return emitted


@leaf
def _remember(row: Row, learned: Row) -> None:
    row["extra"] = learned["extra"]
    row["anchored_ms"] = learned["anchored_ms"]
    row["speed_mps"] = learned["speed_mps"]
    row["arrivals"] = learned["arrivals"]
    row["held_s"] = learned["held_s"]
    row["ample_m"] = learned["ample_m"]
    row["is_pruned"] = learned["is_pruned"]


@kernel
def settle(
    objects: Rows,
    id_keys: Ints,
    id_values: Values,
    subscriptions: Rows,
    holdings: Rows,
    slots: Slots,
    learned: Rows,
    chosen: Chosen,
    changes: Rows,
) -> int:
    """Set a new anchor, reach and buffer of subscriptions; write the differences.

    `learned` are copies of their rows, as updated by the choice. O(k + b) squared a subscription, which
    for small numbers is faster than a hash.
    """
    emitted = 0
    for i in range(slots.shape[0]):
        slot = slots[i]
        row = subscriptions[slot]
        row["x_m"] = chosen.x_m[i]
        row["y_m"] = chosen.y_m[i]
        row["reach_m"] = chosen.reach_m[i]
        row["reach_id"] = chosen.reach_id[i]
        _remember(row, learned[i])
        row["is_awake"] = 1
        begin, end = chosen.offsets[i], chosen.offsets[i + 1]
        best = chosen.ids[begin:end]
        emitted = _release_others(objects, subscriptions, holdings, slot, best, changes, emitted)
        start = row["buffer_start"]
        kept_end = start + row["buffer_count"]
        for j in range(begin, end):
            place = _place_of(objects, holdings, start, kept_end, chosen.ids[j])
            if place != NO_HOLDING:
                holdings[place]["r_m"] = chosen.r_m[j]  # differs only with other weights
            else:
                object_slot = find(id_keys, id_values, chosen.ids[j])
                hold(objects, subscriptions, holdings, slot, object_slot, chosen.r_m[j])
                emitted = emit(changes, emitted, row["id"], chosen.ids[j], chosen.r_m[j], 0)
    return emitted


@kernel
def admit(
    objects: Rows,
    subscriptions: Rows,
    texts: Texts,
    holdings: Rows,
    slots: Slots,
    new_slots: Slots,
    changes: Rows,
    moved: Slots,
    lengths: Floats,
    ids: Ints,
    shares: Floats,
) -> tuple[int, int]:
    """Insert new objects into buffers; a buffer that exceeds its capacity gets a lower reach.

    `slots` and `new_slots` are pairs of a subscription and an object below its reach, grouped by
    subscription. `lengths`, `ids` and `shares` are scratch for k + extra + 1 pairs.

    Returns
    -------
    tuple of int
        The number of changes, and the number of subscriptions in `moved`: their reach is lower.
    """
    emitted = 0
    moved_count = 0
    begin = 0
    while begin < slots.shape[0]:
        slot = slots[begin]
        end = begin
        while end < slots.shape[0] and slots[end] == slot:
            end += 1
        room = subscriptions[slot]["buffer_room"]
        if subscriptions[slot]["buffer_count"] + end - begin > room:
            keep = subscriptions[slot]["k"] + subscriptions[slot]["extra"]
            _lower_reach(
                objects, subscriptions, texts, holdings, slot,
                new_slots[begin:end], lengths[: keep + 1], ids[: keep + 1], shares[: keep + 1],
            )  # fmt: skip
            moved[moved_count] = slot
            moved_count += 1
            emitted = _drop_beyond(objects, subscriptions, holdings, slot, changes, emitted)
        for i in range(begin, end):
            r_m = share_of(subscriptions[slot], objects[new_slots[i]], texts)
            if _is_below(objects[new_slots[i]], subscriptions[slot], r_m):
                hold(objects, subscriptions, holdings, slot, new_slots[i], r_m)
                subscriptions[slot]["arrivals"] += 1
                object_id = objects[new_slots[i]]["id"]
                emitted = emit(changes, emitted, subscriptions[slot]["id"], object_id, r_m, 0)
        begin = end
    return emitted, moved_count


@leaf
def _length_at_anchor(item: Row, subscription: Row, r_m: float) -> float:
    return length(subscription["x_m"] - item["x_m"], subscription["y_m"] - item["y_m"], r_m)


@leaf
def _is_below(item: Row, subscription: Row, r_m: float) -> bool:
    at_anchor = _length_at_anchor(item, subscription, r_m)
    return is_less(at_anchor, item["id"], subscription["reach_m"], subscription["reach_id"])


@leaf
def _lower_reach(
    objects: Rows,
    subscriptions: Rows,
    texts: Texts,
    holdings: Rows,
    slot: int,
    new_slots: Slots,
    lengths: Floats,
    ids: Ints,
    shares: Floats,
) -> None:
    """Set the reach to the best pair that is not to be kept, of the buffer and the new objects."""
    size = 0
    start = subscriptions[slot]["buffer_start"]
    for place in range(start, start + subscriptions[slot]["buffer_count"]):
        item = objects[holdings[place]["object"]]
        at_anchor = _length_at_anchor(item, subscriptions[slot], holdings[place]["r_m"])
        size = offer(lengths, ids, shares, size, at_anchor, item["id"], 0.0)
    for i in range(new_slots.shape[0]):
        item = objects[new_slots[i]]
        r_m = share_of(subscriptions[slot], item, texts)
        at_anchor = _length_at_anchor(item, subscriptions[slot], r_m)
        size = offer(lengths, ids, shares, size, at_anchor, item["id"], 0.0)
    drain(lengths, ids, shares, size)
    subscriptions[slot]["reach_m"] = lengths[size - 1]
    subscriptions[slot]["reach_id"] = ids[size - 1]


@leaf
def _drop_beyond(
    objects: Rows, subscriptions: Rows, holdings: Rows, slot: int, changes: Rows, emitted: int
) -> int:
    """Drop objects that are not below the lowered reach."""
    start = subscriptions[slot]["buffer_start"]
    for place in range(start + subscriptions[slot]["buffer_count"] - 1, start - 1, -1):
        item = objects[holdings[place]["object"]]
        if not _is_below(item, subscriptions[slot], holdings[place]["r_m"]):
            emitted = emit(changes, emitted, subscriptions[slot]["id"], item["id"], 0.0, 1)
            release(objects, subscriptions, holdings, place)
    return emitted
