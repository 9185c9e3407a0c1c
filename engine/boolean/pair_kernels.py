"""Test exactly whether pairs of a subscription, or a clause, and an object match.

The indexes find objects by required keywords and by boxes. These kernels test for excluded keywords, and
test the range that a box represents.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from engine.areas import AreaArrays
from engine.boolean.expression_kernels import (
    TABLE_SIZE,
    Clauses,
    fill_table,
    matches_clause,
    new_table,
)
from engine.boolean.layout import CIRCLE, NOTHING, POLYGON
from engine.layout import POINT
from index.batches import Floats, Ints, KeywordIds
from safe_region.geometry.segment_kernels import box_distance, boxes_meet
from safe_region.geometry.shape_kernels import (
    box_meets_polygon,
    polygon_contains,
    polygon_meets_box,
    polygons_meet,
    ring_distance,
)
from safe_region.jit import kernel, leaf
from safe_region.scoring.kernels import common_count, length

Rows = npt.NDArray[Any]
Slots = npt.NDArray[np.int32]

NO_MATCH = -1.0

_TINY_M = 1e-300
"""The least distance beyond a rectangle of an object that is not within it."""

_Half = tuple[float, float]
"""Half the width and half the height of a rectangle."""

_CORE_SHARE = 0.7
"""A fraction of a circle's reach: half the side of a square within it, less than the root of a half."""
_CERTAIN_SHARE = 1.0 - 1e-12
"""A fraction of a rectangle's half side: an object within it is also computed to be within."""


class Objects(NamedTuple):
    """Arrays of objects."""

    rows: Rows
    pool: KeywordIds
    areas: AreaArrays


class Ranges(NamedTuple):
    """Places of subscriptions' ranges, a row each."""

    slots: Slots
    """Slots of the subscriptions."""
    x_m: Floats
    y_m: Floats
    """The middle of each range."""
    reach_m: Floats
    """The reach of circles; for moving rectangles, the reach beyond their edges."""
    first_id: Ints
    """Objects with smaller ids do not count in the subscription's window."""


@leaf
def _is_excluded(clauses: Clauses, clause: int, words: KeywordIds) -> bool:
    """Return whether an object has a keyword that the clause excludes."""
    place = clauses.clauses[clause]["excluded"]
    if place == NOTHING:
        return False
    row = clauses.excluded[place]
    start = row["keyword_start"]
    return common_count(clauses.excluded_pool[start : start + row["keyword_count"]], words) > 0


@leaf
def _is_inside(clauses: Clauses, subscription: int, x_m: float, y_m: float) -> bool:
    """Return whether a point lies in a rectangle or a polygon, which are closed."""
    row = clauses.subscriptions[subscription]
    if not (row["x1_m"] <= x_m <= row["x2_m"] and row["y1_m"] <= y_m <= row["y2_m"]):
        return False
    if row["shape"] != POLYGON:
        return True
    rings = clauses.rings
    return polygon_contains(
        rings.x_m, rings.y_m, rings.offsets, row["ring_start"], row["ring_count"], x_m, y_m
    )


@leaf
def _area_distance(areas: AreaArrays, place: int, x_m: float, y_m: float) -> float:
    """Return the distance of an area from a point; 0 within it."""
    area = areas.rows[place]
    if area["ring_count"] == 0:
        return box_distance(x_m, y_m, area["x1_m"], area["y1_m"], area["x2_m"], area["y2_m"])
    rings = areas.rings
    ring = area["ring_start"]
    return ring_distance(rings.x_m, rings.y_m, rings.offsets[ring], rings.offsets[ring + 1], x_m, y_m)


@leaf
def _meets_area(clauses: Clauses, subscription: int, areas: AreaArrays, place: int) -> bool:
    """Return whether a rectangle or a polygon has a point in common with an area."""
    row = clauses.subscriptions[subscription]
    area = areas.rows[place]
    ax1, ay1, ax2, ay2 = area["x1_m"], area["y1_m"], area["x2_m"], area["y2_m"]
    if not boxes_meet(row["x1_m"], row["y1_m"], row["x2_m"], row["y2_m"], ax1, ay1, ax2, ay2):
        return False
    ours, theirs = clauses.rings, areas.rings
    first, count = row["ring_start"], row["ring_count"]
    if area["ring_count"] == 0:
        if row["shape"] != POLYGON:
            return True
        return polygon_meets_box(ours.x_m, ours.y_m, ours.offsets, first, count, ax1, ay1, ax2, ay2)
    start = theirs.offsets[area["ring_start"]]
    stop = theirs.offsets[area["ring_start"] + 1]
    if row["shape"] != POLYGON:
        x1, y1, x2, y2 = row["x1_m"], row["y1_m"], row["x2_m"], row["y2_m"]
        return box_meets_polygon(x1, y1, x2, y2, theirs.x_m, theirs.y_m, start, stop)
    return polygons_meet(
        ours.x_m, ours.y_m, ours.offsets, first, count, theirs.x_m, theirs.y_m, start, stop
    )


@leaf
def _excess_at(
    ax: float, ay: float, ux: float, uy: float, numerator: float, denominator: float, half: _Half
) -> float:
    """Return the excess of a point of a segment over a rectangle about the origin.

    Infinity if the point is not between the segment's ends.
    """
    if denominator == 0.0:
        return np.inf
    share = numerator / denominator
    if not 0.0 < share < 1.0:
        return np.inf
    return max(abs(ax + share * ux) - half[0], abs(ay + share * uy) - half[1])


@leaf
def _segment_excess(ax: float, ay: float, bx: float, by: float, half: _Half) -> float:
    """Return the excess of a segment over a rectangle about the origin, along the axis with more.

    That is the largest of four linear functions, so it is least at an end, or where two of them cross.
    """
    ux, uy = bx - ax, by - ay
    k = half[0] - half[1]
    least = min(max(abs(ax) - half[0], abs(ay) - half[1]), max(abs(bx) - half[0], abs(by) - half[1]))
    least = min(least, _excess_at(ax, ay, ux, uy, -ax, ux, half))
    least = min(least, _excess_at(ax, ay, ux, uy, -ay, uy, half))
    least = min(least, _excess_at(ax, ay, ux, uy, k - (ax - ay), ux - uy, half))
    least = min(least, _excess_at(ax, ay, ux, uy, -k - (ax - ay), ux - uy, half))
    least = min(least, _excess_at(ax, ay, ux, uy, k - (ax + ay), ux + uy, half))
    return min(least, _excess_at(ax, ay, ux, uy, -k - (ax + ay), ux + uy, half))


@leaf
def _beyond(
    clauses: Clauses, subscription: int, objects: Objects, slot: int, x_m: float, y_m: float
) -> float:
    """Return the excess of an object over a moving rectangle about a place; not above 0 within it."""
    row = clauses.subscriptions[subscription]
    half = (row["x2_m"], row["y2_m"])
    place = objects.areas.of_object[slot] - 1
    if place == POINT - 1:
        item = objects.rows[slot]
        return float(max(abs(item["x_m"] - x_m) - half[0], abs(item["y_m"] - y_m) - half[1]))
    area = objects.areas.rows[place]
    if area["ring_count"] == 0:
        return float(
            max(
                max(area["x1_m"] - x_m, x_m - area["x2_m"]) - half[0],
                max(area["y1_m"] - y_m, y_m - area["y2_m"]) - half[1],
            )
        )
    rings = objects.areas.rings
    start, stop = rings.offsets[area["ring_start"]], rings.offsets[area["ring_start"] + 1]
    west_m, south_m, east_m, north_m = x_m - half[0], y_m - half[1], x_m + half[0], y_m + half[1]
    if box_meets_polygon(west_m, south_m, east_m, north_m, rings.x_m, rings.y_m, start, stop):
        return 0.0
    least = np.inf
    ax, ay = rings.x_m[stop - 1] - x_m, rings.y_m[stop - 1] - y_m
    for i in range(start, stop):
        bx, by = rings.x_m[i] - x_m, rings.y_m[i] - y_m
        least = min(least, _segment_excess(ax, ay, bx, by, half))
        ax, ay = bx, by
    return max(least, _TINY_M)


@leaf
def _measured(
    clauses: Clauses, subscription: int, objects: Objects, slot: int, middle: _Half, reach_m: float
) -> _Half:
    """Return the distance of an object's point from the middle of a range, and that of its area.

    The first is NO_MATCH if the object is not within the range. The second is valid for moving ranges and
    for circles. It is the distance of the nearest point of the object's area, 0 if the middle is within
    it, or that of the object's point if it has no area. For moving rectangles it is the excess of the
    object, along the axis where it is larger; not above 0 within the rectangle.
    """
    item = objects.rows[slot]
    x_m, y_m = middle
    away_m = length(item["x_m"] - x_m, item["y_m"] - y_m, 0.0)
    place = objects.areas.of_object[slot] - 1
    nearest_m = away_m
    if clauses.subscriptions[subscription]["shape"] == CIRCLE:
        if place != POINT - 1:
            nearest_m = _area_distance(objects.areas, place, x_m, y_m)
        is_within = nearest_m <= reach_m
    elif clauses.subscriptions[subscription]["is_moving"]:
        nearest_m = _beyond(clauses, subscription, objects, slot, x_m, y_m)
        is_within = nearest_m <= reach_m
    elif place != POINT - 1:
        is_within = _meets_area(clauses, subscription, objects.areas, place)
    else:
        is_within = _is_inside(clauses, subscription, item["x_m"], item["y_m"])
    return (away_m if is_within else NO_MATCH), nearest_m


@kernel
def measure_found(
    clauses: Clauses,
    objects: Objects,
    ranges: Ranges,
    expressions: tuple[Slots, Ints],
    rows: Ints,
    object_slots: Slots,
    seen: tuple[Ints, int],
    distance_m: Floats,
    nearest_m: Floats,
) -> None:
    """Test the objects that were found near ranges, each pair once.

    Parameters
    ----------
    clauses, objects
        All clauses and objects.
    ranges
        The ranges to test.
    expressions
        Slots of clauses, and for each range the first of them (and one number more).
    rows, object_slots
        The pairs: rows of `ranges`, increasing. A pair may be present more than once. If a range has only
        one clause, the object has its required keywords.
    seen
        A mark for each slot of an object; and a mark above all of them. The kernel writes this mark and
        larger ones, fewer than there are ranges above it.
    distance_m, nearest_m
        Output: see `_measured`.
    """
    clause_slots, offsets = expressions
    marks, first_mark = seen
    table = new_table(0)
    row = -1
    is_plain = True
    for i in range(rows.shape[0]):
        distance_m[i] = NO_MATCH
        if rows[i] != row:
            row = rows[i]
            is_plain = offsets[row + 1] - offsets[row] == 1 and (
                clauses.clauses[clause_slots[offsets[row]]]["excluded"] == NOTHING
            )
            if not is_plain:
                if table.keywords.shape[0] == 0:
                    table = new_table(TABLE_SIZE)
                fill_table(table, clauses, clause_slots[offsets[row] : offsets[row + 1]])
        slot = object_slots[i]
        item = objects.rows[slot]
        if marks[slot] == first_mark + row or item["id"] < ranges.first_id[row]:
            continue
        marks[slot] = first_mark + row
        if not is_plain:
            start = item["keyword_start"]
            if not matches_clause(table, objects.pool[start : start + item["keyword_count"]]):
                continue
        distance_m[i], nearest_m[i] = _measured(
            clauses,
            ranges.slots[row],
            objects,
            slot,
            (ranges.x_m[row], ranges.y_m[row]),
            ranges.reach_m[row],
        )


@kernel
def measure_concerned(
    clauses: Clauses,
    objects: Objects,
    ranges: Ranges,
    clause_slots: Slots,
    rows: Ints,
    object_slots: Slots,
    seen: tuple[Ints, int],
    distance_m: Floats,
    nearest_m: Floats,
) -> None:
    """Test the clauses that objects may match; each subscription and object once.

    Parameters
    ----------
    clauses, objects, ranges
        All clauses and objects, and the places of ranges.
    clause_slots, rows, object_slots
        The pairs: clauses, rows of `ranges`, and objects, with those of one object in succession.
        Required keywords have been compared.
    seen
        As in `measure_found`, by row of `ranges`.
    distance_m, nearest_m
        Output: see `_measured`.
    """
    marks, mark = seen
    before = -1
    for i in range(rows.shape[0]):
        distance_m[i] = NO_MATCH
        slot, row = object_slots[i], rows[i]
        if slot != before:
            mark += 1
            before = slot
        item = objects.rows[slot]
        if marks[row] == mark or item["id"] < ranges.first_id[row]:
            continue
        start = item["keyword_start"]
        words = objects.pool[start : start + item["keyword_count"]]
        if _is_excluded(clauses, clause_slots[i], words):
            continue
        marks[row] = mark  # if it is not in range, other clauses make no difference
        distance_m[i], nearest_m[i] = _measured(
            clauses,
            ranges.slots[row],
            objects,
            slot,
            (ranges.x_m[row], ranges.y_m[row]),
            ranges.reach_m[row],
        )


@kernel
def fill_cores(
    subscriptions: Rows, slots: Slots, x_m: Floats, y_m: Floats, reach_m: Floats, boxes: Floats
) -> None:
    """Write a box that lies within each subscription's range at a place; `boxes` is as in `fill_boxes`.

    In a circle it is somewhat smaller than the largest square: an object within it is also computed to be
    within its reach. For a moving rectangle it is almost the rectangle. Other ranges have none: their
    bounds are reversed.
    """
    for i in range(slots.shape[0]):
        row = subscriptions[slots[i]]
        if row["shape"] == CIRCLE:
            half_m = _CORE_SHARE * reach_m[i]
            boxes[0, i] = np.nextafter(x_m[i] - half_m, np.inf)
            boxes[1, i] = np.nextafter(y_m[i] - half_m, np.inf)
            boxes[2, i] = np.nextafter(x_m[i] + half_m, -np.inf)
            boxes[3, i] = np.nextafter(y_m[i] + half_m, -np.inf)
        elif row["is_moving"]:
            half_x_m = (row["x2_m"] + reach_m[i]) * _CERTAIN_SHARE
            half_y_m = (row["y2_m"] + reach_m[i]) * _CERTAIN_SHARE
            boxes[0, i] = np.nextafter(x_m[i] - half_x_m, np.inf)
            boxes[1, i] = np.nextafter(y_m[i] - half_y_m, np.inf)
            boxes[2, i] = np.nextafter(x_m[i] + half_x_m, -np.inf)
            boxes[3, i] = np.nextafter(y_m[i] + half_y_m, -np.inf)
        else:
            boxes[0, i] = boxes[1, i] = np.inf
            boxes[2, i] = boxes[3, i] = -np.inf


@kernel
def fill_boxes(
    subscriptions: Rows, slots: Slots, x_m: Floats, y_m: Floats, reach_m: Floats, boxes: Floats
) -> None:
    """Write the box about each subscription's range at a place; `boxes` has shape (4, subscriptions).

    The box of a circle contains every object, including the nearest point of an area, that may be
    computed to be within its reach and has float64 coordinates: a difference, a square root and a sum
    each have a relative error below 2**-52. The same holds for a moving rectangle.
    """
    for i in range(slots.shape[0]):
        row = subscriptions[slots[i]]
        if row["shape"] == CIRCLE:
            grown_m = reach_m[i] * (1.0 + 1e-15) + 1e-150
            boxes[0, i] = np.nextafter(x_m[i] - grown_m, -np.inf)
            boxes[1, i] = np.nextafter(y_m[i] - grown_m, -np.inf)
            boxes[2, i] = np.nextafter(x_m[i] + grown_m, np.inf)
            boxes[3, i] = np.nextafter(y_m[i] + grown_m, np.inf)
        elif row["is_moving"]:
            grown_x_m = (row["x2_m"] + reach_m[i]) * (1.0 + 1e-15) + 1e-150
            grown_y_m = (row["y2_m"] + reach_m[i]) * (1.0 + 1e-15) + 1e-150
            boxes[0, i] = np.nextafter(x_m[i] - grown_x_m, -np.inf)
            boxes[1, i] = np.nextafter(y_m[i] - grown_y_m, -np.inf)
            boxes[2, i] = np.nextafter(x_m[i] + grown_x_m, np.inf)
            boxes[3, i] = np.nextafter(y_m[i] + grown_y_m, np.inf)
        else:
            boxes[0, i] = row["x1_m"]
            boxes[1, i] = row["y1_m"]
            boxes[2, i] = row["x2_m"]
            boxes[3, i] = row["y2_m"]
