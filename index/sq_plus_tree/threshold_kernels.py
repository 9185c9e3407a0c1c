"""Thresholds: how far from a cell an object of each class may lie to matter to any entry in it.

For an entry that is reach + radius - weight * (least text distance of the class), for a cell the largest
of its entries', exact at all times but for rounding outwards.
"""

from __future__ import annotations

import math

import numpy as np

from index.sq_plus_tree.layout import CHILDREN, CLASSES, COMBINED_MAX, NOTHING, Forest, Row
from safe_region.jit import leaf

OUTWARD = 1e-6
"""Relative to reach and weight: entries and thresholds are float32, whose relative error is 6e-8."""
COORDINATE_ERROR = 2e-7
"""Relative error of float32 coordinates, with room: it is added to how far an entry reaches."""


@leaf
def outer_reach(subscription: Row) -> float:
    """Reach and radius of a subscription, with room for the error of float32 coordinates."""
    reach = subscription["reach_m"] + subscription["radius_m"]
    error = COORDINATE_ERROR * (abs(subscription["x_m"]) + abs(subscription["y_m"]))
    return float(reach + error)


@leaf
def entry_threshold(forest: Forest, entry: int, depth: int, number: int) -> float:
    """How far an object of a class may lie from the entry's anchor to matter."""
    row = forest.entries[entry]
    common = 0 if row["is_loose"] else depth
    distance = float(forest.class_distances[row["similarity"], row["size"], common, number])
    reach = float(row["reach_m"])
    weight = float(row["weight_m"])
    return reach - weight * distance + OUTWARD * (abs(reach) + weight)


@leaf
def entry_bound(forest: Forest, entry: int, depth: int) -> float:
    """How far any object may lie from the entry's anchor to matter.

    Further keywords of an object only hurt, unless they may be common, too.
    """
    row = forest.entries[entry]
    if row["is_loose"]:
        reach = float(row["reach_m"])
        return reach + OUTWARD * (abs(reach) + float(row["weight_m"]))
    return entry_threshold(forest, entry, depth, 0)


@leaf
def raise_cell(forest: Forest, cell: int, entry: int, depth: int) -> bool:
    """Let a cell's thresholds cover an entry; return whether any was raised."""
    is_raised = False
    for number in range(CLASSES):
        value = np.float32(entry_threshold(forest, entry, depth, number))
        if value > forest.threshold_m[cell, number]:
            forest.threshold_m[cell, number] = value
            is_raised = True
    return is_raised


@leaf
def raise_path(forest: Forest, cell: int, entry: int, depth: int) -> None:
    """Let the thresholds of a leaf and of all above cover an entry."""
    while cell != NOTHING and raise_cell(forest, cell, entry, depth):
        cell = int(forest.cells[cell]["parent"])


@leaf
def clear_cell(forest: Forest, cell: int) -> None:
    """Let thresholds cover nothing."""
    for number in range(CLASSES):
        forest.threshold_m[cell, number] = -np.inf


@leaf
def _recompute(forest: Forest, cell: int, depth: int) -> bool:
    """Compute the thresholds of a cell anew; return whether any has changed."""
    is_changed = False
    first = int(forest.cells[cell]["first_child"])
    start = int(forest.cells[cell]["start"])
    for number in range(CLASSES):
        value = np.float32(-np.inf)
        if first != NOTHING:
            for child in range(first, first + CHILDREN):
                value = max(value, forest.threshold_m[child, number])
        else:
            for entry in range(start, start + int(forest.cells[cell]["count"])):
                value = max(value, np.float32(entry_threshold(forest, entry, depth, number)))
        if value != forest.threshold_m[cell, number]:
            forest.threshold_m[cell, number] = value
            is_changed = True
    return is_changed


@leaf
def lower_path(forest: Forest, cell: int, depth: int) -> None:
    """Compute the thresholds of a leaf anew, and of those above as far as they change."""
    while cell != NOTHING and _recompute(forest, cell, depth):
        cell = int(forest.cells[cell]["parent"])


@leaf
def is_extreme(forest: Forest, cell: int, entry: int, depth: int) -> bool:
    """Whether an entry alone may hold up some threshold of its leaf."""
    for number in range(CLASSES):
        value = np.float32(entry_threshold(forest, entry, depth, number))
        if value >= forest.threshold_m[cell, number]:
            return True
    return False


@leaf
def is_loose(subscription: Row) -> bool:
    """Whether a subscription is found by its single keywords only."""
    return bool(subscription["keyword_count"] > COMBINED_MAX or math.isinf(subscription["reach_m"]))


@leaf
def has_entry(forest: Forest, subscription: Row, depth: int) -> bool:
    """Whether an object may match that shares exactly so many keywords; always if that is not known."""
    if is_loose(subscription):
        return True
    size = int(subscription["keyword_count"])
    distance = float(forest.class_distances[subscription["similarity"], size, depth, 0])
    reach = outer_reach(subscription)
    weight = subscription["weight_m"]
    return bool(reach - weight * distance + OUTWARD * (abs(reach) + weight) >= 0.0)
