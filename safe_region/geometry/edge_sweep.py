"""Find the points where edges of rings touch, by a sweep over the plane; stop at a forbidden contact.

A line sweeps the plane from west to east, and on the line from south to north (so a vertical edge counts
as the steepest). The edges that meet the line are kept in order. Before any two edges cross or overlap,
they, and all other edges through that point, are neighbours in this order. So it is enough to test edges
when they become neighbours, and to collect the edges through each point.

Edges of one ring may only meet as neighbours in the ring, in the vertex that they share. Edges of
different rings may touch: they may have one point in common, which is an end of one of them.

Cost: O((edges + touching points) log edges), plus a short memmove for each edge.
Source: M. I. Shamos, D. Hoey, "Geometric Intersection Problems" (1976).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations, groupby
from typing import NamedTuple

from safe_region.geometry.exact_geometry import GridPoint, GridRing, orientation

_END = 0
_BEGIN = 1


class Edge(NamedTuple):
    """An edge: its ring, its number in the ring, and its ends in the order of the sweep."""

    ring: int
    number: int
    left: GridPoint
    right: GridPoint


class MeetingError(Exception):
    """Two edges have a contact that is not allowed.

    Parameters
    ----------
    one, other
        The edges.
    verb
        The kind of contact.
    """

    def __init__(self, one: Edge, other: Edge, verb: str) -> None:
        (ring, number), (other_ring, other_number) = sorted((one[:2], other[:2]))
        if ring == other_ring:
            edges = f"edges {number} and {other_number} of ring {ring}"
        else:
            edges = f"edge {number} of ring {ring} and edge {other_number} of ring {other_ring}"
        super().__init__(f"{edges} {verb}")


def touching_points(rings: list[GridRing]) -> Iterator[tuple[GridPoint, list[Edge]]]:
    """Return the points where different rings touch, each with all edges through it.

    Parameters
    ----------
    rings
        Each has 3 vertices or more, not all on one line, and no two equal neighbours.

    Raises
    ------
    MeetingError
        If edges have another contact. It names two of them, not always the first.
    """
    sweep = _Sweep(rings)
    sweep.run()
    for point, indexes in sweep.through.items():
        edges = sorted(sweep.edges[i] for i in indexes)
        if len(edges) > 2:  # noqa: PLR2004 - those of one vertex
            for _, group in groupby(edges, key=lambda edge: edge.ring):
                _check_one_ring(point, list(group), sweep.counts)
            yield point, edges


def _check_one_ring(point: GridPoint, edges: list[Edge], counts: list[int]) -> None:
    """Raise unless a ring passes through a point only once."""
    if len(edges) == 1 or (
        len(edges) == 2 and all(point in {edge.left, edge.right} for edge in edges)  # noqa: PLR2004
    ):
        return
    pairs = list(combinations(edges, 2))
    apart = [pair for pair in pairs if not _are_neighbours(*pair, counts)]
    raise MeetingError(*(apart or pairs)[0], "meet")


def _are_neighbours(one: Edge, other: Edge, counts: list[int]) -> bool:
    """Return whether two edges follow each other in a ring."""
    count = counts[one.ring]
    return one.ring == other.ring and (one.number - other.number) % count in {1, count - 1}


class _Sweep:
    """The edges, those that meet the line now from south to north, and the edges through each point."""

    def __init__(self, rings: list[GridRing]) -> None:
        self.counts = [len(ring) for ring in rings]
        self.edges: list[Edge] = []
        self.through: dict[GridPoint, set[int]] = defaultdict(set)
        for ring, vertices in enumerate(rings):
            for number, a in enumerate(vertices):
                b = vertices[(number + 1) % len(vertices)]
                self.through[a].add(len(self.edges))
                self.through[b].add(len(self.edges))
                self.edges.append(Edge(ring, number, min(a, b), max(a, b)))
        self._order: list[int] = []

    def run(self) -> None:
        """Sweep the line over all edges."""
        ends = [(edge.right, _END, i) for i, edge in enumerate(self.edges)]
        begins = [(edge.left, _BEGIN, i) for i, edge in enumerate(self.edges)]
        order = self._order
        for _, kind, i in sorted(ends + begins):
            if kind == _BEGIN:
                at = self._place(self.edges[i])
                order.insert(at, i)
                self._test(at - 1)
                self._test(at)
            else:
                at = order.index(i)
                del order[at]
                self._test(at - 1)

    def _place(self, edge: Edge) -> int:
        """Return the number of edges south of an edge that starts here. O(log edges)."""
        low, high = 0, len(self._order)
        while low < high:
            half = (low + high) // 2
            _, _, left, right = self.edges[self._order[half]]
            side = orientation(left, right, edge.left) or orientation(left, right, edge.right)
            if side < 0:
                high = half
            else:
                low = half + 1
        return low

    def _test(self, at: int) -> None:
        """Test the edge at a place in the order against its northern neighbour."""
        if not 0 <= at < len(self._order) - 1:
            return
        i, j = self._order[at], self._order[at + 1]
        one, other = self.edges[i], self.edges[j]
        if _are_neighbours(one, other, self.counts):
            if _overlap(one, other):
                raise MeetingError(one, other, "overlap")
            return
        point = _common_point(one, other)
        if point is not None:
            self.through[point] |= {i, j}


def _overlap(one: Edge, other: Edge) -> bool:
    """Return whether two edges share more than a point."""
    if orientation(one.left, one.right, other.left) or orientation(one.left, one.right, other.right):
        return False
    return max(one.left, other.left) < min(one.right, other.right)


def _common_point(one: Edge, other: Edge) -> GridPoint | None:
    """Return the point where two edges touch, or None if they do not meet. Raise on any other contact."""
    _, _, a, b = one
    _, _, c, d = other
    if max(a, c) > min(b, d):
        return None
    c_side = orientation(a, b, c)
    d_side = orientation(a, b, d)
    if (c_side > 0 and d_side > 0) or (c_side < 0 and d_side < 0):
        return None
    a_side = orientation(c, d, a)
    b_side = orientation(c, d, b)
    if (a_side > 0 and b_side > 0) or (a_side < 0 and b_side < 0):
        return None
    if one.ring == other.ring:
        raise MeetingError(one, other, "meet")
    if _overlap(one, other):
        raise MeetingError(one, other, "overlap")
    if c_side == d_side == 0:
        return max(a, c)  # one after the other on a line
    for vertex, side in ((a, a_side), (b, b_side), (c, c_side), (d, d_side)):
        if side == 0:
            return vertex
    raise MeetingError(one, other, "cross")
