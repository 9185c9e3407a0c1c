"""Subscriptions in and out: an entry for each combination of their keywords.

The combinations of n keywords are the bit masks 1 to 2**n - 1; one of them has place mask - 1. A
subscription of more than COMBINED_MAX keywords has a place for each single one.
"""

from __future__ import annotations

import math

import numpy as np

from index.batches import Floats
from index.sq_plus_tree.cell_kernels import insert_entry, leaf_at, remove_entry
from index.sq_plus_tree.layout import (
    CELL_END,
    CHILDREN,
    COMBINED_MAX,
    DEPTH_MAX,
    DONE_PLACES,
    DONE_ROWS,
    ENTRY_END,
    GROUP_END,
    LEAF_MAX,
    NODE_COUNT,
    NODE_END,
    NOTHING,
    ROOM_MAX,
    TRIE_ROOT,
    Forest,
    Slots,
)
from index.sq_plus_tree.threshold_kernels import is_extreme, lower_path, raise_path
from index.sq_plus_tree.trie_kernels import make_child, make_group
from index.tables.id_map_kernels import LOAD_MAX
from safe_region.jit import kernel, leaf

DONE = 0
OUT_OF_ROOM = -1

CELLS_SPARE = CHILDREN * (DEPTH_MAX + 1)
"""One entry may split every cell on its way."""

SPARE = 0
"""An entry that belongs to nobody: where one is put together before it is inserted."""

_COORDINATE_ERROR = 2e-7
"""Relative error of float32 coordinates, with room: it is added to how far an entry reaches."""
_NEVER = -1.0


@leaf
def place_count(keyword_count: int) -> int:
    """How many entries a subscription has."""
    if keyword_count > COMBINED_MAX:
        return keyword_count
    return (1 << keyword_count) - 1


@leaf
def _common_of(keyword_count: int, place: int) -> int:
    """How many keywords the combination of a place has; 0 if what it finds is to be verified."""
    if keyword_count > COMBINED_MAX:
        return 0
    mask = place + 1
    count = 0
    while mask:
        count += mask & 1
        mask >>= 1
    return count


@leaf
def _fill(forest: Forest, entry: int, slot: int, common: int) -> None:
    """Write where an entry is and how far it reaches, from its subscription.

    An infinite reach is for single keywords only: they find all there is.
    """
    row = forest.subscriptions[slot]
    reach = row["reach_m"] + row["radius_m"]
    reach += _COORDINATE_ERROR * (abs(row["x_m"]) + abs(row["y_m"]))
    weight = row["weight_m"]
    if math.isinf(reach) and common > 1:
        reach = _NEVER
        weight = 0.0
    forest.entries[entry]["x_m"] = row["x_m"]
    forest.entries[entry]["y_m"] = row["y_m"]
    forest.entries[entry]["reach_m"] = reach
    forest.entries[entry]["weight_m"] = weight


@leaf
def _has_room(forest: Forest) -> bool:
    """Whether one more entry cannot run out of anything."""
    meta = forest.meta
    entries = meta[ENTRY_END] + (4 << meta[ROOM_MAX]) + 8 * LEAF_MAX
    return bool(
        meta[NODE_END] < forest.nodes.shape[0]
        and meta[NODE_COUNT] < forest.node_keys.shape[0] * LOAD_MAX
        and meta[GROUP_END] < forest.groups.shape[0]
        and meta[CELL_END] + CELLS_SPARE <= forest.cells.shape[0]
        and entries <= forest.entries.shape[0]
    )


@leaf
def _combination(forest: Forest, slot: int, place: int) -> int:
    """Return the trie node of a place, made if it is new. Places are asked for in increasing order."""
    row = forest.subscriptions[slot]
    start, count = row["keyword_start"], row["keyword_count"]
    if count > COMBINED_MAX:
        return make_child(forest, TRIE_ROOT, forest.pool[start + place])
    mask = place + 1
    highest = 0
    while mask >> (highest + 1):
        highest += 1
    before = TRIE_ROOT
    rest = mask ^ (1 << highest)
    # The rest is a smaller mask, so its node is there; walk to it again rather than remember it.
    bit = 0
    while rest:
        if rest & 1:
            before = make_child(forest, before, forest.pool[start + bit])
        rest >>= 1
        bit += 1
    return make_child(forest, before, forest.pool[start + highest])


@kernel
def insert_all(forest: Forest, slots: Slots) -> int:
    """Enter subscriptions. Returns DONE, or OUT_OF_ROOM; entered again, it goes on where it stopped."""
    meta = forest.meta
    for i in range(meta[DONE_ROWS], slots.shape[0]):
        slot = slots[i]
        size = forest.subscriptions[slot]["keyword_count"]
        for place in range(meta[DONE_PLACES], place_count(size)):
            if not _has_room(forest):
                meta[DONE_ROWS] = i
                meta[DONE_PLACES] = place
                return OUT_OF_ROOM
            common = _common_of(size, place)
            node = _combination(forest, slot, place)
            group = make_group(forest, node, size, common, forest.subscriptions[slot]["similarity"])
            _fill(forest, SPARE, slot, common)
            forest.entries[SPARE]["slot"] = slot
            forest.entries[SPARE]["place"] = place
            insert_entry(forest, group, SPARE)
        meta[DONE_PLACES] = 0
    meta[DONE_ROWS] = 0
    return DONE


@kernel
def remove_all(forest: Forest, slots: Slots) -> None:
    """Take subscriptions out."""
    for i in range(slots.shape[0]):
        row = forest.subscriptions[slots[i]]
        # Larger combinations first, so that what led to them goes last.
        for place in range(place_count(row["keyword_count"]) - 1, -1, -1):
            remove_entry(forest, forest.places[row["place_start"] + place])


@leaf
def _is_within(forest: Forest, cell: int, x_m: float, y_m: float) -> bool:
    """Whether a position, drawn into the root's square, lies in a cell."""
    x_m = min(max(x_m, forest.root[0] - forest.root[2]), forest.root[0] + forest.root[2])
    y_m = min(max(y_m, forest.root[1] - forest.root[2]), forest.root[1] + forest.root[2])
    row = forest.cells[cell]
    return bool(
        row["x_m"] - row["half_m"] <= x_m < row["x_m"] + row["half_m"]
        and row["y_m"] - row["half_m"] <= y_m < row["y_m"] + row["half_m"]
    )


@kernel
def move_all(
    forest: Forest, slots: Slots, x_m: Floats, y_m: Floats, radius_m: Floats, reach_m: Floats
) -> int:
    """Give subscriptions a new place and reach. Returns DONE, or OUT_OF_ROOM as `insert_all` does."""
    meta = forest.meta
    for i in range(meta[DONE_ROWS], slots.shape[0]):
        slot = slots[i]
        row = forest.subscriptions[slot]
        row["x_m"] = x_m[i]
        row["y_m"] = y_m[i]
        row["radius_m"] = radius_m[i]
        row["reach_m"] = reach_m[i]
        for place in range(meta[DONE_PLACES], place_count(row["keyword_count"])):
            if not _has_room(forest):
                meta[DONE_ROWS] = i
                meta[DONE_PLACES] = place
                return OUT_OF_ROOM
            _move_entry(forest, slot, place, forest.places[row["place_start"] + place])
        meta[DONE_PLACES] = 0
    meta[DONE_ROWS] = 0
    return DONE


@leaf
def _move_entry(forest: Forest, slot: int, place: int, entry: int) -> None:
    """Rewrite an entry where it is, or take it out and enter it elsewhere."""
    common = _common_of(forest.subscriptions[slot]["keyword_count"], place)
    cell = forest.entries[entry]["owner"]
    if cell < NOTHING:
        _fill(forest, entry, slot, common)
        return
    group = forest.cells[cell]["group"]
    x_m = float(np.float32(forest.subscriptions[slot]["x_m"]))
    y_m = float(np.float32(forest.subscriptions[slot]["y_m"]))
    if not _is_within(forest, cell, x_m, y_m) and (
        leaf_at(forest, forest.groups[group]["cell"], x_m, y_m) != cell
    ):
        # A group with cells has more entries than one: it outlives the removal.
        remove_entry(forest, entry)
        _fill(forest, SPARE, slot, common)
        forest.entries[SPARE]["slot"] = slot
        forest.entries[SPARE]["place"] = place
        insert_entry(forest, group, SPARE)
        return
    was_extreme = is_extreme(forest, cell, entry, group)
    _fill(forest, entry, slot, common)
    if was_extreme:
        lower_path(forest, cell, group)
    raise_path(forest, cell, entry, group)
