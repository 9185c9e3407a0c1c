"""Find the flaw of a polygon, exactly, and the point that represents a polygon, in kernels.

The rule is that of `polygon_validity`. The reported flaw is the same, too, unless there are several.
Edges are compared pair by pair, by their boxes first: for the few corners that a polygon may have this
takes less than a sweep. Where a ring touches another one in a vertex, the corner there shows on which
side the ring continues. So no point between two vertices is needed, which would not be a float64.

Only the given coordinates are used in computations: each is 0, or its magnitude is between 1e-280 and
1e17 (`orientation_kernels`). Smaller ones are read as 0. Rings are stored one after another, `offsets[i]`
up to `offsets[i + 1]`.

Cost: O(n^2), some nanoseconds for a pair of edges whose boxes are apart.
"""

from __future__ import annotations

import numpy as np

from safe_region.geometry.exact_geometry import COORDINATE_M_MAX
from safe_region.geometry.orientation_kernels import orientation
from safe_region.geometry.segment_kernels import boxes_meet, segments_meet
from safe_region.geometry.shape_kernels import Floats, Ints, ring_contains, ring_side
from safe_region.geometry.sort_kernels import sort
from safe_region.jit import kernel, leaf

VALID = 0
FEW = 1
"""A ring has too few vertices."""
NOT_FINITE = 2
FAR = 3
EQUAL = 4
"""Two neighbours are equal."""
STRAIGHT = 5
"""A ring has no area."""
MEET = 6
OVERLAP = 7
CROSS = 8
NOT_WITHIN = 9
"""A hole is not within the outer ring."""
HOLES_OVERLAP = 10

_TINY = 1e-200
"""Smaller coordinates are read as 0."""
_VERTEX_COUNT_MIN = 3
_OUTSIDE = -1
_ON_EDGE = 0
_INSIDE = 1


@kernel
def find_flaw(x: Floats, y: Floats, offsets: Ints, places: Ints) -> int:
    """Return the flaw of a polygon, VALID if it has none.

    Parameters
    ----------
    x, y
        Vertices. Tiny coordinates are set to 0.
    offsets
        Of its rings, the outer one first; at least one.
    places
        Output, length 4: the ring and vertex or edge of the flaw, then those of the other one, as far as
        the flaw has them.
    """
    for ring in range(offsets.shape[0] - 1):
        found = _vertex_flaw(x, y, offsets[ring], offsets[ring + 1], ring, places)
        if found != VALID:
            return found
    for ring in range(offsets.shape[0] - 1):
        if _is_straight(x, y, offsets[ring], offsets[ring + 1]):
            places[0] = ring
            return STRAIGHT
    found = _edge_flaw(x, y, offsets, places)
    return _place_flaw(x, y, offsets, places) if found == VALID else found


@leaf
def _vertex_flaw(x: Floats, y: Floats, start: int, stop: int, ring: int, places: Ints) -> int:
    """Return the flaw of the vertices of a ring."""
    places[0], places[1] = ring, stop - start
    if stop - start < _VERTEX_COUNT_MIN:
        return FEW
    for i in range(start, stop):
        places[1] = i - start
        if not (np.isfinite(x[i]) and np.isfinite(y[i])):
            return NOT_FINITE
        if max(abs(x[i]), abs(y[i])) > COORDINATE_M_MAX:
            return FAR
        if abs(x[i]) < _TINY:
            x[i] = 0.0
        if abs(y[i]) < _TINY:
            y[i] = 0.0
    for i in range(start, stop):
        following = _next(i, start, stop)
        if x[i] == x[following] and y[i] == y[following]:
            places[1], places[3] = i - start, following - start
            return EQUAL
    return VALID


@leaf
def _next(i: int, start: int, stop: int) -> int:
    """Return the vertex that follows in a ring."""
    return start if i + 1 == stop else i + 1


@leaf
def _is_straight(x: Floats, y: Floats, start: int, stop: int) -> bool:
    """Return whether all vertices of a ring are on one line."""
    for i in range(start + 2, stop):
        if orientation(x[start], y[start], x[start + 1], y[start + 1], x[i], y[i]) != 0:
            return False
    return True


@leaf
def _edge_flaw(x: Floats, y: Floats, offsets: Ints, places: Ints) -> int:
    """Return the forbidden contact of two edges, VALID if there is none."""
    for ring in range(offsets.shape[0] - 1):
        start, stop = offsets[ring], offsets[ring + 1]
        for i in range(start, stop):
            a, b = i, _next(i, start, stop)
            x1, x2 = min(x[a], x[b]), max(x[a], x[b])
            y1, y2 = min(y[a], y[b]), max(y[a], y[b])
            for other in range(ring, offsets.shape[0] - 1):
                first, last = offsets[other], offsets[other + 1]
                for j in range(i + 1 if other == ring else first, last):
                    c, d = j, first if j + 1 == last else j + 1
                    if (
                        min(x[c], x[d]) > x2
                        or max(x[c], x[d]) < x1
                        or min(y[c], y[d]) > y2
                        or max(y[c], y[d]) < y1
                    ):
                        continue
                    count = stop - start if other == ring else 0
                    found = _pair_flaw(x, y, a, b, c, d, count)
                    if found != VALID:
                        places[0], places[1], places[2], places[3] = ring, i - start, other, j - first
                        return found
    return VALID


@leaf
def _pair_flaw(x: Floats, y: Floats, a: int, b: int, c: int, d: int, count: int) -> int:
    """Return the contact of the edges ab and cd; their boxes meet.

    `count` is the vertex count of their ring, 0 if they are of two rings.
    """
    are_neighbours = count > 0 and (b == c or d == a)
    if not are_neighbours and not segments_meet(x[a], y[a], x[b], y[b], x[c], y[c], x[d], y[d]):
        return VALID
    if count > 0 and not are_neighbours:
        return MEET
    c_side = orientation(x[a], y[a], x[b], y[b], x[c], y[c])
    d_side = orientation(x[a], y[a], x[b], y[b], x[d], y[d])
    if c_side == 0 and d_side == 0:
        return OVERLAP if _share_more(x, y, a, b, c, d) else VALID
    if are_neighbours or c_side == 0 or d_side == 0:
        return VALID
    a_side = orientation(x[c], y[c], x[d], y[d], x[a], y[a])
    b_side = orientation(x[c], y[c], x[d], y[d], x[b], y[b])
    return VALID if a_side == 0 or b_side == 0 else CROSS


@leaf
def _share_more(x: Floats, y: Floats, a: int, b: int, c: int, d: int) -> bool:
    """Return whether two edges on one line share more than a point."""
    x1, x2 = max(min(x[a], x[b]), min(x[c], x[d])), min(max(x[a], x[b]), max(x[c], x[d]))
    y1, y2 = max(min(y[a], y[b]), min(y[c], y[d])), min(max(y[a], y[b]), max(y[c], y[d]))
    return bool(x1 < x2 or y1 < y2)


@leaf
def _place_flaw(x: Floats, y: Floats, offsets: Ints, places: Ints) -> int:
    """Return the flaw if holes do not lie within the outer ring and outside of each other."""
    for hole in range(1, offsets.shape[0] - 1):
        if not _is_all(x, y, offsets, hole, 0, _INSIDE):
            places[0] = hole
            return NOT_WITHIN
    for hole in range(2, offsets.shape[0] - 1):
        for other in range(1, hole):
            if not _do_boxes_meet(x, y, offsets, hole, other):
                continue
            if not (
                _is_all(x, y, offsets, hole, other, _OUTSIDE)
                and _is_all(x, y, offsets, other, hole, _OUTSIDE)
            ):
                places[0], places[2] = other, hole
                return HOLES_OVERLAP
    return VALID


@leaf
def _do_boxes_meet(x: Floats, y: Floats, offsets: Ints, ring: int, other: int) -> bool:
    """Return whether the boxes about two rings have a point in common."""
    x1 = y1 = other_x1 = other_y1 = np.inf
    x2 = y2 = other_x2 = other_y2 = -np.inf
    for i in range(offsets[ring], offsets[ring + 1]):
        x1, y1, x2, y2 = min(x1, x[i]), min(y1, y[i]), max(x2, x[i]), max(y2, y[i])
    for i in range(offsets[other], offsets[other + 1]):
        other_x1, other_y1 = min(other_x1, x[i]), min(other_y1, y[i])
        other_x2, other_y2 = max(other_x2, x[i]), max(other_y2, y[i])
    return bool(boxes_meet(x1, y1, x2, y2, other_x1, other_y1, other_x2, other_y2))


@leaf
def _is_all(x: Floats, y: Floats, offsets: Ints, ring: int, other: int, side: int) -> bool:
    """Return whether a ring lies on one side of another one.

    The ring touches the edges of the other one at most in single points.
    """
    start, stop = offsets[ring], offsets[ring + 1]
    first, last = offsets[other], offsets[other + 1]
    turn = _turn_of(x, y, first, last)
    for i in range(start, stop):
        here = ring_side(x, y, first, last, x[i], y[i])
        if here == -side:
            return False
        following = _next(i, start, stop)
        if here == _ON_EDGE:
            before = stop - 1 if i == start else i - 1
            for to in (before, following):
                if _side_towards(x, y, first, last, turn, x[i], y[i], x[to], y[to]) != side:
                    return False
        for j in range(first, last):  # vertices of the other ring on this edge, not at its ends
            if _is_between(x, y, i, following, j):
                for to in (i, following):
                    if _side_towards(x, y, first, last, turn, x[j], y[j], x[to], y[to]) != side:
                        return False
    return True


@leaf
def _is_between(x: Floats, y: Floats, a: int, b: int, p: int) -> bool:
    """Return whether a vertex lies on an edge and is not one of its ends."""
    if not boxes_meet(
        min(x[a], x[b]), min(y[a], y[b]), max(x[a], x[b]), max(y[a], y[b]), x[p], y[p], x[p], y[p]
    ):
        return False
    if (x[p] == x[a] and y[p] == y[a]) or (x[p] == x[b] and y[p] == y[b]):
        return False
    return orientation(x[a], y[a], x[b], y[b], x[p], y[p]) == 0


@leaf
def _turn_of(x: Floats, y: Floats, start: int, stop: int) -> int:
    """Return 1 if a ring turns to the left, -1 if to the right."""
    lowest = start
    for i in range(start + 1, stop):
        if x[i] < x[lowest] or (x[i] == x[lowest] and y[i] < y[lowest]):
            lowest = i
    before = stop - 1 if lowest == start else lowest - 1
    following = _next(lowest, start, stop)
    return orientation(x[before], y[before], x[lowest], y[lowest], x[following], y[following])


@leaf
def _side_towards(
    x: Floats, y: Floats, start: int, stop: int, turn: int, px: float, py: float, qx: float, qy: float
) -> int:
    """Return the side of a ring on which a line from a point p of it towards q starts.

    The line does not run along the ring. `turn` is the direction of the ring.
    """
    for i in range(start, stop):
        following = _next(i, start, stop)
        if x[i] == px and y[i] == py:
            before = stop - 1 if i == start else i - 1
            if turn < 0:
                before, following = following, before
            corner = orientation(x[before], y[before], px, py, x[following], y[following])
            of_following = orientation(px, py, x[following], y[following], qx, qy)
            of_before = orientation(px, py, x[before], y[before], qx, qy)
            if corner > 0:
                return _INSIDE if of_following > 0 and of_before < 0 else _OUTSIDE
            if corner < 0:
                return _OUTSIDE if of_before > 0 and of_following < 0 else _INSIDE
            return _INSIDE if of_following > 0 else _OUTSIDE
    for i in range(start, stop):
        following = _next(i, start, stop)
        if boxes_meet(
            min(x[i], x[following]),
            min(y[i], y[following]),
            max(x[i], x[following]),
            max(y[i], y[following]),
            px,
            py,
            px,
            py,
        ) and (orientation(x[i], y[i], x[following], y[following], px, py) == 0):
            return turn * orientation(x[i], y[i], x[following], y[following], qx, qy)
    return _ON_EDGE


@kernel
def inner_point(x_m: Floats, y_m: Floats, found: Floats) -> bool:
    """Write the point that represents a simple ring, the one of `shapes.inner_point`.

    Returns whether there is one; otherwise a vertex represents the ring. O(n + crossings^2).
    """
    count = x_m.shape[0]
    level = _level(y_m)
    crossings = np.empty(count)
    crossing_count = 0
    ax, ay = x_m[count - 1], y_m[count - 1]
    for i in range(count):
        bx, by = x_m[i], y_m[i]
        if (ay > level) != (by > level):
            crossings[crossing_count] = ax + (level - ay) / (by - ay) * (bx - ax)
            crossing_count += 1
        ax, ay = bx, by
    if crossing_count == 0:
        return False
    sort(crossings[:crossing_count])
    widest = 0
    for i in range(2, crossing_count, 2):
        if crossings[i + 1] - crossings[i] > crossings[widest + 1] - crossings[widest]:
            widest = i
    found[0], found[1] = (crossings[widest] + crossings[widest + 1]) / 2.0, level
    return ring_contains(x_m, y_m, 0, count, found[0], found[1])


@leaf
def _level(y_m: Floats) -> float:
    """Return the middle between the vertex heights next below and next above the middle of the ring."""
    lowest, highest = y_m[0], y_m[0]
    for i in range(y_m.shape[0]):
        lowest, highest = min(lowest, y_m[i]), max(highest, y_m[i])
    middle = (lowest + highest) / 2.0
    below, above = lowest, highest
    for i in range(y_m.shape[0]):
        if y_m[i] <= middle:
            below = max(below, y_m[i])
        else:
            above = min(above, y_m[i])
    return float((below + above) / 2.0)


@kernel
def contains(x_m: Floats, y_m: Floats, point_x_m: float, point_y_m: float) -> bool:
    """Return whether a point lies in a polygon without holes, including its edges. O(n)."""
    return ring_contains(x_m, y_m, 0, x_m.shape[0], point_x_m, point_y_m)
