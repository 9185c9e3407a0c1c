"""Define the plane shapes of ranges and areas, in metres: circles, rectangles, polygons with holes.

All are closed sets: they include their edges, and those of holes. Plain Python; `shape_kernels` decides
whether shapes meet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from safe_region.earth.frame import Point
from safe_region.geometry.exact_geometry import COORDINATE_M_MAX, OUTSIDE, Ring, on_grid, side_of_ring
from safe_region.geometry.polygon_validity import flaw

_UNDERFLOW_M = 1e-150
"""Squares of smaller differences may be rounded to 0, and so may distances."""


@dataclass(frozen=True, slots=True)
class RectangleShape:
    """A rectangle along the axes: x1_m <= x2_m and y1_m <= y2_m. It may be a segment or a point."""

    x1_m: float
    y1_m: float
    x2_m: float
    y2_m: float

    def box(self) -> RectangleShape:
        """Return the rectangle itself."""
        return self

    def center(self) -> Point:
        """Return its middle, rounded, which lies in it."""
        return Point((self.x1_m + self.x2_m) / 2.0, (self.y1_m + self.y2_m) / 2.0)

    def flaw(self) -> str | None:
        """Return a description of its flaw; None if it is valid."""
        if not all(map(_is_coordinate, (self.x1_m, self.y1_m, self.x2_m, self.y2_m))):
            return f"a side is not finite, or beyond {COORDINATE_M_MAX:g} m"
        if self.x1_m > self.x2_m:
            return "the west side lies east of the east side"
        if self.y1_m > self.y2_m:
            return "the south side lies north of the north side"
        return None


@dataclass(frozen=True, slots=True)
class CircleShape:
    """A circle: all points p with sqrt(dx*dx + dy*dy) <= radius_m, d = p - (x_m, y_m), in float64."""

    x_m: float
    y_m: float
    radius_m: float

    def box(self) -> RectangleShape:
        """Return a rectangle that contains every float64 point of the circle.

        Let (px, py) be such a point, dx = px - x_m rounded, R the radius. Rounding never reverses an
        order, so sqrt(dx*dx) <= sqrt(dx*dx + dy*dy) <= R as computed; and sqrt(dx*dx) as computed is |dx|
        (in binary floating point, without underflow). So |dx| <= R, or |dx| is so small that its square
        underflows: in any case |dx| <= S = max(R, 1e-150). The exact difference px - x_m was rounded to
        dx, so it is less than the float64 after S, called T. So px < x_m + T, and because px is a
        float64, px <= x_m + T as computed. The same holds to the west, and for y.
        """
        beyond_m = math.nextafter(max(self.radius_m, _UNDERFLOW_M), math.inf)
        return RectangleShape(
            self.x_m - beyond_m, self.y_m - beyond_m, self.x_m + beyond_m, self.y_m + beyond_m
        )

    def center(self) -> Point:
        """Return its centre."""
        return Point(self.x_m, self.y_m)

    def flaw(self) -> str | None:
        """Return a description of its flaw; None if it is valid."""
        if not (_is_coordinate(self.x_m) and _is_coordinate(self.y_m)):
            return f"the centre is not finite, or beyond {COORDINATE_M_MAX:g} m"
        if not 0.0 < self.radius_m <= COORDINATE_M_MAX:
            return f"the radius is {self.radius_m:g} m, must be above 0, at most {COORDINATE_M_MAX:g} m"
        return None


@dataclass(frozen=True, slots=True)
class PolygonShape:
    """A polygon: its outer ring, then holes, each as vertices of which the first is not repeated.

    `polygon_validity` defines which polygons are valid.
    """

    rings: tuple[tuple[tuple[float, float], ...], ...]

    def box(self) -> RectangleShape:
        """Return the rectangle about it. O(vertices)."""
        xs = [x_m for x_m, _ in self.rings[0]]
        ys = [y_m for _, y_m in self.rings[0]]
        return RectangleShape(min(xs), min(ys), max(xs), max(ys))

    def center(self) -> Point:
        """Return the middle of its box, which may lie outside of it. O(vertices)."""
        return self.box().center()

    def vertex_count(self) -> int:
        """Return the number of vertices of all rings."""
        return sum(map(len, self.rings))

    def flaw(self) -> str | None:
        """Return a description of its flaw; None if it is valid. Cost: see `polygon_validity`."""
        return flaw(self.rings)


Shape = CircleShape | RectangleShape | PolygonShape


def inner_point(ring: Ring) -> Point:
    """Return the point that represents a simple polygon without holes, always the same one.

    It is the middle of the widest of the chords that the polygon cuts from one horizontal line, near the
    middle of its height and with no vertex on it; or a vertex, if no float64 point nearby lies inside.

    Parameters
    ----------
    ring
        The vertices, plane metres. O(vertices log vertices).
    """
    level = _level(ring)
    crossings = []
    ax, ay = ring[-1]
    for bx, by in ring:
        if (ay > level) != (by > level):
            crossings.append(ax + (level - ay) / (by - ay) * (bx - ax))
        ax, ay = bx, by
    crossings.sort()
    chords = list(zip(crossings[::2], crossings[1::2], strict=True))
    if chords:
        west, east = max(chords, key=lambda chord: chord[1] - chord[0])
        found = ((west + east) / 2.0, level)
        on_grid_ring, on_grid_point = on_grid([ring, [found]])
        if side_of_ring(on_grid_ring, on_grid_point[0]) != OUTSIDE:
            return Point(*found)
    return Point(*ring[0])


def _level(ring: Ring) -> float:
    """Return the middle between the vertex heights next below and next above the middle of the ring."""
    heights = [y_m for _, y_m in ring]
    middle = (min(heights) + max(heights)) / 2.0
    below = max(y_m for y_m in heights if y_m <= middle)
    above = min((y_m for y_m in heights if y_m > middle), default=below)
    return (below + above) / 2.0


def _is_coordinate(value_m: float) -> bool:
    return math.isfinite(value_m) and abs(value_m) <= COORDINATE_M_MAX
