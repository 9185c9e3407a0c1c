"""What is wrong with a polygon is named, and is so; the rest is valid by the words of the rule.

By the plain Python that devices run, and by the kernels that servers run.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from itertools import combinations, pairwise

import pytest

from safe_region.geometry.polygon_checks import polygon_flaw
from safe_region.geometry.polygon_validity import flaw
from safe_region.oracle import plane as oracle_plane
from safe_region.oracle.plane import OraclePolygon
from tests.safe_region.geometry.polygons import PolygonDice, edges_of
from tests.support.amounts import named, seeds

SQUARE = ((0.0, 0.0), (9.0, 0.0), (9.0, 9.0), (0.0, 9.0))
NAN = math.nan


@pytest.fixture(params=[flaw, polygon_flaw], ids=["plain", "kernels"])
def flaw_of(request):
    return request.param


def square(x, y, side):
    return ((x, y), (x + side, y), (x + side, y + side), (x, y + side))


@pytest.mark.parametrize(
    ("rings", "expected"),
    [
        ((), "a polygon needs an outer ring"),
        ((((0.0, 0.0), (1.0, 0.0)),), "ring 0 has 2 vertices instead of 3 or more"),
        ((((0.0, 0.0), (1.0, NAN), (1.0, 1.0)),), "vertex 1 of ring 0 is not finite"),
        ((((0.0, 0.0), (1.0, 0.0), (1.0, 1e10)),), "vertex 2 of ring 0 has a coordinate beyond 1e+09 m"),
        ((((0.0, 0.0), (1.0, 0.0), (1.0, 0.0)),), "vertices 1 and 2 of ring 0 are equal"),
        ((((0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 0.0)),), "vertices 3 and 0 of ring 0 are equal"),
        ((((0.0, 0.0), (1.0, 1.0), (3.0, 3.0), (2.0, 2.0)),), "ring 0 has no area"),
        ((((0.0, 0.0), (2.0, 2.0), (2.0, 0.0), (0.0, 2.0)),), "edges 0 and 2 of ring 0 meet"),
        # a vertex on another edge; two vertices in one place; a spike
        ((((0.0, 0.0), (4.0, 0.0), (4.0, 4.0), (2.0, 0.0), (0.0, 4.0)),), "edges 0 and 3 of ring 0 meet"),
        (
            (((0.0, 0.0), (2.0, 2.0), (4.0, 0.0), (4.0, 4.0), (2.0, 2.0), (0.0, 4.0)),),
            "edges 0 and 4 of ring 0 meet",
        ),
        ((((0.0, 0.0), (4.0, 0.0), (2.0, 0.0), (2.0, 4.0)),), "edges 0 and 1 of ring 0 overlap"),
        ((SQUARE, SQUARE[:2]), "ring 1 has 2 vertices instead of 3 or more"),
        ((SQUARE, square(10.0, 1.0, 2.0)), "ring 1, a hole, is not within the outer ring"),
        ((square(3.0, 3.0, 1.0), SQUARE), "ring 1, a hole, is not within the outer ring"),
        ((SQUARE, square(8.0, 1.0, 2.0)), "edge 1 of ring 0 and edge 0 of ring 1 cross"),
        ((SQUARE, square(0.0, 1.0, 2.0)), "edge 3 of ring 0 and edge 3 of ring 1 overlap"),
        ((SQUARE, SQUARE), "edge 0 of ring 0 and edge 0 of ring 1 overlap"),
        # it touches the outer ring in a vertex of its own, and goes on outside
        ((SQUARE, ((5.0, 1.0), (9.0, 2.0), (10.0, 8.0), (9.0, 9.0))), "ring 1, a hole, is not within"),
        ((SQUARE, square(1.0, 1.0, 6.0), square(2.0, 2.0, 2.0)), "rings 1 and 2, both holes, overlap"),
        ((SQUARE, square(2.0, 2.0, 2.0), square(1.0, 1.0, 6.0)), "rings 1 and 2, both holes, overlap"),
        (
            (SQUARE, square(1.0, 1.0, 2.0), square(3.0, 1.0, 2.0)),
            "of ring 1 and edge 3 of ring 2 overlap",
        ),
        # one edge goes out by a vertex of the outer ring, and in again by another
        (
            (
                ((-9, -5), (-2, -5), (-1, 0), (0, 2), (1, 0), (2, -5), (9, -5), (9, 9), (-9, 9)),
                ((-3, 0), (3, 0), (3, 4), (-3, 4)),
            ),
            "ring 1, a hole, is not within the outer ring",
        ),
        # touching in points is fine
        ((SQUARE, square(1.0, 1.0, 2.0), square(3.0, 3.0, 2.0)), None),
        ((SQUARE, ((0.0, 4.0), (4.0, 0.0), (9.0, 5.0), (5.0, 9.0))), None),
        ((SQUARE, ((0.0, 0.0), (9.0, 3.0), (4.0, 4.0)), ((0.0, 0.0), (4.0, 5.0), (3.0, 9.0))), None),
        ((SQUARE,), None),
        ((SQUARE[::-1], square(1.0, 1.0, 2.0)), None),
    ],
)
def test_invalid_rings_are_named(flaw_of, rings, expected):
    found = flaw_of(rings)
    if flaw_of is polygon_flaw and found is not None and found.startswith("edge"):
        check_named_edges(found, rings)  # which of several flaws is named may be another
        assert found.split()[-1] == expected.split()[-1]
    else:
        assert found == expected or (expected and found and expected in found)


def common_ends(one, other):
    """The ends of two edges that lie on both."""
    return {
        end for end in (*one, *other) if oracle_plane.is_on(end, one) and oracle_plane.is_on(end, other)
    }


def is_simple(ring):
    edges = edges_of(ring)
    for (i, one), (j, other) in combinations(enumerate(edges), 2):
        if j - i in {1, len(edges) - 1}:
            if len(common_ends(one, other)) > 1:
                return False
        elif oracle_plane.segments_meet(one, other):
            return False
    return True


def sides(ring, other):
    """On which sides of another ring the pieces of a ring lie between the points where both touch."""
    for a, b in edges_of(ring):
        stops = {a, b}
        for edge in edges_of(other):
            stops |= common_ends((a, b), edge)
        for one, following in pairwise(sorted(stops)):
            middle = tuple((Fraction(u) + Fraction(v)) / 2 for u, v in zip(one, following, strict=True))
            yield oracle_plane.contains(OraclePolygon((other,)), middle)


def named_edges(found, rings):
    """The two edges that a flaw names: their rings and numbers."""
    one, one_ring, other, other_ring = re.fullmatch(
        r"edges? (\d+)(?: of ring (\d+))? and (?:edge )?(\d+) of ring (\d+) (?:meet|cross|overlap)", found
    ).groups()
    ring, other_ring = int(one_ring or other_ring), int(other_ring)
    return (ring, int(one), edges_of(rings[ring])[int(one)]), (
        other_ring,
        int(other),
        edges_of(rings[other_ring])[int(other)],
    )


def check_named_edges(found, rings):
    """What a flaw says of two edges is so."""
    (ring, i, one), (other_ring, j, other) = named_edges(found, rings)
    assert (ring, i) < (other_ring, j)
    if found.endswith("overlap"):
        assert len(common_ends(one, other)) > 1
    elif found.endswith("cross"):
        assert ring != other_ring
        assert not common_ends(one, other)
        assert oracle_plane.segments_meet(one, other)
    else:
        assert ring == other_ring
        assert j - i not in {1, len(rings[ring]) - 1}
        assert oracle_plane.segments_meet(one, other)


def is_valid(rings):
    """The rule, from its words, by looking at everything."""
    if not all(map(is_simple, rings)):
        return False
    for ring, other in combinations(rings, 2):
        for one in edges_of(ring):
            for far in edges_of(other):
                ends = common_ends(one, far)
                if len(ends) > 1 or (not ends and oracle_plane.segments_meet(one, far)):
                    return False
    outer, *holes = rings
    return all(all(sides(hole, outer)) for hole in holes) and not any(
        any(sides(hole, other)) or any(sides(other, hole)) for hole, other in combinations(holes, 2)
    )


@pytest.mark.parametrize("part", seeds(100, 50), ids=named)
def test_rings_are_taken_for_simple_if_they_are(flaw_of, part):
    seen = set()
    for seed in part:
        dice = PolygonDice(seed, is_turned=bool(seed % 3 == 0))
        for _ in range(6):
            ring = tuple(dice.point(3) for _ in range(dice.chance.randint(3, 9)))
            found = flaw_of([ring])
            if found is not None and not found.startswith("edges"):
                continue  # equal neighbours, or all on a line
            assert (found is None) == is_simple(ring), (seed, ring)
            if found is not None:
                check_named_edges(found, [ring])
            seen.add(found is None)
    assert seen == {False, True}


@pytest.mark.parametrize("part", seeds(100, 50), ids=named)
def test_polygons_are_taken_for_valid_if_they_are(flaw_of, part):
    seen = set()
    for seed in part:
        dice = PolygonDice(seed, is_turned=bool(seed % 3 == 0))
        for _ in range(8):
            rings = [dice.ring(6)]
            for _ in range(dice.chance.randint(1, 3)):
                far = dice.chance.choice((2, 4))
                ring = dice.ring(4, far)
                shift = dice.turned(*(dice.chance.randint(-far, far) for _ in range(2)))
                rings.append(tuple((x + shift[0], y + shift[1]) for x, y in ring))
            found = flaw_of(rings)
            assert (found is None) == is_valid(rings), (seed, found, rings)
            if found is not None and found.startswith("edge"):
                check_named_edges(found, rings)
            seen.add(found if found is None else found.split()[-1])
    assert {None, "cross", "overlap"} <= seen


@pytest.mark.parametrize("part", seeds(100, 50), ids=named)
def test_holes_of_a_square_are_taken_for_valid_if_they_are(flaw_of, part):
    """More of what touches than in general."""
    seen = set()
    for seed in part:
        dice = PolygonDice(seed, is_turned=bool(seed % 2))
        outer = tuple(dice.turned(*corner) for corner in square(-3, -3, 6))
        for _ in range(8):
            rings = [outer, *(dice.ring(4, 3) for _ in range(dice.chance.randint(1, 3)))]
            found = flaw_of(rings)
            assert (found is None) == is_valid(rings), (seed, found, rings)
            seen.add(found is None)
    assert seen == {False, True}


def test_a_long_polygon_with_a_flaw_far_inside(flaw_of):
    """512 vertices, long teeth side by side, whose boxes all meet."""
    turn = (math.cos(0.3), math.sin(0.3))
    there = [(float(i), 5_000.0 if i % 2 else 0.0) for i in range(256)]
    flat = [*there, *((x, y - 2.0) for x, y in reversed(there))]
    ring = [(turn[0] * x - turn[1] * y, turn[1] * x + turn[0] * y) for x, y in flat]
    assert flaw_of([ring]) is None
    ring[100], ring[101] = ring[101], ring[100]
    check_named_edges(flaw_of([ring]), [ring])


def test_holes_that_touch_in_one_point():
    """As many as are allowed, with many corners: kernels and plain Python agree."""
    holes = []
    for i in range(16):
        angles = [2 * math.pi * (i + part / 60) / 16 for part in range(30)]
        holes.append([(0.5, 0.25), *((0.5 + math.cos(a) / 8, 0.25 + math.sin(a) / 8) for a in angles)])
    outer = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]
    assert polygon_flaw([outer, *holes]) is None
    assert flaw([outer, *holes]) is None
    holes[3][7] = (0.5, 0.25)
    assert polygon_flaw([outer, *holes]) is not None


def test_coordinates_that_are_tiny_are_read_as_0():
    """Exact arithmetic with integers would take a thousand bits for each, which is work without end."""
    tiny = 5e-324
    assert polygon_flaw([[(0.0, 0.0), (1.0, tiny), (1.0, 1.0)]]) is None
    assert (
        polygon_flaw([[(0.0, 0.0), (tiny, tiny), (1.0, 1.0)]]) == "vertices 0 and 1 of ring 0 are equal"
    )
