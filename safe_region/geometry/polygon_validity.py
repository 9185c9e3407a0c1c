"""Find the flaw of a polygon, exactly.

The rule: a polygon is an outer ring and any number of holes.

* A ring has 3 or more vertices, not all on one line, and no two equal neighbours (the last and the first
  are neighbours, too). It is simple: its edges meet where neighbours share a vertex, and nowhere else.
* Different rings may touch in single points. They do not cross, and share no part of an edge.
* Holes lie within the outer ring and outside of each other.

Edge i of a ring goes from vertex i to the next one; rings and edges count from 0, the outer ring is 0.

Cost: O(n log n) for edges (`edge_sweep`), O(n) for each hole and for each point where rings touch, and
O(n) for each pair of holes whose boxes meet.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

from safe_region.geometry.edge_sweep import MeetingError, touching_points
from safe_region.geometry.exact_geometry import (
    COORDINATE_M_MAX,
    INSIDE,
    OUTSIDE,
    GridPoint,
    GridRing,
    Ring,
    middle,
    on_grid,
    orientation,
    side_of_ring,
)

_VERTEX_COUNT_MIN = 3

_Contacts = dict[tuple[int, int], dict[int, set[GridPoint]]]
"""The points where a ring touches another one, by both rings, then by the edge of the first."""


class _FlawError(Exception):
    """The polygon has a flaw."""


def flaw(rings: Sequence[Ring]) -> str | None:
    """Return a description of the first flaw of a polygon; None if it is valid.

    Parameters
    ----------
    rings
        The outer ring, then holes, as vertices in plane metres, the first one not repeated.
    """
    try:
        for number, ring in enumerate(rings):
            _check_vertices(number, ring)
        if not rings:
            raise _FlawError("a polygon needs an outer ring")  # noqa: TRY301 - one way to say so
        grid = on_grid(rings)
        for number, ring_on_grid in enumerate(grid):
            if _is_straight(ring_on_grid):
                raise _FlawError(f"ring {number} has no area")  # noqa: TRY301
        _check_places(grid, _contacts(grid))
    except (_FlawError, MeetingError) as error:
        return str(error)
    return None


def _check_vertices(number: int, ring: Ring) -> None:
    if len(ring) < _VERTEX_COUNT_MIN:
        raise _FlawError(f"ring {number} has {len(ring)} vertices instead of {_VERTEX_COUNT_MIN} or more")
    for i, (x_m, y_m) in enumerate(ring):
        if not (math.isfinite(x_m) and math.isfinite(y_m)):
            raise _FlawError(f"vertex {i} of ring {number} is not finite")
        if max(abs(x_m), abs(y_m)) > COORDINATE_M_MAX:
            raise _FlawError(
                f"vertex {i} of ring {number} has a coordinate beyond {COORDINATE_M_MAX:g} m"
            )
    for i, vertex in enumerate(ring):
        following = (i + 1) % len(ring)
        if vertex == ring[following]:
            raise _FlawError(f"vertices {i} and {following} of ring {number} are equal")


def _is_straight(ring: GridRing) -> bool:
    return all(orientation(ring[0], ring[1], vertex) == 0 for vertex in ring[2:])


def _contacts(grid: list[GridRing]) -> _Contacts:
    """Return the points where rings touch. Raise on other contacts, or if a ring is not simple."""
    found: _Contacts = defaultdict(lambda: defaultdict(set))
    for point, edges in touching_points(grid):
        for one in edges:
            for other in edges:
                if one.ring != other.ring:
                    found[one.ring, other.ring][one.number].add(point)
    return found


def _check_places(grid: list[GridRing], contacts: _Contacts) -> None:
    """Raise unless holes lie within the outer ring and outside of each other."""
    boxes = [_box(ring) for ring in grid]
    for hole in range(1, len(grid)):
        if not _is_all(INSIDE, grid, hole, 0, contacts):
            raise _FlawError(f"ring {hole}, a hole, is not within the outer ring")
    for hole in range(2, len(grid)):
        x1, y1, x2, y2 = boxes[hole]
        for other in range(1, hole):
            other_x1, other_y1, other_x2, other_y2 = boxes[other]
            if x1 > other_x2 or other_x1 > x2 or y1 > other_y2 or other_y1 > y2:
                continue
            if not (
                _is_all(OUTSIDE, grid, hole, other, contacts)
                and _is_all(OUTSIDE, grid, other, hole, contacts)
            ):
                raise _FlawError(f"rings {other} and {hole}, both holes, overlap")


def _box(ring: GridRing) -> tuple[int, int, int, int]:
    xs = [x for x, _ in ring]
    ys = [y for _, y in ring]
    return min(xs), min(ys), max(xs), max(ys)


def _is_all(side: int, grid: list[GridRing], ring: int, other: int, contacts: _Contacts) -> bool:
    """Return whether a ring lies on one side of another one, which it does not cross.

    Between two points of contact it stays on one side of the other ring, so one point of each part is
    tested.
    """
    touched = contacts.get((ring, other))
    if not touched:
        return side_of_ring(grid[other], grid[ring][0]) == side
    vertices = grid[ring]
    for number, points in touched.items():
        stops = sorted({vertices[number], vertices[(number + 1) % len(vertices)], *points})
        for a, b in pairwise(stops):
            if side_of_ring(grid[other], middle(a, b)) != side:
                return False
    return True
