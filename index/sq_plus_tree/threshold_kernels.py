"""Thresholds: the maximum distance from a cell of an object of each class that matters to its entries.

The threshold of an entry is its rest plus its gain times the factor of the class. That of a cell is the
largest of its entries', exact at all times except for rounding outwards.
"""

from __future__ import annotations

import numpy as np

from index.sq_plus_tree.closeness_kernels import (
    class_factor,
    entry_gain,
    entry_kind,
    is_loose,
    outward,
)
from index.sq_plus_tree.layout import CHILDREN, CLASSES, NOTHING, Forest, Row
from safe_region.jit import leaf

_ROUNDING = 1e-12
"""Relative to reach, radius and weight: the error of lengths in float64, with a margin."""
COORDINATE_ERROR = 2e-7
"""Relative error of float32 coordinates, with a margin: it is added to the reach of an entry."""
_CANCELLED = 1e-4
"""If reach minus weight leaves less than this fraction of them, rounding is not small relative to it."""


@leaf
def outer_reach(subscription: Row) -> float:
    """Return the reach plus radius of a subscription, with a margin for rounding elsewhere."""
    reach = subscription["reach_m"] + subscription["radius_m"]
    error = _ROUNDING * (reach + subscription["weight_m"])
    error += COORDINATE_ERROR * (abs(subscription["x_m"]) + abs(subscription["y_m"]))
    return float(reach + error)


@leaf
def rest_of(subscription: Row) -> float:
    """Return the maximum distance of an object that matters without any text similarity."""
    return float(outer_reach(subscription) - subscription["weight_m"])


@leaf
def is_vague(subscription: Row) -> bool:
    """Return whether entries do not decide with certainty if an object matches."""
    rest = rest_of(subscription)
    is_region = subscription["radius_m"] > 0.0
    is_cancelled = abs(rest) < _CANCELLED * (subscription["reach_m"] + subscription["weight_m"])
    return bool(is_loose(subscription) or is_region or is_cancelled)


@leaf
def has_entry(forest: Forest, subscription: Row, square: float) -> bool:
    """Return whether an object that shares exactly a combination with this sum of squares may match.

    True if that is not known.
    """
    if is_loose(subscription):
        return True
    kind = entry_kind(forest, subscription)
    best = entry_gain(forest, subscription, square) * class_factor(forest, kind, square, 0)
    return bool(rest_of(subscription) + best >= 0.0)


@leaf
def write_reach(forest: Forest, entry: int, square: float, subscription: Row) -> None:
    """Write the reach of an entry at a combination with this sum of squares."""
    row = forest.entries[entry]
    row["rest_m"] = outward(rest_of(subscription))
    row["gain_m"] = outward(entry_gain(forest, subscription, square))
    row["kind"] = entry_kind(forest, subscription)
    row["is_loose"] = 1 if is_loose(subscription) else 0
    row["is_vague"] = 1 if is_vague(subscription) else 0
    if row["is_loose"]:
        row["bound_m"] = outward(outer_reach(subscription))
    else:
        # Further keywords of an object only increase its text distance.
        row["bound_m"] = _class_radius(forest, entry, square, 0)


@leaf
def _class_radius(forest: Forest, entry: int, square: float, number: int) -> np.float32:
    row = forest.entries[entry]
    factor = class_factor(forest, int(row["kind"]), square, number)
    return outward(float(row["rest_m"]) + float(row["gain_m"]) * factor)


@leaf
def entry_threshold(forest: Forest, entry: int, square: float, number: int) -> np.float32:
    """Return the maximum distance from the entry's anchor of an object of a class that matters."""
    bound: np.float32 = forest.entries[entry]["bound_m"]
    return min(bound, _class_radius(forest, entry, square, number))


@leaf
def raise_cell(forest: Forest, cell: int, entry: int, square: float) -> bool:
    """Raise a cell's thresholds to cover an entry; return whether any was raised."""
    is_raised = False
    for number in range(CLASSES):
        value = entry_threshold(forest, entry, square, number)
        if value > forest.threshold_m[cell, number]:
            forest.threshold_m[cell, number] = value
            is_raised = True
    return is_raised


@leaf
def raise_path(forest: Forest, cell: int, entry: int, square: float) -> None:
    """Raise the thresholds of a leaf and of all its ancestors to cover an entry."""
    while cell != NOTHING and raise_cell(forest, cell, entry, square):
        cell = int(forest.cells[cell]["parent"])


@leaf
def clear_cell(forest: Forest, cell: int) -> None:
    """Set thresholds that cover nothing."""
    for number in range(CLASSES):
        forest.threshold_m[cell, number] = -np.inf


@leaf
def _recompute(forest: Forest, cell: int, square: float) -> bool:
    """Recompute the thresholds of a cell; return whether any has changed."""
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
                value = max(value, entry_threshold(forest, entry, square, number))
        if value != forest.threshold_m[cell, number]:
            forest.threshold_m[cell, number] = value
            is_changed = True
    return is_changed


@leaf
def lower_path(forest: Forest, cell: int, square: float) -> None:
    """Recompute the thresholds of a leaf, and of its ancestors as far as they change."""
    while cell != NOTHING and _recompute(forest, cell, square):
        cell = int(forest.cells[cell]["parent"])


@leaf
def is_extreme(forest: Forest, cell: int, entry: int, square: float) -> bool:
    """Return whether an entry alone may determine some threshold of its leaf."""
    for number in range(CLASSES):
        if entry_threshold(forest, entry, square, number) >= forest.threshold_m[cell, number]:
            return True
    return False
