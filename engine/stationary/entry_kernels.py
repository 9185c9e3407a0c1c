"""Manage entries: their spans, and their chains by object, which are the result index. O(1) each."""

from __future__ import annotations

import numpy as np

from engine.stationary.layout import NOTHING, ROOM_STEP, Rows, Slots
from index.batches import Ints
from index.tables.free_kernels import give_back_rows, take_rows
from safe_region.jit import kernel, leaf


@leaf
def hold(
    objects: Rows,
    heads: Slots,
    subscriptions: Rows,
    entries: Rows,
    owner: int,
    slot: int,
    length_m: float,
) -> int:
    """Insert an object into a buffer with free capacity; return its entry."""
    place = int(subscriptions[owner]["entry_start"] + subscriptions[owner]["entry_count"])
    subscriptions[owner]["entry_count"] += 1
    entry = entries[place]
    first = heads[slot]
    entry["length_m"] = length_m
    entry["object_id"] = objects[slot]["id"]
    entry["expiry_ms"] = objects[slot]["expiry_ms"]
    entry["object"] = slot
    entry["owner"] = owner
    entry["next"] = first
    entry["previous"] = NOTHING
    entry["dominators"] = 0
    entry["is_result"] = 0
    if first != NOTHING:
        entries[first]["previous"] = place
    heads[slot] = place
    return place


@leaf
def _point_at(heads: Slots, entries: Rows, place: int, to: int, back: int) -> None:
    """Set the links of an entry's neighbours in its chain to `to`, and back to `back`."""
    previous, following = entries[place]["previous"], entries[place]["next"]
    if previous != NOTHING:
        entries[previous]["next"] = to
    else:
        heads[entries[place]["object"]] = to
    if following != NOTHING:
        entries[following]["previous"] = back


@leaf
def _copy(entries: Rows, place: int, to: int) -> None:
    """Copy an entry."""
    source, target = entries[place], entries[to]
    target["length_m"] = source["length_m"]
    target["object_id"] = source["object_id"]
    target["expiry_ms"] = source["expiry_ms"]
    target["object"] = source["object"]
    target["owner"] = source["owner"]
    target["next"] = source["next"]
    target["previous"] = source["previous"]
    target["dominators"] = source["dominators"]
    target["is_result"] = source["is_result"]


@leaf
def release(heads: Slots, subscriptions: Rows, entries: Rows, place: int) -> None:
    """Remove an entry from its buffer; the buffer's last entry moves to its place."""
    owner = entries[place]["owner"]
    _point_at(heads, entries, place, entries[place]["next"], entries[place]["previous"])
    subscriptions[owner]["entry_count"] -= 1
    last = subscriptions[owner]["entry_start"] + subscriptions[owner]["entry_count"]
    if last != place:
        _point_at(heads, entries, last, place, place)
        _copy(entries, last, place)


@kernel
def clear(heads: Slots, subscriptions: Rows, entries: Rows, slots: Slots) -> None:
    """Empty the buffers of subscriptions."""
    for i in range(slots.shape[0]):
        start = subscriptions[slots[i]]["entry_start"]
        while subscriptions[slots[i]]["entry_count"] > 0:
            last = start + subscriptions[slots[i]]["entry_count"] - 1
            release(heads, subscriptions, entries, last)


@kernel
def give_back(subscriptions: Rows, entries: Rows, free: Slots, free_counts: Slots, slots: Slots) -> None:
    """Chain the spans of subscriptions with empty buffers as free."""
    for i in range(slots.shape[0]):
        row = subscriptions[slots[i]]
        if row["entry_room"] > 0:
            size = int(row["entry_room"]) // ROOM_STEP
            give_back_rows(entries["next"], free, size, int(row["entry_start"]))
            free_counts[size] += 1
            row["entry_room"] = 0


@kernel
def relocate(
    heads: Slots,
    subscriptions: Rows,
    entries: Rows,
    free: Slots,
    free_counts: Slots,
    slots: Slots,
    steps: Slots,
    ends: Ints,
) -> None:
    """Allocate spans of other sizes, in steps, to subscriptions, and move their entries.

    `free_counts` has the number of free spans of each size.
    """
    for i in range(slots.shape[0]):
        row = subscriptions[slots[i]]
        before, room = int(row["entry_start"]), int(row["entry_room"])
        size = int(steps[i])
        free_counts[size] -= free_counts[size] > 0
        start = take_rows(entries["next"], free, size, ends, 0, size * ROOM_STEP)
        for j in range(row["entry_count"]):
            _point_at(heads, entries, before + j, start + j, start + j)
            _copy(entries, before + j, start + j)
        if room > 0:
            give_back_rows(entries["next"], free, room // ROOM_STEP, before)
            free_counts[room // ROOM_STEP] += 1
        row["entry_start"] = start
        row["entry_room"] = size * ROOM_STEP


def free_count(entries: Rows, free: Slots) -> int:
    """Count the entries in free spans. O(spans)."""
    total = 0
    for step, head in enumerate(free.tolist()):
        place = head
        while place != NOTHING:
            total += step * ROOM_STEP
            place = int(entries["next"][place])
    return total


def new_free(count: int) -> Slots:
    """Return heads of chains of free spans, for `count` sizes."""
    return np.full(count, NOTHING, dtype=np.int32)
