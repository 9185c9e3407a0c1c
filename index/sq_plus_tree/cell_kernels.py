"""Entries of an opened node: a few in one run, many in a quadtree with thresholds.

The entries of a leaf are in decreasing order of their bounds, so that a scan ends at the first entry
whose bound is too small. All quadtrees divide the same square; points beyond it belong to the cells at
its border.
"""

from __future__ import annotations

import numpy as np

from index.batches import KeywordIds
from index.sq_plus_tree import layout as L
from index.sq_plus_tree.closeness_kernels import combination_square
from index.sq_plus_tree.layout import Forest, Row
from index.sq_plus_tree.threshold_kernels import (
    clear_cell,
    is_extreme,
    lower_path,
    raise_cell,
    raise_path,
    write_reach,
)
from index.tables.free_kernels import give_back_rows, take_rows
from index.tables.quad_kernels import child_of, free_group, set_children, set_root, take_group
from index.tables.signature_kernels import bit_of
from safe_region.jit import leaf


@leaf
def _copy_entry(forest: Forest, source: int, target: int) -> None:
    forest.entries[target] = forest.entries[source]
    forest.entry_slots[target] = forest.entry_slots[source]


@leaf
def others_signature(forest: Forest, node: int, words: KeywordIds) -> int:
    """Return the signature of the keywords that are not in a combination."""
    signature = 0
    for i in range(words.shape[0]):
        above = node
        while above != L.TRIE_ROOT and forest.nodes[above]["keyword"] != words[i]:
            above = int(forest.nodes[above]["parent"])
        if above == L.TRIE_ROOT:
            signature |= 1 << bit_of(words[i])
    return signature


@leaf
def _write_place(forest: Forest, entry: int, square: float, subscription: Row) -> None:
    """Write the position and the reach of an entry."""
    row = forest.entries[entry]
    row["x_m"] = subscription["x_m"]
    row["y_m"] = subscription["y_m"]
    write_reach(forest, entry, square, subscription)


@leaf
def _write_entry(
    forest: Forest, entry: int, node: int, slot: int, square: float, subscription: Row
) -> None:
    begin = int(subscription["keyword_start"])
    words = forest.pool[begin : begin + int(subscription["keyword_count"])]
    forest.entries[entry]["others"] = others_signature(forest, node, words)
    forest.entry_slots[entry] = slot
    _write_place(forest, entry, square, subscription)


@leaf
def _sort_last(forest: Forest, start: int, last: int) -> int:
    """Move the last entry of a run to its place in the order of bounds; return that place."""
    bound = forest.entries[last]["bound_m"]
    if last == start or forest.entries[last - 1]["bound_m"] >= bound:
        return last
    _copy_entry(forest, last, L.SPARE)
    place = last
    while place > start and forest.entries[place - 1]["bound_m"] < bound:
        _copy_entry(forest, place - 1, place)
        place -= 1
    _copy_entry(forest, L.SPARE, place)
    return place


@leaf
def _close_gap(forest: Forest, gap: int, last: int) -> None:
    """Move the entries behind a place forward by one."""
    for place in range(gap, last):
        _copy_entry(forest, place + 1, place)


@leaf
def _place_at_end(forest: Forest, start: int, count: int, room: int) -> tuple[int, int]:
    """Return the start and the size, as a binary logarithm, of a run with space for one more entry."""
    if count == 0:
        return take_rows(forest.entry_slots, forest.free_entries, 0, forest.meta, L.ENTRY_END, 1), 0
    if count < 1 << room:
        return start, room
    wider = take_rows(
        forest.entry_slots, forest.free_entries, room + 1, forest.meta, L.ENTRY_END, 2 << room
    )
    for i in range(count):
        _copy_entry(forest, start + i, wider + i)
    give_back_rows(forest.entry_slots, forest.free_entries, room, start)
    forest.meta[L.ROOM_MAX] = max(forest.meta[L.ROOM_MAX], room + 1)
    return wider, room + 1


@leaf
def _append(forest: Forest, cell: int) -> int:
    """Allocate space for one more entry in a leaf; return its place."""
    row = forest.cells[cell]
    count = int(row["count"])
    start, room = _place_at_end(forest, int(row["start"]), count, int(row["room"]))
    row["start"] = start
    row["room"] = room
    row["count"] = count + 1
    return start + count


@leaf
def _empty_leaf(forest: Forest, cell: int, node: int) -> None:
    row = forest.cells[cell]
    row["node"] = node
    row["start"] = L.NOTHING
    row["count"] = 0
    row["room"] = 0
    clear_cell(forest, cell)


@leaf
def leaf_at(forest: Forest, cell: int, x_m: float, y_m: float) -> int:
    """Return the leaf below a cell that contains a position."""
    while forest.cells[cell]["first_child"] != L.NOTHING:
        cell = child_of(forest.cells, cell, x_m, y_m)
    return cell


@leaf
def _split(forest: Forest, cell: int, square: float) -> None:
    """Divide a leaf among four children."""
    first = take_group(forest.cells, forest.meta)
    set_children(forest.cells, cell, first)
    row = forest.cells[cell]
    for child in range(first, first + L.CHILDREN):
        _empty_leaf(forest, child, int(row["node"]))
    start = int(row["start"])
    for entry in range(start, start + int(row["count"])):
        x_m, y_m = float(forest.entries[entry]["x_m"]), float(forest.entries[entry]["y_m"])
        child = child_of(forest.cells, cell, x_m, y_m)
        place = _append(forest, child)
        _copy_entry(forest, entry, place)
        raise_cell(forest, child, place, square)
    give_back_rows(forest.entry_slots, forest.free_entries, int(row["room"]), start)
    row["start"] = L.NOTHING
    row["count"] = 0
    row["room"] = 0


@leaf
def _grow_cells(forest: Forest, node: int, square: float) -> None:
    """Build a quadtree of the entries of a node."""
    cell = take_group(forest.cells, forest.meta)
    set_root(forest.cells, cell, forest.root[0], forest.root[1], forest.root[2])
    _empty_leaf(forest, cell, node)
    row = forest.nodes[node]
    forest.cells[cell]["start"] = row["start"]
    forest.cells[cell]["count"] = row["entry_count"]
    forest.cells[cell]["room"] = row["room"]
    start = int(row["start"])
    for entry in range(start, start + int(row["entry_count"])):
        raise_cell(forest, cell, _sort_last(forest, start, entry), square)
    row["cell"] = cell
    row["start"] = L.NOTHING
    row["room"] = 0


@leaf
def insert_entry(forest: Forest, node: int, slot: int, subscription: Row) -> None:
    """Insert a subscription into a node."""
    row = forest.nodes[node]
    square = combination_square(forest, node)
    if row["cell"] == L.NOTHING and row["entry_count"] == L.SMALL_MAX:
        _grow_cells(forest, node, square)
    count = int(row["entry_count"])
    row["entry_count"] = count + 1
    if row["cell"] == L.NOTHING:
        start, room = _place_at_end(forest, int(row["start"]), count, int(row["room"]))
        row["start"] = start
        row["room"] = room
        _write_entry(forest, start + count, node, slot, square, subscription)
        return
    # The rounded position selects the cells, since a search for the entry starts from it.
    x_m, y_m = float(np.float32(subscription["x_m"])), float(np.float32(subscription["y_m"]))
    cell = leaf_at(forest, int(row["cell"]), x_m, y_m)
    place = _append(forest, cell)
    _write_entry(forest, place, node, slot, square, subscription)
    place = _sort_last(forest, int(forest.cells[cell]["start"]), place)
    raise_path(forest, cell, place, square)
    while forest.cells[cell]["count"] > L.LEAF_MAX and forest.cells[cell]["depth"] < L.DEPTH_MAX:
        _split(forest, cell, square)
        cell = leaf_at(forest, cell, x_m, y_m)


@leaf
def find_entry(forest: Forest, node: int, slot: int, subscription: Row) -> tuple[int, int]:
    """Return the leaf (NOTHING without cells) and the place of a subscription's entry."""
    row = forest.nodes[node]
    cell = int(row["cell"])
    if cell == L.NOTHING:
        place = int(row["start"])
    else:
        x_m, y_m = float(np.float32(subscription["x_m"])), float(np.float32(subscription["y_m"]))
        cell = leaf_at(forest, cell, x_m, y_m)
        place = int(forest.cells[cell]["start"])
    while forest.entry_slots[place] != slot:
        place += 1
    return cell, place


@leaf
def remove_entry(forest: Forest, node: int, cell: int, entry: int) -> None:
    """Remove an entry from a node."""
    row = forest.nodes[node]
    row["entry_count"] -= 1
    if cell == L.NOTHING:
        last = int(row["start"] + row["entry_count"])
        if last != entry:
            _copy_entry(forest, last, entry)
        if row["entry_count"] == 0:
            _release_entries(forest, node)
        return
    square = combination_square(forest, node)
    was_extreme = is_extreme(forest, cell, entry, square)
    leaf_row = forest.cells[cell]
    leaf_row["count"] -= 1
    _close_gap(forest, entry, int(leaf_row["start"] + leaf_row["count"]))
    if leaf_row["count"] == 0:
        give_back_rows(
            forest.entry_slots, forest.free_entries, int(leaf_row["room"]), int(leaf_row["start"])
        )
        leaf_row["start"] = L.NOTHING
        leaf_row["room"] = 0
    if was_extreme:
        lower_path(forest, cell, square)
    _merge_up(forest, node, int(leaf_row["parent"]))


@leaf
def _release_entries(forest: Forest, node: int) -> None:
    row = forest.nodes[node]
    give_back_rows(forest.entry_slots, forest.free_entries, int(row["room"]), int(row["start"]))
    row["start"] = L.NOTHING
    row["room"] = 0


@leaf
def _merge_up(forest: Forest, node: int, cell: int) -> None:
    """Turn cells with few entries into leaves, bottom up; a small root becomes a node without cells."""
    while cell != L.NOTHING:
        first = int(forest.cells[cell]["first_child"])
        total = 0
        for child in range(first, first + L.CHILDREN):
            if forest.cells[child]["first_child"] != L.NOTHING:
                return
            total += int(forest.cells[child]["count"])
        if total > L.LEAF_MAX // 2:
            return
        forest.cells[cell]["first_child"] = L.NOTHING
        for child in range(first, first + L.CHILDREN):
            row = forest.cells[child]
            for entry in range(int(row["start"]), int(row["start"] + row["count"])):
                place = _append(forest, cell)
                _copy_entry(forest, entry, place)
                _sort_last(forest, int(forest.cells[cell]["start"]), place)
            if row["count"] > 0:
                give_back_rows(
                    forest.entry_slots, forest.free_entries, int(row["room"]), int(row["start"])
                )
        free_group(forest.cells, forest.meta, first)
        cell = int(forest.cells[cell]["parent"])
    _shed_cells(forest, node)


@leaf
def _shed_cells(forest: Forest, node: int) -> None:
    """Remove the cells of a node whose root is a leaf with few entries."""
    row = forest.nodes[node]
    root = int(row["cell"])
    if forest.cells[root]["first_child"] != L.NOTHING or row["entry_count"] > L.SMALL_MAX // 2:
        return
    row["cell"] = L.NOTHING
    row["start"] = forest.cells[root]["start"]
    row["room"] = forest.cells[root]["room"]
    free_group(forest.cells, forest.meta, root)


@leaf
def rewrite_entry(forest: Forest, node: int, slot: int, before: Row, after: Row) -> None:
    """Change the position and reach of an entry: in place, if it stays in its leaf."""
    square = combination_square(forest, node)
    cell, entry = find_entry(forest, node, slot, before)
    if cell == L.NOTHING:
        _write_place(forest, entry, square, after)
        return
    x_m, y_m = float(np.float32(after["x_m"])), float(np.float32(after["y_m"]))
    row = forest.cells[cell]
    stays = row["x_min"] <= x_m < row["x_max"] and row["y_min"] <= y_m < row["y_max"]
    if not stays:
        remove_entry(forest, node, cell, entry)
        insert_entry(forest, node, slot, after)
        return
    was_extreme = is_extreme(forest, cell, entry, square)
    start = int(row["start"])
    last = start + int(row["count"]) - 1
    _copy_entry(forest, entry, L.SPARE)
    _close_gap(forest, entry, last)
    _copy_entry(forest, L.SPARE, last)
    _write_place(forest, last, square, after)
    entry = _sort_last(forest, start, last)
    if was_extreme:
        lower_path(forest, cell, square)
    raise_path(forest, cell, entry, square)
