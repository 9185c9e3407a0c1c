"""Cells: the leaf of a position, and the largest reach in each cell (section 5.2.3).

The largest reach is exact at any time: a leaf counts the subscriptions that have it, and searches for
another when none has it any more.

Operations: find O(depth); a change of a reach O(depth), and O(leaf) if it was the only largest one.
"""

from __future__ import annotations

import math

from index.published.igpt.bound_kernels import outer_reach
from index.published.igpt.layout import CHILDREN, NOTHING, ROOT, Tree
from index.tables.quad_kernels import child_of
from safe_region.jit import leaf


@leaf
def leaf_at(tree: Tree, x_m: float, y_m: float) -> int:
    """Return the leaf that contains a point."""
    cell = ROOT
    while tree.cells[cell]["first_child"] != NOTHING:
        cell = child_of(tree.cells, cell, x_m, y_m)
    return cell


@leaf
def clear_leaf(tree: Tree, cell: int) -> None:
    """Make a leaf empty."""
    row = tree.cells[cell]
    row["first"] = NOTHING
    row["count"] = 0
    row["top_count"] = 0
    row["reach_m"] = -math.inf


@leaf
def spread_reach(tree: Tree, cell: int) -> None:
    """Set the largest reaches above a cell, whose own is correct."""
    cell = int(tree.cells[cell]["parent"])
    while cell != NOTHING:
        first = int(tree.cells[cell]["first_child"])
        reach = -math.inf
        for child in range(first, first + CHILDREN):
            reach = max(reach, float(tree.cells[child]["reach_m"]))
        if tree.cells[cell]["reach_m"] == reach:
            return
        tree.cells[cell]["reach_m"] = reach
        cell = int(tree.cells[cell]["parent"])


@leaf
def _look_for_reach(tree: Tree, cell: int) -> None:
    """Compute the largest reach of a leaf, and the number of subscriptions with it."""
    row = tree.cells[cell]
    row["reach_m"] = -math.inf
    row["top_count"] = 0
    slot = int(row["first"])
    while slot != NOTHING:
        reach = outer_reach(tree.subscriptions[slot])
        if reach > row["reach_m"]:
            row["reach_m"] = reach
            row["top_count"] = 1
        elif reach == row["reach_m"]:
            row["top_count"] += 1
        slot = int(tree.subscriptions[slot]["next"])


@leaf
def change_reach(tree: Tree, cell: int, before: float, after: float) -> None:
    """Update a leaf for a changed reach; minus infinity for a subscription outside before or after."""
    row = tree.cells[cell]
    if before == after:
        return
    if after > row["reach_m"]:
        row["reach_m"] = after
        row["top_count"] = 1
        spread_reach(tree, cell)
        return
    if after == row["reach_m"]:
        row["top_count"] += 1
    if before == row["reach_m"]:
        row["top_count"] -= 1
        if row["top_count"] == 0:
            _look_for_reach(tree, cell)
            spread_reach(tree, cell)


@leaf
def add_member(tree: Tree, cell: int, slot: int) -> None:
    """Add a subscription to the chain of a leaf."""
    leaf_row = tree.cells[cell]
    row = tree.subscriptions[slot]
    first = int(leaf_row["first"])
    row["cell"] = cell
    row["next"] = first
    row["previous"] = NOTHING
    if first != NOTHING:
        tree.subscriptions[first]["previous"] = slot
    leaf_row["first"] = slot
    leaf_row["count"] += 1
    change_reach(tree, cell, -math.inf, outer_reach(row))


@leaf
def remove_member(tree: Tree, slot: int) -> None:
    """Remove a subscription from the chain of its leaf."""
    row = tree.subscriptions[slot]
    cell = int(row["cell"])
    following, previous = int(row["next"]), int(row["previous"])
    if previous == NOTHING:
        tree.cells[cell]["first"] = following
    else:
        tree.subscriptions[previous]["next"] = following
    if following != NOTHING:
        tree.subscriptions[following]["previous"] = previous
    tree.cells[cell]["count"] -= 1
    row["cell"] = NOTHING
    change_reach(tree, cell, outer_reach(row), -math.inf)
