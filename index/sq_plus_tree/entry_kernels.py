"""Inserting, removing and moving subscriptions at each combination of their keywords that has a node.

Every operation on one subscription is a walk of at most VISITS_MAX steps, and each step needs bounded
space. A kernel that runs out of space returns OUT_OF_ROOM and continues at the same step when it is
called again.
"""

from __future__ import annotations

from index.batches import Floats, Ints
from index.sq_plus_tree import layout as L
from index.sq_plus_tree.cell_kernels import find_entry, insert_entry, remove_entry, rewrite_entry
from index.sq_plus_tree.closeness_kernels import combination_square, is_loose
from index.sq_plus_tree.layout import Forest, Row, Rows, Slots
from index.sq_plus_tree.threshold_kernels import has_entry
from index.sq_plus_tree.trie_kernels import add_member, drop_node, make_child, remove_member
from index.sq_plus_tree.walk_kernels import Walk, descend, make_next_node, next_node, start
from index.tables.free_kernels import give_back_rows
from index.tables.id_map_kernels import LOAD_MAX
from index.tables.quad_kernels import group_room
from safe_region.jit import kernel, leaf

DONE = 0
OUT_OF_ROOM = -1

NODES_SPARE = L.BUCKET_MAX * L.COMBINED_MAX + L.COMBINED_MAX + 1
"""Opening a node makes a child for each further keyword of each member."""
MEMBERS_SPARE = NODES_SPARE * 4 * L.BUCKET_MAX
"""A child may get all of them, in runs that double."""
GROUPS_SPARE = L.DEPTH_MAX + 2
"""One entry may split every cell on its path, and the root may be new."""
ENTRIES_SPARE = 16 * L.LEAF_MAX
"""The space for splits, except the longest leaf (see `entries_needed`)."""

_WALKED = 1 << 30
"""All visits of a subscription are done."""


def entries_needed(meta: Ints) -> int:
    """Return the number of entries that the array needs for the next visit."""
    return int(meta[L.ENTRY_END] + (4 << int(meta[L.ROOM_MAX])) + ENTRIES_SPARE)


_entries_needed = leaf(entries_needed)


@leaf
def _has_room(forest: Forest) -> bool:
    """Return whether all arrays have space for one more visit, or for opening one node."""
    meta = forest.meta
    return bool(
        meta[L.NODE_END] + NODES_SPARE <= forest.nodes.shape[0]
        and meta[L.NODE_COUNT] + NODES_SPARE <= forest.node_keys.shape[0] * LOAD_MAX
        and meta[L.MEMBER_END] + MEMBERS_SPARE <= forest.members.shape[0]
        and group_room(forest.cells, meta) >= GROUPS_SPARE
        and _entries_needed(meta) <= forest.entries.shape[0]
    )


@leaf
def _push(forest: Forest, node: int) -> None:
    forest.pending[forest.meta[L.PENDING_COUNT]] = node
    forest.meta[L.PENDING_COUNT] += 1


@leaf
def _pop(forest: Forest) -> int:
    forest.meta[L.PENDING_COUNT] -= 1
    return int(forest.pending[forest.meta[L.PENDING_COUNT]])


@leaf
def _join_bucket(forest: Forest, node: int, slot: int) -> None:
    add_member(forest, node, slot)
    if forest.nodes[node]["count"] == L.BUCKET_MAX + 1:
        _push(forest, node)


@leaf
def _open(forest: Forest, node: int) -> None:
    """Replace the list of a bucket by entries and children."""
    row = forest.nodes[node]
    first, count, room = int(row["start"]), int(row["count"]), int(row["room"])
    square = combination_square(forest, node)
    row["is_bucket"] = 0
    row["start"] = L.NOTHING
    row["room"] = 0
    for place in range(first, first + count):
        slot = int(forest.members[place])
        subscription = forest.subscriptions[slot]
        if has_entry(forest, subscription, square):
            insert_entry(forest, node, slot, subscription)
        if is_loose(subscription):
            continue
        begin = int(subscription["keyword_start"])
        while forest.pool[begin] < row["keyword"]:
            _join_bucket(forest, make_child(forest, node, int(forest.pool[begin])), slot)
            begin += 1
    give_back_rows(forest.members, forest.free_members, room, first)


@kernel
def insert_all(forest: Forest, walk: Walk, slots: Slots) -> int:
    """Insert subscriptions. Returns DONE or OUT_OF_ROOM."""
    meta = forest.meta
    for i in range(meta[L.DONE_ROWS], slots.shape[0]):
        meta[L.DONE_ROWS] = i
        if meta[L.DONE_VISITS] != _WALKED and not _walk_in(forest, walk, int(slots[i])):
            return OUT_OF_ROOM
        meta[L.DONE_VISITS] = _WALKED
        while meta[L.PENDING_COUNT] > 0:
            if not _has_room(forest):
                return OUT_OF_ROOM
            _open(forest, _pop(forest))
        meta[L.DONE_VISITS] = 0
    meta[L.DONE_ROWS] = 0
    return DONE


@leaf
def _walk_in(forest: Forest, walk: Walk, slot: int) -> bool:
    """Insert a subscription into the existing nodes; return whether the space was sufficient."""
    meta = forest.meta
    row = forest.subscriptions[slot]
    words = forest.pool[row["keyword_start"] : row["keyword_start"] + row["keyword_count"]]
    visit = 0
    start(walk, words)
    while True:
        is_new = visit >= meta[L.DONE_VISITS]
        if is_new and not _has_room(forest):
            meta[L.DONE_VISITS] = visit
            return False
        node = make_next_node(forest, walk, words)
        if node == L.NOTHING:
            return True
        visit += 1
        is_bucket = bool(forest.nodes[node]["is_bucket"])
        if is_new and is_bucket:
            _join_bucket(forest, node, slot)
        elif is_new:
            forest.nodes[node]["count"] += 1
            if has_entry(forest, row, combination_square(forest, node)):
                insert_entry(forest, node, slot, row)
        if not is_bucket and not is_loose(row):
            descend(walk, node)


@kernel
def remove_all(forest: Forest, walk: Walk, slots: Slots) -> int:
    """Remove subscriptions. Returns DONE or OUT_OF_ROOM."""
    meta = forest.meta
    for i in range(meta[L.DONE_ROWS], slots.shape[0]):
        slot = int(slots[i])
        row = forest.subscriptions[slot]
        words = forest.pool[row["keyword_start"] : row["keyword_start"] + row["keyword_count"]]
        loose = is_loose(row)
        visit = 0
        start(walk, words)
        while True:
            is_new = visit >= meta[L.DONE_VISITS]
            if is_new and not _has_room(forest):
                meta[L.DONE_ROWS] = i
                meta[L.DONE_VISITS] = visit
                return OUT_OF_ROOM
            node = next_node(forest, walk, words)
            if node == L.NOTHING:
                break
            visit += 1
            is_bucket = bool(forest.nodes[node]["is_bucket"])
            if is_new:
                if is_bucket:
                    remove_member(forest, node, slot)
                else:
                    _leave(forest, node, slot, row)
                if forest.nodes[node]["count"] == 0:
                    _push(forest, node)
            if not is_bucket and not loose:
                descend(walk, node)
        # The last visited node is the deepest.
        while meta[L.PENDING_COUNT] > 0:
            drop_node(forest, _pop(forest))
        meta[L.DONE_VISITS] = 0
    meta[L.DONE_ROWS] = 0
    return DONE


@leaf
def _take_out(forest: Forest, node: int, slot: int, row: Row) -> None:
    cell, entry = find_entry(forest, node, slot, row)
    remove_entry(forest, node, cell, entry)


@leaf
def _leave(forest: Forest, node: int, slot: int, row: Row) -> None:
    """Remove a subscription from an opened node."""
    if has_entry(forest, row, combination_square(forest, node)):
        _take_out(forest, node, slot, row)
    forest.nodes[node]["count"] -= 1


@kernel
def move_all(
    forest: Forest,
    walk: Walk,
    slots: Slots,
    x_m: Floats,
    y_m: Floats,
    radius_m: Floats,
    reach_m: Floats,
    reach_id: Ints,
    scratch: Rows,
) -> int:
    """Change the positions and reaches of subscriptions; a loose one stays loose, and vice versa.

    Returns DONE or OUT_OF_ROOM. `scratch` is one row.
    """
    meta = forest.meta
    after = scratch[0]
    for i in range(meta[L.DONE_ROWS], slots.shape[0]):
        slot = int(slots[i])
        row = forest.subscriptions[slot]
        scratch[0] = row
        after["x_m"] = x_m[i]
        after["y_m"] = y_m[i]
        after["radius_m"] = radius_m[i]
        after["reach_m"] = reach_m[i]
        after["reach_id"] = reach_id[i]
        words = forest.pool[row["keyword_start"] : row["keyword_start"] + row["keyword_count"]]
        loose = is_loose(row)
        visit = 0
        start(walk, words)
        while True:
            is_new = visit >= meta[L.DONE_VISITS]
            if is_new and not _has_room(forest):
                meta[L.DONE_ROWS] = i
                meta[L.DONE_VISITS] = visit
                return OUT_OF_ROOM
            node = next_node(forest, walk, words)
            if node == L.NOTHING:
                break
            visit += 1
            if forest.nodes[node]["is_bucket"]:
                continue
            if is_new:
                _move_in(forest, node, slot, row, after)
            if not loose:
                descend(walk, node)
        forest.subscriptions[slot] = scratch[0]
        meta[L.DONE_VISITS] = 0
    meta[L.DONE_ROWS] = 0
    return DONE


@leaf
def _move_in(forest: Forest, node: int, slot: int, before: Row, after: Row) -> None:
    """Change a subscription's entry in an opened node."""
    square = combination_square(forest, node)
    had = has_entry(forest, before, square)
    has = has_entry(forest, after, square)
    if had and has:
        rewrite_entry(forest, node, slot, before, after)
    elif had:
        _take_out(forest, node, slot, before)
    elif has:
        insert_entry(forest, node, slot, after)
