"""Decide from the definition whether objects lie in a range: the oracle's geometry.

Sets are closed. An object is within a circle if it is at most the radius away, by one expression in
float64. Everything else is decided by comparisons, and by fractions where a number would have to be
rounded. No code is shared with `shapes` and the kernels. Shapes are assumed to be valid: polygons have an
outer ring, then holes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

Point = tuple[float, float]
Ring = tuple[Point, ...]
Segment = tuple[Point, Point]


class OracleCircle(NamedTuple):
    """A circle, in plane metres."""

    radius_m: float
    center: Point | None = None
    """None: the device's position."""


class OracleRectangle(NamedTuple):
    """A rectangle along the axes, in plane metres."""

    x1_m: float
    y1_m: float
    x2_m: float
    y2_m: float


class OracleExtent(NamedTuple):
    """A rectangle along the axes about a place, in plane metres."""

    width_m: float
    height_m: float
    center: Point | None = None
    """None: the device's position."""


class OraclePolygon(NamedTuple):
    """A polygon, in plane metres: its outer ring, then holes. No ring repeats its first vertex."""

    rings: tuple[Ring, ...]


Range = OracleCircle | OracleRectangle | OracleExtent | OraclePolygon
Area = OracleRectangle | OraclePolygon


def center(wanted: Range) -> Point:
    """Return the centre of a circle that has one, or the middle of the box about any other range."""
    if isinstance(wanted, OracleCircle | OracleExtent):
        if wanted.center is None:
            raise ValueError("a range about the device has no fixed centre")
        return wanted.center
    corners = [vertex for ring in _rings(wanted) for vertex in ring]
    xs = [x for x, _ in corners]
    ys = [y for _, y in corners]
    return (min(xs) + max(xs)) / 2.0, (min(ys) + max(ys)) / 2.0


def is_within(wanted: Range, point: Point, area: Area | None) -> bool:
    """Return whether an object meets a range: its area, if it has one, otherwise its point."""
    if isinstance(wanted, OracleCircle):
        return _distance(center(wanted), point, area) <= wanted.radius_m
    if isinstance(wanted, OracleExtent):
        return _is_near(wanted, point, area)
    if area is not None:
        return _meet(wanted, area)
    return contains(wanted, point)


def _is_near(wanted: OracleExtent, point: Point, area: Area | None) -> bool:
    """Return whether an object is at most half a side away along both axes.

    A polygon must meet the rectangle.
    """
    x, y = center(wanted)
    half_x, half_y = wanted.width_m / 2.0, wanted.height_m / 2.0
    if isinstance(area, OraclePolygon):
        return _meet(OracleRectangle(x - half_x, y - half_y, x + half_x, y + half_y), area)
    if area is None:
        area = OracleRectangle(*point, *point)
    nearest_x = min(max(x, area.x1_m), area.x2_m)
    nearest_y = min(max(y, area.y1_m), area.y2_m)
    return abs(x - nearest_x) <= half_x and abs(y - nearest_y) <= half_y


def _distance(here: Point, point: Point, area: Area | None) -> float:
    """Return the distance to an object in float64, 0 within its area."""
    x, y = here
    if isinstance(area, OracleRectangle):
        nearest_x = min(max(x, area.x1_m), area.x2_m)
        nearest_y = min(max(y, area.y1_m), area.y2_m)
        return _length(x - nearest_x, y - nearest_y)
    if isinstance(area, OraclePolygon):
        return 0.0 if contains(area, here) else min(to_segment(here, edge) for edge in edges(area))
    return _length(x - point[0], y - point[1])


def _length(dx: float, dy: float) -> float:
    return math.sqrt(dx * dx + dy * dy)


def to_segment(here: Point, segment: Segment) -> float:
    """Return the distance to a segment: to an end, or to the rounded foot on it."""
    (x, y), ((ax, ay), (bx, by)) = here, segment
    ux, uy = bx - ax, by - ay
    square = ux * ux + uy * uy
    share = ((x - ax) * ux + (y - ay) * uy) / square if square > 0.0 else 0.0
    if share <= 0.0:
        return _length(x - ax, y - ay)
    if share >= 1.0:
        return _length(x - bx, y - by)
    return _length(x - (ax + share * ux), y - (ay + share * uy))


def _rings(shape: Area) -> tuple[Ring, ...]:
    if isinstance(shape, OraclePolygon):
        return shape.rings
    x1, y1, x2, y2 = shape
    return (((x1, y1), (x2, y1), (x2, y2), (x1, y2)),)


def edges(shape: Area) -> Iterator[Segment]:
    """Yield the edges of all rings."""
    for ring in _rings(shape):
        for i, vertex in enumerate(ring):
            yield ring[i - 1], vertex


def contains(shape: Area, point: Point) -> bool:
    """Return whether a point is on an edge, or its ray to the east crosses an odd number of edges."""
    x, y = point
    if isinstance(shape, OracleRectangle):
        return shape.x1_m <= x <= shape.x2_m and shape.y1_m <= y <= shape.y2_m
    is_inside = False
    for edge in edges(shape):
        if is_on(point, edge):
            return True
        (ax, ay), (bx, by) = edge
        if min(ay, by) <= y < max(ay, by):
            share = (Fraction(y) - Fraction(ay)) / (Fraction(by) - Fraction(ay))
            if Fraction(ax) + share * (Fraction(bx) - Fraction(ax)) > x:
                is_inside = not is_inside
    return is_inside


def _meet(one: Area, other: Area) -> bool:
    """Return whether two areas meet: two of their edges do, or one area lies within the other."""
    if isinstance(one, OracleRectangle) and isinstance(other, OracleRectangle):
        is_apart_x = one.x2_m < other.x1_m or other.x2_m < one.x1_m
        return not (is_apart_x or one.y2_m < other.y1_m or other.y2_m < one.y1_m)
    if any(segments_meet(edge, far) for edge in edges(one) for far in edges(other)):
        return True
    return any(contains(one, vertex) for vertex in _rings(other)[0]) or any(
        contains(other, vertex) for vertex in _rings(one)[0]
    )


def _turn(a: Point, b: Point, c: Point) -> Fraction:
    """Return twice the area of a triangle, exactly; negative if it is clockwise."""
    ax, ay = Fraction(a[0]), Fraction(a[1])
    ux, uy = Fraction(b[0]) - ax, Fraction(b[1]) - ay
    return ux * (Fraction(c[1]) - ay) - uy * (Fraction(c[0]) - ax)


def is_on(point: Point, segment: Segment) -> bool:
    """Return whether a point is on a segment, its ends included."""
    a, b = segment
    if not (min(a[0], b[0]) <= point[0] <= max(a[0], b[0])):
        return False
    if not (min(a[1], b[1]) <= point[1] <= max(a[1], b[1])):
        return False
    return _turn(a, b, point) == 0


def segments_meet(one: Segment, other: Segment) -> bool:
    """Return whether an end lies on the other segment, or both cross between their ends."""
    (a, b), (c, d) = one, other
    if max(a[0], b[0]) < min(c[0], d[0]) or max(c[0], d[0]) < min(a[0], b[0]):
        return False
    if max(a[1], b[1]) < min(c[1], d[1]) or max(c[1], d[1]) < min(a[1], b[1]):
        return False
    if is_on(a, other) or is_on(b, other) or is_on(c, one) or is_on(d, one):
        return True
    ux, uy = Fraction(b[0]) - Fraction(a[0]), Fraction(b[1]) - Fraction(a[1])
    vx, vy = Fraction(d[0]) - Fraction(c[0]), Fraction(d[1]) - Fraction(c[1])
    determinant = ux * vy - uy * vx
    if determinant == 0:
        return False
    wx, wy = Fraction(c[0]) - Fraction(a[0]), Fraction(c[1]) - Fraction(a[1])
    along_one = (wx * vy - wy * vx) / determinant
    along_other = (wx * uy - wy * ux) / determinant
    return 0 < along_one < 1 and 0 < along_other < 1
