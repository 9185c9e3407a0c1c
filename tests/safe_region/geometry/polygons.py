"""Random rings and polygons, most of them with edges that touch or points that nearly lie on edges."""

from __future__ import annotations

import math
import random

from safe_region.geometry.polygon_validity import flaw
from safe_region.oracle.plane import OraclePolygon, OracleRectangle

SIDE = 6
LEAST_M = 1e-280
"""The least magnitude of a coordinate that is not 0 (`safe_region/geometry/orientation_kernels.py`)."""


def edges_of(ring):
    return [(ring[i], ring[(i + 1) % len(ring)]) for i in range(len(ring))]


class PolygonDice:
    """Draws from one seed.

    Coordinates are small integers; or all of them are turned by one angle, so that they are any float64
    and what was on a line is only nearly so.
    """

    def __init__(self, seed: int, *, is_turned: bool) -> None:
        self.chance = random.Random(seed)
        angle = self.chance.uniform(0.1, 1.4) if is_turned else 0.0
        self._cos = 1000.0 * math.cos(angle) if is_turned else 1.0
        self._sin = 1000.0 * math.sin(angle)

    def point(self, most: int = SIDE, parts: int = 1) -> tuple[float, float]:
        """Return a point of the grid, or of one that has so many points in place of each."""
        x, y = (self.chance.randint(-most * parts, most * parts) / parts for _ in range(2))
        return self.turned(x, y)

    def turned(self, x: float, y: float) -> tuple[float, float]:
        return self._cos * x - self._sin * y, self._sin * x + self._cos * y

    def ring(self, vertex_count_max: int = 8, most: int = SIDE) -> tuple[tuple[float, float], ...]:
        """Return a simple ring."""
        while True:
            count = self.chance.randint(3, vertex_count_max)
            vertices = [self.point(most) for _ in range(count)]
            for _ in range(20):
                self.chance.shuffle(vertices)
                if flaw([vertices]) is None:
                    return tuple(vertices)

    def polygon(self) -> OraclePolygon:
        """Return a polygon with up to two holes, which may touch what is around them."""
        far = SIDE - 2
        rings = [self.ring()]
        if self.chance.random() < 0.7:
            corners = ((-far, -far), (far, -far), (far, far), (-far, far))
            rings = [tuple(self.turned(*corner) for corner in corners)]
        for _ in range(self.chance.randint(0, 8)):
            more = [*rings, self.ring(5, far)]
            if len(rings) < 3 and flaw(more) is None:
                rings = more
        if self.chance.random() < 0.5:
            rings = [ring[::-1] for ring in rings]
        return OraclePolygon(tuple(rings))

    def area(self) -> OraclePolygon:
        return OraclePolygon((self.ring(6, self.chance.choice((2, 3, SIDE))),))

    def touching_area(self, polygon: OraclePolygon) -> OraclePolygon:
        """Return an area with a vertex on an edge of a polygon, or beside it."""
        while True:
            ring = (self.on_edge(polygon), *self.ring(4)[1:])
            if flaw([ring]) is None:
                return OraclePolygon((ring,))

    def rectangle(self) -> OracleRectangle:
        """Return a rectangle, a segment or a point."""
        (ax, ay), (bx, by) = self.point(), self.point()
        if self.chance.random() < 0.2:
            bx = ax
        if self.chance.random() < 0.2:
            by = ay
        return OracleRectangle(min(ax, bx), min(ay, by), max(ax, bx), max(ay, by))

    def on_edge(self, polygon: OraclePolygon) -> tuple[float, float]:
        """Return a point on an edge, as nearly as it can be; or one next to it."""
        ring = self.chance.choice(polygon.rings)
        i = self.chance.randrange(len(ring))
        (ax, ay), (bx, by) = ring[i - 1], ring[i]
        share = self.chance.choice((0.0, 0.25, 0.5, 1.0, self.chance.random()))
        return self.beside(ax + share * (bx - ax)), self.beside(ay + share * (by - ay))

    def beside(self, value: float) -> float:
        """Return a number, or one of the next after it among those that kernels take for coordinates."""
        for _ in range(self.chance.choice((0, 0, 1, 2))):
            towards = self.chance.choice((-math.inf, math.inf))
            value = math.nextafter(value, towards)
            if abs(value) < LEAST_M:
                value = math.copysign(LEAST_M, towards)
        return value
