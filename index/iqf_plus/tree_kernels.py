"""Quadtrees of IQF+: nodes of 32 bytes, leaves whose runs are as large as they must be.

A node is a square cell, half-open; its four children are neighbours in the node table, so that two cache
lines tell all about them. A root that does not hold a new entry becomes one quarter of a cell twice as
large. A leaf that is full splits, unless its cell is as small as HALF_MIN_M: then its run grows. All
middles are whole multiples of HALF_MIN_M below 2**52 of them, so float64 holds them exactly.

Operations: insert and take_out O(depth + LEAF_MAX). `insert` returns a negative status if there is no
room; what it has done until then is harmless, and it may be called again with the same entry.
"""

from __future__ import annotations

import math

import numpy as np

from index.iqf_plus.layout import Lists
from index.iqf_plus.mark_kernels import MANY, keyword_count_of
from index.tables.quad_kernels import NO_NODE
from index.tables.run_kernels import NO_RUN, RUN_LEAST, class_of, free_run, has_run, take_run
from safe_region.jit import leaf

DONE = 0
RUNS_FULL = -1
NODES_FULL = -2

INNER = -1
"""Count of a node with children."""

LEAF_MAX = 32
"""Entries of a leaf that may split: 640 bytes."""

MERGE_MAX = 16
"""Children with no more entries than this together merge."""

HALF_MIN_M = 1.0
"""Half the side of the smallest cell."""

HALF_START_M = 1024.0
"""Half the side of a new tree's root."""

COORDINATE_MAX_M = 2.0**50
"""Entries farther out are noted here."""

NODE_END = 0
"""In meta: every node from here on is unused."""
NODE_FREE = 1
"""In meta: the first node of the first free group, NO_NODE if there is none."""

STACK_MAX = 512
"""Nodes that a walk keeps in mind: cells halve from 2**51 metres to one, three neighbours wait at each."""


@leaf
def rounded(coordinate_m: float) -> float:
    """Return a coordinate as entries have it."""
    return float(np.float32(min(max(coordinate_m, -COORDINATE_MAX_M), COORDINATE_MAX_M)))


@leaf
def _has_group(lists: Lists) -> bool:
    return bool(lists.meta[NODE_FREE] != NO_NODE or lists.meta[NODE_END] + 4 <= lists.nodes.shape[0])


@leaf
def _take_group(lists: Lists) -> int:
    meta = lists.meta
    first = int(meta[NODE_FREE])
    if first == NO_NODE:
        first = int(meta[NODE_END])
        meta[NODE_END] += 4
    else:
        meta[NODE_FREE] = lists.nodes[first]["below"]
    return first


@leaf
def _free_group(lists: Lists, first: int) -> None:
    lists.nodes[first]["below"] = lists.meta[NODE_FREE]
    lists.meta[NODE_FREE] = first


@leaf
def _set_leaf(lists: Lists, node: int, x_m: float, y_m: float, half_m: float) -> None:
    row = lists.nodes[node]
    row["x_m"] = x_m
    row["y_m"] = y_m
    row["half_m"] = half_m
    row["count"] = 0
    row["keyword_min"] = MANY
    row["size_class"] = NO_RUN


@leaf
def plant(lists: Lists, x_m: float, y_m: float) -> int:
    """Begin a tree about a point; return its root, or NODES_FULL."""
    if not _has_group(lists):
        return NODES_FULL
    root = _take_group(lists)
    _set_leaf(lists, root, math.floor(x_m), math.floor(y_m), HALF_START_M)
    return root


@leaf
def _set_children(lists: Lists, node: int, first: int) -> None:
    """Make four empty leaves the children of a node."""
    row = lists.nodes[node]
    quarter_m = float(row["half_m"]) / 2
    for i in range(4):
        x_m = row["x_m"] + (quarter_m if i % 2 == 1 else -quarter_m)
        y_m = row["y_m"] + (quarter_m if i >= 2 else -quarter_m)  # noqa: PLR2004
        _set_leaf(lists, first + i, x_m, y_m, quarter_m)
    row["below"] = first
    row["count"] = INNER
    row["size_class"] = NO_RUN


@leaf
def child_of(lists: Lists, node: int, x_m: float, y_m: float) -> int:
    """Return the child that holds a point of the cell."""
    row = lists.nodes[node]
    return int(row["below"]) + int(x_m >= row["x_m"]) + 2 * int(y_m >= row["y_m"])


@leaf
def _holds(lists: Lists, node: int, x_m: float, y_m: float) -> bool:
    row = lists.nodes[node]
    half_m = float(row["half_m"])
    dx = x_m - row["x_m"]
    dy = y_m - row["y_m"]
    return bool(-half_m <= dx < half_m and -half_m <= dy < half_m)


@leaf
def _rise(lists: Lists, root: int, x_m: float, y_m: float) -> int:
    """Make the root's cell twice as large, towards a point; return a status."""
    if not _has_group(lists):
        return NODES_FULL
    first = _take_group(lists)
    row = lists.nodes[root]
    below = row["below"]
    count = row["count"]
    size_class = row["size_class"]
    half_m = float(row["half_m"])
    old_x = row["x_m"]
    old_y = row["y_m"]
    row["x_m"] = old_x - half_m if x_m < old_x - half_m else old_x + half_m
    row["y_m"] = old_y - half_m if y_m < old_y - half_m else old_y + half_m
    row["half_m"] = 2 * half_m
    _set_children(lists, root, first)
    old = lists.nodes[child_of(lists, root, old_x, old_y)]
    old["below"] = below
    old["count"] = count
    old["size_class"] = size_class
    old["keyword_min"] = row["keyword_min"]
    return DONE


@leaf
def _move_run(lists: Lists, node: int, size_class: int) -> None:
    """Give a leaf a run of another size; there is one."""
    row = lists.nodes[node]
    records = lists.runs.records
    start = take_run(lists.runs, size_class)
    for offset in range(row["count"]):
        records[start + offset] = records[row["below"] + offset]
    if row["size_class"] != NO_RUN:
        free_run(lists.runs, int(row["below"]), int(row["size_class"]))
    row["below"] = start
    row["size_class"] = size_class


@leaf
def _widen(lists: Lists, node: int) -> int:
    """Make room for one entry more in a leaf; return a status."""
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
def _append(lists: Lists, node: int, x_m: float, y_m: float, slot: int, mark: int) -> int:
    """Put an entry into a leaf; return a status."""
    status = _widen(lists, node)
    if status != DONE:
        return status
    row = lists.nodes[node]
    entry = lists.runs.records[row["below"] + row["count"]]
    entry["x_m"] = x_m
    entry["y_m"] = y_m
    entry["slot"] = slot
    entry["mark"] = mark
    row["count"] += 1
    row["keyword_min"] = min(int(row["keyword_min"]), keyword_count_of(mark))
    return DONE


@leaf
def _split(lists: Lists, node: int) -> int:
    """Give a full leaf four children and its entries to them; return a status."""
    row = lists.nodes[node]
    records = lists.runs.records
    start = int(row["below"])
    size_class = int(row["size_class"])
    count = int(row["count"])
    if lists.runs.ends[0] + 8 * LEAF_MAX > records.shape[0]:
        return RUNS_FULL
    if not _has_group(lists):
        return NODES_FULL
    _set_children(lists, node, _take_group(lists))
    for place in range(start, start + count):
        entry = records[place]
        child = child_of(lists, node, float(entry["x_m"]), float(entry["y_m"]))
        slot = int(entry["slot"])
        _append(lists, child, float(entry["x_m"]), float(entry["y_m"]), slot, int(entry["mark"]))
    free_run(lists.runs, start, size_class)
    return DONE


@leaf
def insert(lists: Lists, root: int, x_m: float, y_m: float, slot: int, mark: int) -> int:
    """Put an entry into a tree; return a status."""
    while not _holds(lists, root, x_m, y_m):
        status = _rise(lists, root, x_m, y_m)
        if status != DONE:
            return status
    keyword_count = keyword_count_of(mark)
    node = root
    while True:
        row = lists.nodes[node]
        if row["count"] >= LEAF_MAX and row["half_m"] > HALF_MIN_M:
            status = _split(lists, node)
            if status != DONE:
                return status
        if row["count"] != INNER:
            return _append(lists, node, x_m, y_m, slot, mark)
        row["keyword_min"] = min(int(row["keyword_min"]), keyword_count)
        node = child_of(lists, node, x_m, y_m)


@leaf
def place_of(lists: Lists, start: int, count: int, slot: int) -> int:
    """Where the entry of an object is in a run that has it."""
    records = lists.runs.records
    place = start
    while place < start + count - 1 and records[place]["slot"] != slot:
        place += 1
    return place


@leaf
def _summarize(lists: Lists, node: int) -> None:
    """Make `keyword_min` exact again."""
    row = lists.nodes[node]
    least = MANY
    below = int(row["below"])
    if row["count"] == INNER:
        for child in range(below, below + 4):
            least = min(least, int(lists.nodes[child]["keyword_min"]))
    else:
        for place in range(below, below + row["count"]):
            least = min(least, keyword_count_of(lists.runs.records[place]["mark"]))
    row["keyword_min"] = least


@leaf
def _narrow(lists: Lists, node: int) -> None:
    """Give a leaf that needs less room a smaller run, if there is one."""
    row = lists.nodes[node]
    count = int(row["count"])
    size_class = int(row["size_class"])
    if count == 0:
        free_run(lists.runs, int(row["below"]), size_class)
        row["size_class"] = NO_RUN
    elif size_class > 0 and count <= (RUN_LEAST << size_class) // 4 and has_run(lists.runs, size_class - 1):
        _move_run(lists, node, size_class - 1)


@leaf
def _merge(lists: Lists, node: int) -> bool:
    """Make a node whose children are sparse leaves a leaf; return whether it is one now."""
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
    _free_group(lists, first)
    row["below"] = start
    row["size_class"] = size_class
    return True


@leaf
def take_out(lists: Lists, root: int, x_m: float, y_m: float, slot: int) -> None:
    """Take the entry of an object out of a tree that has it."""
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
    gone = keyword_count_of(lists.runs.records[place]["mark"])
    lists.runs.records[place] = lists.runs.records[last]
    row["count"] -= 1
    _narrow(lists, node)
    while True:
        if gone == lists.nodes[node]["keyword_min"]:
            _summarize(lists, node)
        if depth == 0:
            return
        depth -= 1
        node = int(stack[depth])
        _merge(lists, node)


@leaf
def _gather_leaf(lists: Lists, node: int, end: int) -> int:
    """Move the entries of a leaf to a place; return what is behind them there."""
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
    """Move all entries of a tree to a run with room for them, and fell it."""
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
        _free_group(lists, first)
    _free_group(lists, root)
