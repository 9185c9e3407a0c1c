"""Thresholds: how far from a cell an object of each class may lie to matter to any entry in it.

For an entry that is reach + radius - weight * (least text distance of the class), for a cell the largest
of its entries', exact at all times but for rounding outwards.
"""

from __future__ import annotations

import numpy as np

from index.sq_plus_tree.layout import CHILDREN, CLASSES, NOTHING, Forest
from safe_region.jit import leaf

_OUTWARD = 1e-6
"""Relative to reach and weight: entries and thresholds are float32, whose relative error is 6e-8."""


@leaf
def entry_threshold(forest: Forest, entry: int, group: int, number: int) -> float:
    """How far an object of a class may lie from the entry's anchor to matter."""
    row = forest.groups[group]
    size = min(int(row["size"]), forest.distances.shape[1] - 1)
    distance = forest.distances[row["similarity"], size, row["common"], number]
    reach = float(forest.entries[entry]["reach_m"])
    weight = float(forest.entries[entry]["weight_m"])
    return float(reach - weight * distance + _OUTWARD * (abs(reach) + weight))


@leaf
def raise_cell(forest: Forest, cell: int, entry: int, group: int) -> bool:
    """Let a cell's thresholds cover an entry; return whether any was raised."""
    is_raised = False
    for number in range(CLASSES):
        value = np.float32(entry_threshold(forest, entry, group, number))
        if value > forest.threshold_m[cell, number]:
            forest.threshold_m[cell, number] = value
            is_raised = True
    return is_raised


@leaf
def raise_path(forest: Forest, cell: int, entry: int, group: int) -> None:
    """Let the thresholds of a leaf and of all above cover an entry."""
    while cell != NOTHING and raise_cell(forest, cell, entry, group):
        cell = forest.cells[cell]["parent"]


@leaf
def clear_cell(forest: Forest, cell: int) -> None:
    """Let thresholds cover nothing."""
    for number in range(CLASSES):
        forest.threshold_m[cell, number] = -np.inf


@leaf
def _recompute(forest: Forest, cell: int, group: int) -> bool:
    """Compute the thresholds of a cell anew; return whether any has changed."""
    is_changed = False
    first = forest.cells[cell]["first_child"]
    start = forest.cells[cell]["start"]
    for number in range(CLASSES):
        value = np.float32(-np.inf)
        if first != NOTHING:
            for child in range(first, first + CHILDREN):
                value = max(value, forest.threshold_m[child, number])
        else:
            for entry in range(start, start + forest.cells[cell]["count"]):
                value = max(value, np.float32(entry_threshold(forest, entry, group, number)))
        if value != forest.threshold_m[cell, number]:
            forest.threshold_m[cell, number] = value
            is_changed = True
    return is_changed


@leaf
def lower_path(forest: Forest, cell: int, group: int) -> None:
    """Compute the thresholds of a leaf anew, and of those above as far as they change."""
    while cell != NOTHING and _recompute(forest, cell, group):
        cell = forest.cells[cell]["parent"]


@leaf
def is_extreme(forest: Forest, cell: int, entry: int, group: int) -> bool:
    """Whether an entry alone may hold up some threshold of its leaf."""
    for number in range(CLASSES):
        value = np.float32(entry_threshold(forest, entry, group, number))
        if value >= forest.threshold_m[cell, number]:
            return True
    return False
