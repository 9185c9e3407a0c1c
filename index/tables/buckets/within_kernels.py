"""Scanning entries for objects in a box: their positions first, then signatures, objects last.

Operations: scan O(entries), walk O(entries of leaves whose cells intersect the box).
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from index.batches import Ints
from index.tables.buckets.kernels import BLOCK_CAPACITY
from index.tables.buckets.layout import Objects, Trees
from index.tables.quad_kernels import NO_NODE
from index.tables.within_kernels import Wanted, holds_point, is_wanted, keep
from safe_region.jit import leaf


@leaf
def scan_box(
    entries: npt.NDArray[Any],
    first: int,
    count: int,
    objects: Objects,
    wanted: Wanted,
    signature: int,
    found: Ints,
    total: int,
) -> int:
    """Keep the matching objects of adjacent entries; return the new number of results.

    `signature` is that of the required keywords.
    """
    for place in range(first, first + count):
        entry = entries[place]
        if not holds_point(wanted, entry["x_m"], entry["y_m"]):
            continue
        if int(entry["signature"]) & signature != signature:
            continue
        row = objects.rows[entry["slot"]]
        if is_wanted(wanted, row, objects.pool):
            total = keep(found, total, row["id"])
    return total


@leaf
def meets(trees: Trees, node: int, wanted: Wanted) -> bool:
    """Return whether there are entries below a node, and its cell intersects the box."""
    row = trees.nodes[node]
    return bool(
        row["count"] > 0
        and row["x_min"] <= wanted.x2_m
        and row["x_max"] >= wanted.x1_m
        and row["y_min"] <= wanted.y2_m
        and row["y_max"] >= wanted.y1_m
    )


@leaf
def scan_leaf(
    trees: Trees,
    node: int,
    objects: Objects,
    wanted: Wanted,
    signature: int,
    found: Ints,
    total: int,
) -> int:
    """Keep the matching objects of a leaf; return the new number of results."""
    block = trees.nodes[node]["block"]
    left = trees.nodes[node]["count"]
    while left > 0:
        taken = (left - 1) % BLOCK_CAPACITY + 1
        place = block * BLOCK_CAPACITY
        total = scan_box(trees.entries, place, taken, objects, wanted, signature, found, total)
        left -= taken
        block = trees.blocks[block]["next"]
    return total


@leaf
def walk_box(
    trees: Trees,
    root: int,
    objects: Objects,
    wanted: Wanted,
    signature: int,
    stack: npt.NDArray[Any],
    found: Ints,
    total: int,
) -> int:
    """Keep the matching objects of a tree; return the new number of results."""
    stack[0] = root
    depth = 1
    while depth > 0:
        depth -= 1
        node = int(stack[depth])
        first = int(trees.nodes[node]["first_child"])
        if first == NO_NODE:
            total = scan_leaf(trees, node, objects, wanted, signature, found, total)
            continue
        for child in range(first, first + 4):
            if meets(trees, child, wanted):
                stack[depth] = child
                depth += 1
    return total
