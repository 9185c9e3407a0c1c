"""Pairs of a clause and an object: whether they match, exactly.

The indexes find by required keywords and by boxes. What an object must not have, and what a box stands
for, is decided here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from engine.boolean.layout import CIRCLE, CLAUSE_BITS, NOTHING, POLYGON
from engine.polygons import RingPool
from index.batches import Floats, KeywordIds
from safe_region.jit import kernel, leaf
from safe_region.scoring_kernels import common_count, length
from safe_region.shape_kernels import polygon_contains

Rows = npt.NDArray[Any]
Slots = npt.NDArray[np.int32]

NO_MATCH = -1.0


class Clauses(NamedTuple):
    """Arrays of subscriptions and their clauses."""

    subscriptions: Rows
    clauses: Rows
    excluded: Rows
    excluded_pool: KeywordIds
    rings: RingPool


class Objects(NamedTuple):
    """Arrays of objects."""

    rows: Rows
    pool: KeywordIds


@leaf
def _is_excluded(clauses: Clauses, clause: int, words: KeywordIds) -> bool:
    """Whether an object has a keyword that the clause excludes."""
    place = clauses.clauses[clause]["excluded"]
    if place == NOTHING:
        return False
    row = clauses.excluded[place]
    start = row["keyword_start"]
    return common_count(clauses.excluded_pool[start : start + row["keyword_count"]], words) > 0


@leaf
def _is_inside(clauses: Clauses, subscription: int, x_m: float, y_m: float) -> bool:
    """Whether a point lies in a rectangle or a polygon, which are closed."""
    row = clauses.subscriptions[subscription]
    if not (row["x1_m"] <= x_m <= row["x2_m"] and row["y1_m"] <= y_m <= row["y2_m"]):
        return False
    if row["shape"] != POLYGON:
        return True
    rings = clauses.rings
    return polygon_contains(
        rings.x_m, rings.y_m, rings.offsets, row["ring_start"], row["ring_count"], x_m, y_m
    )


@kernel
def measure(
    clauses: Clauses,
    objects: Objects,
    clause_slots: Slots,
    object_slots: Slots,
    x_m: Floats,
    y_m: Floats,
    reach_m: Floats,
    distance_m: Floats,
) -> None:
    """Write how far each object is from the middle of the range, or NO_MATCH.

    Parameters
    ----------
    clauses, objects
        What there is.
    clause_slots, object_slots
        The pairs. Required keywords have been compared.
    x_m, y_m, reach_m
        Of each pair, the middle of the range, and of circles how far they reach.
    distance_m
        What is written.
    """
    for i in range(clause_slots.shape[0]):
        distance_m[i] = NO_MATCH
        clause = clause_slots[i]
        item = objects.rows[object_slots[i]]
        start = item["keyword_start"]
        if _is_excluded(clauses, clause, objects.pool[start : start + item["keyword_count"]]):
            continue
        subscription = clauses.clauses[clause]["id"] >> CLAUSE_BITS
        away_m = length(item["x_m"] - x_m[i], item["y_m"] - y_m[i], 0.0)
        if clauses.subscriptions[subscription]["shape"] == CIRCLE:
            is_within = away_m <= reach_m[i]
        else:
            is_within = _is_inside(clauses, subscription, item["x_m"], item["y_m"])
        if is_within:
            distance_m[i] = away_m


@kernel
def fill_boxes(
    subscriptions: Rows, slots: Slots, x_m: Floats, y_m: Floats, reach_m: Floats, boxes: Floats
) -> None:
    """Write the box about each subscription's range at a place; `boxes` has shape (4, subscriptions).

    That of a circle contains whatever may be computed to be within its reach: a difference, a square root
    and a sum are each off by less than 2**-52 of themselves.
    """
    for i in range(slots.shape[0]):
        row = subscriptions[slots[i]]
        if row["shape"] == CIRCLE:
            grown_m = reach_m[i] * (1.0 + 1e-15) + 1e-150
            boxes[0, i] = np.nextafter(x_m[i] - grown_m, -np.inf)
            boxes[1, i] = np.nextafter(y_m[i] - grown_m, -np.inf)
            boxes[2, i] = np.nextafter(x_m[i] + grown_m, np.inf)
            boxes[3, i] = np.nextafter(y_m[i] + grown_m, np.inf)
        else:
            boxes[0, i] = row["x1_m"]
            boxes[1, i] = row["y1_m"]
            boxes[2, i] = row["x2_m"]
            boxes[3, i] = row["y2_m"]
