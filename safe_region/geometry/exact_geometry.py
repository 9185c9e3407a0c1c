"""Compute geometry exactly in plain Python: coordinates are integers on a grid that holds all of them.

Every float64 is an integer over a power of two, so there is a grid that holds all vertices of a polygon.
The grid is made twice as fine, so that it also holds the midpoint of any two of them. Sums and products
of coordinates on it are exact. This module is for polygons that are tested once (`polygon_validity`,
`shapes.inner_point`); kernels use `orientation_kernels`.
"""

from __future__ import annotations

from collections.abc import Sequence

COORDINATE_M_MAX = 1e9
"""Of shapes on the plane: far beyond any service area."""

Ring = Sequence[tuple[float, float]]
GridPoint = tuple[int, int]
GridRing = list[GridPoint]

OUTSIDE = -1
ON_EDGE = 0
INSIDE = 1


def on_grid(rings: Sequence[Ring]) -> list[GridRing]:
    """Return rings of finite coordinates on the coarsest grid of this kind. O(vertices)."""
    ratios = [[(x.as_integer_ratio(), y.as_integer_ratio()) for x, y in ring] for ring in rings]
    finest = 2 * max((max(x[1], y[1]) for ring in ratios for x, y in ring), default=1)
    return [[(x[0] * (finest // x[1]), y[0] * (finest // y[1])) for x, y in ring] for ring in ratios]


def orientation(a: GridPoint, b: GridPoint, c: GridPoint) -> int:
    """Return a number above 0 if c lies left of the line from a to b, below 0 if right, 0 if on it."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def middle(a: GridPoint, b: GridPoint) -> GridPoint:
    """Return the point halfway between two vertices."""
    return (a[0] + b[0]) // 2, (a[1] + b[1]) // 2


def side_of_ring(ring: GridRing, point: GridPoint) -> int:
    """Return the side of a ring on which a point lies: INSIDE, ON_EDGE or OUTSIDE. O(vertices).

    From inside, a ray to the east crosses an odd number of edges. An edge includes its lower end and
    excludes its upper one, so that a vertex on the ray counts once.
    """
    x, y = point
    side = OUTSIDE
    a = ring[-1]
    for b in ring:
        if (a[1] > y) != (b[1] > y):
            turn = orientation(a, b, point)
            if turn == 0:
                return ON_EDGE
            if (turn > 0) == (b[1] > a[1]):
                side = -side
        elif b == point or (a[1] == b[1] == y and min(a[0], b[0]) <= x <= max(a[0], b[0])):
            return ON_EDGE
        a = b
    return side
