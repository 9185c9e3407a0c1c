"""Nodes of IQF+'s quadtrees: 32 bytes each, four children in two cache lines.

A node is a square cell, half-open; its four children are adjacent in the node table, a *group*. A root
that does not contain a new entry becomes one quarter of a cell twice as large. All centres and borders
are integer multiples of HALF_MIN_M below 2**53, so float64 represents them exactly. Coordinates are
compared with them, never subtracted: the difference of a centre and a tiny coordinate is rounded.

Operations: each O(1).
"""

from __future__ import annotations

import math

import numpy as np

from index.iqf_plus.layout import Lists
from index.iqf_plus.mark_kernels import MANY
from index.tables.free_kernels import give_back_rows, take_rows
from index.tables.norm_kernels import LARGEST
from index.tables.quad_kernels import NO_NODE
from index.tables.run_kernels import NO_RUN
from safe_region.jit import leaf

DONE = 0
RUNS_FULL = -1
NODES_FULL = -2

INNER = -1
"""The count of a node with children."""

HALF_MIN_M = 1.0
"""Half the side of the smallest cell."""

HALF_START_M = 1024.0
"""Half the side of a new tree's root."""

COORDINATE_MAX_M = 2.0**50
"""Entries farther out are stored at this coordinate."""

NODE_END = 0
"""In meta: every node from here on is unused."""
NODE_FREE = 1
"""In meta: the first node of the first free group, NO_NODE if there is none."""

STACK_MAX = 512
"""The maximum number of nodes on a walk's stack: half sides go from 2**52 metres to one, with three
pending at each size."""


@leaf
def rounded(coordinate_m: float) -> float:
    """Return a coordinate as entries have it."""
    return float(np.float32(min(max(coordinate_m, -COORDINATE_MAX_M), COORDINATE_MAX_M)))


@leaf
def has_group(lists: Lists) -> bool:
    """Return whether a group can be allocated."""
    return bool(lists.meta[NODE_FREE] != NO_NODE or lists.meta[NODE_END] + 4 <= lists.nodes.shape[0])


@leaf
def take_group(lists: Lists) -> int:
    """Allocate four nodes; return the first. The caller has verified the capacity."""
    meta = lists.meta
    return take_rows(lists.nodes["below"], meta, NODE_FREE, meta, NODE_END, 4)


@leaf
def free_group(lists: Lists, first: int) -> None:
    """Free four nodes."""
    give_back_rows(lists.nodes["below"], lists.meta, NODE_FREE, first)


@leaf
def _set_leaf(lists: Lists, node: int, x_m: float, y_m: float, half_m: float) -> None:
    row = lists.nodes[node]
    row["x_m"] = x_m
    row["y_m"] = y_m
    row["half_m"] = half_m
    row["count"] = 0
    row["keyword_min"] = MANY
    row["norm_min"] = LARGEST
    row["size_class"] = NO_RUN


@leaf
def plant(lists: Lists, x_m: float, y_m: float) -> int:
    """Create a tree about a point; return its root, or NODES_FULL."""
    if not has_group(lists):
        return NODES_FULL
    root = take_group(lists)
    _set_leaf(lists, root, math.floor(x_m), math.floor(y_m), HALF_START_M)
    return root


@leaf
def set_children(lists: Lists, node: int, first: int) -> None:
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
    """Return the child that contains a point of the cell."""
    row = lists.nodes[node]
    return int(row["below"]) + int(x_m >= row["x_m"]) + 2 * int(y_m >= row["y_m"])


@leaf
def holds(lists: Lists, node: int, x_m: float, y_m: float) -> bool:
    """Return whether a point is in a node's cell."""
    row = lists.nodes[node]
    half_m = float(row["half_m"])
    centre_x, centre_y = float(row["x_m"]), float(row["y_m"])
    return bool(
        centre_x - half_m <= x_m < centre_x + half_m and centre_y - half_m <= y_m < centre_y + half_m
    )


@leaf
def rise(lists: Lists, root: int, x_m: float, y_m: float) -> int:
    """Double the side of the root's cell, towards a point; return a status."""
    if not has_group(lists):
        return NODES_FULL
    first = take_group(lists)
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
    set_children(lists, root, first)
    old = lists.nodes[child_of(lists, root, old_x, old_y)]
    old["below"] = below
    old["count"] = count
    old["size_class"] = size_class
    old["keyword_min"] = row["keyword_min"]
    old["norm_min"] = row["norm_min"]
    return DONE
