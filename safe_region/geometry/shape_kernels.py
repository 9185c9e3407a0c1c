"""Test whether ranges and objects meet: circles, rectangles, polygons with holes; objects may be points.

In `<range>_meets_<area>` the range of a subscription comes first, then the area of an object. A circle
meets what is at most its radius away (`ring_distance`, `segment_kernels.box_distance`). All sets are
closed. Tests between polygons, segments and rectangles are exact on the given float64. A distance is one
expression, `sqrt(dx*dx + dy*dy)`, of the differences to a point of float64 coordinates: to the object
itself; to the nearest point of a rectangle; to the nearest point of a polygon's edge, which is rounded,
but within the box about the edge. So an object that meets a circle meets its box
(`shapes.CircleShape.box`), and indexes may filter by boxes.

A polygon lies in a shared pool: `x_m, y_m` are vertices, ring i is `ring_offsets[i]` up to
`ring_offsets[i + 1]`, and a polygon is `ring_count` rings from `first_ring` on, the outer one first, then
holes. An area is one ring, `start` up to `stop` of its own pool. Rings may have either direction; the
first vertex is not repeated. They are valid (`polygon_validity`).

Nothing is allocated. Coordinates are 0 or between 1e-280 and 1e17 in magnitude (`orientation_kernels`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from safe_region.geometry.orientation_kernels import orientation
from safe_region.geometry.segment_kernels import (
    boxes_meet,
    segment_distance,
    segment_meets_box,
    segments_meet,
)
from safe_region.jit import leaf

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_OUTSIDE = -1
_ON_EDGE = 0
_INSIDE = 1


@leaf
def ring_side(ring_x_m: Floats, ring_y_m: Floats, start: int, stop: int, x_m: float, y_m: float) -> int:
    """Return whether a point lies inside a ring, on an edge or outside, by a ray to the east.

    The ray crosses an odd number of edges from inside. An edge includes its lower end and excludes its
    upper one, so that a vertex on the ray counts once.
    """
    side = _OUTSIDE
    ax = ring_x_m[stop - 1]
    ay = ring_y_m[stop - 1]
    for i in range(start, stop):
        bx = ring_x_m[i]
        by = ring_y_m[i]
        if bx == x_m and by == y_m:
            return _ON_EDGE
        if (ay > y_m) != (by > y_m):
            if x_m < min(ax, bx):
                side = -side
            elif x_m <= max(ax, bx):
                turn = orientation(ax, ay, bx, by, x_m, y_m)
                if turn == 0:
                    return _ON_EDGE
                if (turn > 0) == (by > ay):
                    side = -side
        elif ay == y_m and by == y_m and min(ax, bx) <= x_m <= max(ax, bx):
            return _ON_EDGE
        ax = bx
        ay = by
    return side


@leaf
def polygon_contains(
    range_x_m: Floats,
    range_y_m: Floats,
    ring_offsets: Ints,
    first_ring: int,
    ring_count: int,
    x_m: float,
    y_m: float,
) -> bool:
    """Return whether a point lies in a polygon with holes, including its edges and those of the holes.

    O(vertices).
    """
    side = _OUTSIDE
    for ring in range(first_ring, first_ring + ring_count):
        of_ring = ring_side(range_x_m, range_y_m, ring_offsets[ring], ring_offsets[ring + 1], x_m, y_m)
        if of_ring == _ON_EDGE:
            return True
        side *= -of_ring
    return side == _INSIDE


@leaf
def ring_contains(
    area_x_m: Floats, area_y_m: Floats, start: int, stop: int, x_m: float, y_m: float
) -> bool:
    """Return whether a point lies in a polygon without holes, including its edges. O(vertices)."""
    return ring_side(area_x_m, area_y_m, start, stop, x_m, y_m) != _OUTSIDE


@leaf
def ring_distance(
    area_x_m: Floats, area_y_m: Floats, start: int, stop: int, x_m: float, y_m: float
) -> float:
    """Return the distance from a point to a polygon without holes, metres; 0 within it. O(vertices)."""
    if ring_contains(area_x_m, area_y_m, start, stop, x_m, y_m):
        return 0.0
    least = np.inf
    ax = area_x_m[stop - 1]
    ay = area_y_m[stop - 1]
    for i in range(start, stop):
        bx = area_x_m[i]
        by = area_y_m[i]
        least = min(least, segment_distance(x_m, y_m, ax, ay, bx, by))
        ax = bx
        ay = by
    return least


@leaf
def _ring_edges_meet_box(
    ring_x_m: Floats,
    ring_y_m: Floats,
    start: int,
    stop: int,
    x1_m: float,
    y1_m: float,
    x2_m: float,
    y2_m: float,
) -> bool:
    """Return whether some edge of a ring has a point in common with a rectangle. O(vertices)."""
    ax = ring_x_m[stop - 1]
    ay = ring_y_m[stop - 1]
    for i in range(start, stop):
        bx = ring_x_m[i]
        by = ring_y_m[i]
        if segment_meets_box(ax, ay, bx, by, x1_m, y1_m, x2_m, y2_m):
            return True
        ax = bx
        ay = by
    return False


@leaf
def box_meets_polygon(
    x1_m: float,
    y1_m: float,
    x2_m: float,
    y2_m: float,
    area_x_m: Floats,
    area_y_m: Floats,
    start: int,
    stop: int,
) -> bool:
    """Return whether a rectangle and a polygon without holes have a point in common. O(vertices)."""
    # If no edge reaches the rectangle, all of it is inside or all is outside, and so is any corner.
    return _ring_edges_meet_box(area_x_m, area_y_m, start, stop, x1_m, y1_m, x2_m, y2_m) or ring_contains(
        area_x_m, area_y_m, start, stop, x1_m, y1_m
    )


@leaf
def polygon_meets_box(
    range_x_m: Floats,
    range_y_m: Floats,
    ring_offsets: Ints,
    first_ring: int,
    ring_count: int,
    x1_m: float,
    y1_m: float,
    x2_m: float,
    y2_m: float,
) -> bool:
    """Return whether a polygon with holes and a rectangle have a point in common. O(vertices)."""
    for ring in range(first_ring, first_ring + ring_count):
        start = ring_offsets[ring]
        stop = ring_offsets[ring + 1]
        if _ring_edges_meet_box(range_x_m, range_y_m, start, stop, x1_m, y1_m, x2_m, y2_m):
            return True
    return polygon_contains(range_x_m, range_y_m, ring_offsets, first_ring, ring_count, x1_m, y1_m)


@leaf
def _edge_meets_ring(
    ax_m: float,
    ay_m: float,
    bx_m: float,
    by_m: float,
    ring_x_m: Floats,
    ring_y_m: Floats,
    start: int,
    stop: int,
) -> bool:
    """Return whether a segment has a point in common with some edge of a ring. O(vertices)."""
    cx = ring_x_m[stop - 1]
    cy = ring_y_m[stop - 1]
    for i in range(start, stop):
        dx = ring_x_m[i]
        dy = ring_y_m[i]
        if segments_meet(ax_m, ay_m, bx_m, by_m, cx, cy, dx, dy):
            return True
        cx = dx
        cy = dy
    return False


@leaf
def polygons_meet(
    range_x_m: Floats,
    range_y_m: Floats,
    ring_offsets: Ints,
    first_ring: int,
    ring_count: int,
    area_x_m: Floats,
    area_y_m: Floats,
    start: int,
    stop: int,
) -> bool:
    """Return whether a polygon with holes and one without have a point in common.

    O(vertices of both), and O(vertices of the area) more for each edge of the range near the area.
    """
    x1 = x2 = area_x_m[start]
    y1 = y2 = area_y_m[start]
    for i in range(start + 1, stop):
        x1 = min(x1, area_x_m[i])
        y1 = min(y1, area_y_m[i])
        x2 = max(x2, area_x_m[i])
        y2 = max(y2, area_y_m[i])
    for ring in range(first_ring, first_ring + ring_count):
        ax = range_x_m[ring_offsets[ring + 1] - 1]
        ay = range_y_m[ring_offsets[ring + 1] - 1]
        for i in range(ring_offsets[ring], ring_offsets[ring + 1]):
            bx = range_x_m[i]
            by = range_y_m[i]
            if boxes_meet(
                min(ax, bx), min(ay, by), max(ax, bx), max(ay, by), x1, y1, x2, y2
            ) and _edge_meets_ring(ax, ay, bx, by, area_x_m, area_y_m, start, stop):
                return True
            ax = bx
            ay = by
    # No edges meet: the area lies inside the range, or outside of it, or encloses its outer ring.
    outer = ring_offsets[first_ring]
    return polygon_contains(
        range_x_m, range_y_m, ring_offsets, first_ring, ring_count, area_x_m[start], area_y_m[start]
    ) or ring_contains(area_x_m, area_y_m, start, stop, range_x_m[outer], range_y_m[outer])
