"""Quadtrees of IQF+: leaves are runs of variable size.

A full leaf splits, unless its cell is the smallest possible: then its run grows.

Operations: insert and take_out O(depth + LEAF_MAX), gather O(entries). `insert` returns a negative status
if space is lacking; its changes up to then are harmless, and it may be called again with the same entry.
"""

from __future__ import annotations

from index.iqf_plus.layout import Lists
from index.iqf_plus.mark_kernels import MANY, keyword_count_of, norm_code_of
from index.iqf_plus.node_kernels import (
    DONE,
    HALF_MIN_M,
    INNER,
    NODES_FULL,
    RUNS_FULL,
    child_of,
    free_group,
    has_group,
    holds,
    rise,
    set_children,
    take_group,
)
from index.tables.norm_kernels import LARGEST
from index.tables.run_kernels import (
    NO_RUN,
    RUN_END,
    RUN_LEAST,
    class_of,
    free_run,
    has_run,
    is_wasteful,
    moved_run,
    take_run,
)
from safe_region.jit import leaf

LEAF_MAX = 32
"""Entries of a leaf that may split: 640 bytes."""

SPLIT_ROOM = 8 * LEAF_MAX
"""The maximum number of entries that a split allocates."""

MERGE_MAX = 16
"""Children with no more entries than this together merge."""

NO_ENTRY = -5
"""A status: an object has no entry where its keywords and its position lead."""


@leaf
def set_entry(lists: Lists, place: int, x_m: float, y_m: float, slot: int, mark: int) -> None:
    """Write an entry."""
    entry = lists.runs.records[place]
    entry["x_m"] = x_m
    entry["y_m"] = y_m
    entry["slot"] = slot
    entry["mark"] = mark


@leaf
def _move_run(lists: Lists, node: int, size_class: int) -> None:
    """Move a leaf to a run of another size; the caller has verified that one is free."""
    row = lists.nodes[node]
    old_class = int(row["size_class"])
    row["below"] = moved_run(lists.runs, int(row["below"]), int(row["count"]), old_class, size_class)
    row["size_class"] = size_class


@leaf
def _widen(lists: Lists, node: int) -> int:
    """Ensure that a leaf has space for one more entry; return a status."""
    row = lists.nodes[node]
    count = int(row["count"])
    size_class = int(row["size_class"])
    if size_class != NO_RUN and count < RUN_LEAST << size_class:
        return DONE
    if not has_run(lists.runs, size_class + 1):
        return RUNS_FULL
    _move_run(lists, node, size_class + 1)
    return DONE


@leaf
def _lower(lists: Lists, node: int, mark: int) -> None:
    """Lower the bounds of a node to cover one more object."""
    row = lists.nodes[node]
    row["keyword_min"] = min(int(row["keyword_min"]), keyword_count_of(mark))
    row["norm_min"] = min(int(row["norm_min"]), norm_code_of(mark))


@leaf
def _append(lists: Lists, node: int, x_m: float, y_m: float, slot: int, mark: int) -> int:
    """Append an entry to a leaf; return a status."""
    status = _widen(lists, node)
    if status != DONE:
        return status
    row = lists.nodes[node]
    set_entry(lists, int(row["below"]) + int(row["count"]), x_m, y_m, slot, mark)
    row["count"] += 1
    _lower(lists, node, mark)
    return DONE


@leaf
def _split(lists: Lists, node: int) -> int:
    """Split a full leaf into four children and distribute its entries; return a status."""
    row = lists.nodes[node]
    records = lists.runs.records
    start = int(row["below"])
    size_class = int(row["size_class"])
    count = int(row["count"])
    if lists.runs.ends[RUN_END] + SPLIT_ROOM > records.shape[0]:
        return RUNS_FULL
    if not has_group(lists):
        return NODES_FULL
    set_children(lists, node, take_group(lists))
    for place in range(start, start + count):
        entry = records[place]
        child = child_of(lists, node, float(entry["x_m"]), float(entry["y_m"]))
        slot = int(entry["slot"])
        _append(lists, child, float(entry["x_m"]), float(entry["y_m"]), slot, int(entry["mark"]))
    free_run(lists.runs, start, size_class)
    return DONE


@leaf
def insert(lists: Lists, root: int, x_m: float, y_m: float, slot: int, mark: int) -> int:
    """Insert an entry into a tree; return a status."""
    while not holds(lists, root, x_m, y_m):
        status = rise(lists, root, x_m, y_m)
        if status != DONE:
            return status
    node = root
    while True:
        row = lists.nodes[node]
        if row["count"] >= LEAF_MAX and row["half_m"] > HALF_MIN_M:
            status = _split(lists, node)
            if status != DONE:
                return status
        if row["count"] != INNER:
            return _append(lists, node, x_m, y_m, slot, mark)
        _lower(lists, node, mark)
        node = child_of(lists, node, x_m, y_m)


@leaf
def place_of(lists: Lists, start: int, count: int, slot: int) -> int:
    """Return the place of an object's entry in a run, or NO_ENTRY."""
    records = lists.runs.records
    for place in range(start, start + count):
        if records[place]["slot"] == slot:
            return place
    return NO_ENTRY


@leaf
def _summarize(lists: Lists, node: int) -> None:
    """Recompute the bounds of a node exactly."""
    row = lists.nodes[node]
    row["keyword_min"] = MANY
    row["norm_min"] = LARGEST
    below = int(row["below"])
    if row["count"] == INNER:
        for child in range(below, below + 4):
            other = lists.nodes[child]
            row["keyword_min"] = min(int(row["keyword_min"]), int(other["keyword_min"]))
            row["norm_min"] = min(int(row["norm_min"]), int(other["norm_min"]))
    else:
        for place in range(below, below + row["count"]):
            _lower(lists, node, int(lists.runs.records[place]["mark"]))


@leaf
def _narrow(lists: Lists, node: int) -> None:
    """Move a leaf that needs less space to a smaller run, if one is free."""
    row = lists.nodes[node]
    count = int(row["count"])
    size_class = int(row["size_class"])
    if count == 0:
        free_run(lists.runs, int(row["below"]), size_class)
        row["size_class"] = NO_RUN
    elif is_wasteful(lists.runs, count, size_class):
        _move_run(lists, node, size_class - 1)


@leaf
def _merge(lists: Lists, node: int) -> bool:
    """Turn a node whose children are sparse leaves into a leaf; return whether it is one now."""
    row = lists.nodes[node]
    first = int(row["below"])
    total = 0
    for child in range(first, first + 4):
        count = int(lists.nodes[child]["count"])
        if count == INNER:
            return False
        total += count
    size_class = class_of(total)
    if total > MERGE_MAX or not has_run(lists.runs, size_class):
        return False
    row["count"] = 0
    start = take_run(lists.runs, size_class)
    records = lists.runs.records
    for child in range(first, first + 4):
        old = lists.nodes[child]
        for place in range(old["below"], old["below"] + old["count"]):
            records[start + row["count"]] = records[place]
            row["count"] += 1
        if old["size_class"] != NO_RUN:
            free_run(lists.runs, int(old["below"]), int(old["size_class"]))
    free_group(lists, first)
    row["below"] = start
    row["size_class"] = size_class
    return True


@leaf
def take_out(lists: Lists, root: int, x_m: float, y_m: float, slot: int) -> int:
    """Remove the entry of an object from a tree; return DONE, or NO_ENTRY if nothing is removed."""
    stack = lists.stack
    depth = 0
    node = root
    while lists.nodes[node]["count"] == INNER:
        stack[depth] = node
        depth += 1
        node = child_of(lists, node, x_m, y_m)
    row = lists.nodes[node]
    start = int(row["below"])
    last = start + int(row["count"]) - 1
    place = place_of(lists, start, int(row["count"]), slot)
    if place == NO_ENTRY:
        return NO_ENTRY
    gone = int(lists.runs.records[place]["mark"])
    lists.runs.records[place] = lists.runs.records[last]
    row["count"] -= 1
    _narrow(lists, node)
    while True:
        row = lists.nodes[node]
        if keyword_count_of(gone) == row["keyword_min"] or norm_code_of(gone) == row["norm_min"]:
            _summarize(lists, node)
        if depth == 0:
            return DONE
        depth -= 1
        node = int(stack[depth])
        _merge(lists, node)


@leaf
def _gather_leaf(lists: Lists, node: int, end: int) -> int:
    """Move the entries of a leaf to a place; return the place after them."""
    row = lists.nodes[node]
    records = lists.runs.records
    below = int(row["below"])
    for place in range(below, below + row["count"]):
        records[end] = records[place]
        end += 1
    if row["size_class"] != NO_RUN:
        free_run(lists.runs, below, int(row["size_class"]))
    return end


@leaf
def gather(lists: Lists, root: int, start: int) -> None:
    """Move all entries of a tree to a run with space for them, and free the tree."""
    stack = lists.stack
    depth = 0
    end = start
    if lists.nodes[root]["count"] == INNER:
        stack[0] = lists.nodes[root]["below"]
        depth = 1
    else:
        _gather_leaf(lists, root, end)
    while depth > 0:
        depth -= 1
        first = int(stack[depth])
        for child in range(first, first + 4):
            if lists.nodes[child]["count"] == INNER:
                stack[depth] = lists.nodes[child]["below"]
                depth += 1
            else:
                end = _gather_leaf(lists, child, end)
        free_group(lists, first)
    free_group(lists, root)
