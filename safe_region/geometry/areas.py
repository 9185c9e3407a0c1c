"""Measure the distance from a point to the area of an object on the plane, on devices.

The expressions are those of the kernels (`segment_kernels`, `shape_kernels`), in float64, so that server
and device round alike. The test whether a point lies within a polygon is exact. Plain Python: this file
runs on devices.
"""

from __future__ import annotations

import math

from safe_region.earth.frame import Frame, Point
from safe_region.earth.shapes import Bounds, ObjectArea
from safe_region.geometry.exact_geometry import on_grid
from safe_region.geometry.exact_geometry import orientation as exact_orientation
from safe_region.geometry.shapes import PolygonShape, RectangleShape

AreaShape = RectangleShape | PolygonShape
"""An area: a rectangle, or a polygon of one ring."""

_Vertex = tuple[float, float]

_TURN_ERROR = 4e-16
"""A fraction of the sum of the two products' magnitudes. If their difference is larger, its sign is
correct. The true bound is 3.4e-16, about three roundings."""


def plane_area(area: ObjectArea, frame: Frame) -> AreaShape:
    """Return an area on the plane. O(vertices)."""
    if isinstance(area, Bounds):
        west, south = frame.project(area.lon_min, area.lat_min)
        east, north = frame.project(area.lon_max, area.lat_max)
        return RectangleShape(west, south, east, north)
    ring = (frame.project(lon, lat) for lon, lat in area.outer)
    return PolygonShape((tuple((point.x_m, point.y_m) for point in ring),))


def area_distance(area: AreaShape, x_m: float, y_m: float) -> float:
    """Return the distance from a point to an area in metres; 0 within it. O(vertices)."""
    if isinstance(area, RectangleShape):
        dx = max(area.x1_m - x_m, x_m - area.x2_m, 0.0)
        dy = max(area.y1_m - y_m, y_m - area.y2_m, 0.0)
        return math.sqrt(dx * dx + dy * dy)
    ring = area.rings[0]
    if _is_within(ring, x_m, y_m):
        return 0.0
    return min(_segment_distance(x_m, y_m, ring[i - 1], ring[i]) for i in range(len(ring)))


def area_extent(area: AreaShape, x_m: float, y_m: float) -> float:
    """Return the largest distance from a point to a point of an area in metres. O(vertices)."""
    if isinstance(area, RectangleShape):
        dx = max(abs(area.x1_m - x_m), abs(area.x2_m - x_m))
        dy = max(abs(area.y1_m - y_m), abs(area.y2_m - y_m))
        return math.sqrt(dx * dx + dy * dy)
    squares = ((ax - x_m) * (ax - x_m) + (ay - y_m) * (ay - y_m) for ax, ay in area.rings[0])
    return math.sqrt(max(squares))


def area_meets_box(area: AreaShape, box: RectangleShape) -> bool:
    """Return whether an area and a rectangle have a point in common, exactly. O(vertices)."""
    if isinstance(area, RectangleShape):
        return _boxes_meet((area.x1_m, area.y1_m), (area.x2_m, area.y2_m), box)
    ring = area.rings[0]
    # If no edge reaches the rectangle, all of it is inside or all is outside, and so is any corner.
    return any(_meets_box(ring[i - 1], ring[i], box) for i in range(len(ring))) or _is_within(
        ring, box.x1_m, box.y1_m
    )


def _boxes_meet(one: _Vertex, other: _Vertex, box: RectangleShape) -> bool:
    """Return whether the box about two points meets another box."""
    return (
        min(one[0], other[0]) <= box.x2_m
        and max(one[0], other[0]) >= box.x1_m
        and min(one[1], other[1]) <= box.y2_m
        and max(one[1], other[1]) >= box.y1_m
    )


def _meets_box(a: _Vertex, b: _Vertex, box: RectangleShape) -> bool:
    """Return whether a segment meets a box.

    They meet if their boxes do and not all corners lie strictly on one side of the segment's line.
    """
    if not _boxes_meet(a, b, box):
        return False
    corners = ((box.x1_m, box.y1_m), (box.x2_m, box.y1_m), (box.x2_m, box.y2_m), (box.x1_m, box.y2_m))
    turns = [_turn(a, b, corner) for corner in corners]
    return min(turns) <= 0.0 <= max(turns)


def _segment_distance(x_m: float, y_m: float, a: _Vertex, b: _Vertex) -> float:
    ax, ay = a
    bx, by = b
    along_x, along_y = bx - ax, by - ay
    square = along_x * along_x + along_y * along_y
    share = 0.0
    if square > 0.0:
        share = ((x_m - ax) * along_x + (y_m - ay) * along_y) / square
    nearest = Point(ax, ay)
    if share >= 1.0:
        nearest = Point(bx, by)
    elif share > 0.0:
        nearest = Point(ax + share * along_x, ay + share * along_y)
    dx, dy = x_m - nearest.x_m, y_m - nearest.y_m
    return math.sqrt(dx * dx + dy * dy)


def _is_within(ring: tuple[_Vertex, ...], x_m: float, y_m: float) -> bool:
    """Return whether a point lies inside a ring or on an edge, by the crossings of a ray to the east."""
    is_inside = False
    ax, ay = ring[-1]
    for bx, by in ring:
        if bx == x_m and by == y_m:
            return True
        if (ay > y_m) != (by > y_m):
            if x_m < min(ax, bx):
                is_inside = not is_inside
            elif x_m <= max(ax, bx):
                turn = _turn((ax, ay), (bx, by), (x_m, y_m))
                if turn == 0.0:
                    return True
                if (turn > 0.0) == (by > ay):
                    is_inside = not is_inside
        elif ay == by == y_m and min(ax, bx) <= x_m <= max(ax, bx):
            return True
        ax, ay = bx, by
    return is_inside


def _turn(a: _Vertex, b: _Vertex, c: _Vertex) -> float:
    """Return a number with the sign of the exact orientation: above 0 if c lies left of a to b."""
    left = (a[0] - c[0]) * (b[1] - c[1])
    right = (a[1] - c[1]) * (b[0] - c[0])
    turn = left - right
    if abs(turn) > _TURN_ERROR * (abs(left) + abs(right)):
        return turn
    (grid,) = on_grid([(a, b, c)])
    exact = exact_orientation(*grid)
    return float((exact > 0) - (exact < 0))
