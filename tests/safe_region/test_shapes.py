"""Shapes: boxes that lose nothing, what is wrong with a polygon, points that lie inside."""

from __future__ import annotations

import math
import random
import re
from fractions import Fraction
from itertools import combinations, pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from safe_region import oracle_plane, shape_kernels
from safe_region.frame import Point
from safe_region.oracle_plane import OraclePolygon
from safe_region.polygon_validity import flaw
from safe_region.shapes import CircleShape, PolygonShape, RectangleShape, inner_point
from tests.safe_region.polygons import PolygonDice
from tests.safe_region.test_shape_kernels import is_within, ring_of
from tests.support.amounts import examples, named, seeds

# -- boxes and centres ---------------------------------------------------------------------------

coordinates = st.floats(-1e6, 1e6) | st.integers(-8, 8).map(float)
radii = st.floats(1e-300, 1e6, exclude_min=True) | st.sampled_from((1.0, 5.0, 1e-9, 5e-324))


def is_in_circle(circle, x_m, y_m):
    dx, dy = x_m - circle.x_m, y_m - circle.y_m
    return math.sqrt(dx * dx + dy * dy) <= circle.radius_m


def stepped(value, steps):
    """Return the number so many numbers after it, or before."""
    for _ in range(abs(steps)):
        value = math.nextafter(value, math.copysign(math.inf, steps))
    return value


@given(coordinates, coordinates, radii, st.floats(0.0, 6.3), st.integers(-4, 4), st.integers(-4, 4))
@example(0.0, 0.0, 5e-324, 0.0, 0, 0)
@example(1e-160, 0.0, 5e-324, 0.0, 0, 0)
@settings(max_examples=examples(1_000), deadline=None)
def test_no_point_of_a_circle_lies_outside_of_its_box(x_m, y_m, radius_m, angle, steps_x, steps_y):
    circle = CircleShape(x_m, y_m, radius_m)
    box = circle.box()
    for dx, dy in ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0), (math.cos(angle), math.sin(angle))):
        far_x = stepped(x_m + radius_m * dx, steps_x)
        far_y = stepped(y_m + radius_m * dy, steps_y)
        if is_in_circle(circle, far_x, far_y):
            assert box.x1_m <= far_x <= box.x2_m
            assert box.y1_m <= far_y <= box.y2_m


@given(coordinates, radii)
@settings(max_examples=examples(1_000), deadline=None)
def test_the_last_point_of_a_circle_lies_in_its_box(x_m, radius_m):
    """Walk outwards from the edge, number by number, as long as numbers count as within."""
    circle = CircleShape(x_m, 0.0, radius_m)
    for beyond in (math.inf, -math.inf):
        far = x_m + math.copysign(radius_m, beyond)
        for _ in range(1_000):
            following = math.nextafter(far, beyond)
            if not is_in_circle(circle, following, 0.0):
                break
            far = following
        if is_in_circle(circle, far, 0.0):
            assert circle.box().x1_m <= far <= circle.box().x2_m


def test_a_circle_may_reach_further_than_its_sum():
    """1 - 2**-54 is 1 in float64, so -2**-54 is in the circle about 1 of radius 1, whose sum is 0."""
    circle = CircleShape(1.0, 0.0, 1.0)
    far = -(2.0**-54)
    assert is_in_circle(circle, far, 0.0)
    assert circle.x_m - circle.radius_m > far
    assert circle.box().x1_m <= far


@pytest.mark.parametrize("part", seeds(200, 50), ids=named)
def test_what_meets_a_circle_meets_its_box(part):
    for seed in part:
        dice = PolygonDice(seed, is_turned=True)
        area = dice.area()
        x_m, y_m = dice.point(12)
        distance_m = shape_kernels.ring_distance(*ring_of(area), x_m, y_m)
        circle = CircleShape(x_m, y_m, dice.beside(distance_m))
        if distance_m <= circle.radius_m:
            box, about = circle.box(), PolygonShape(area.rings).box()
            assert box.x1_m <= about.x2_m, seed
            assert about.x1_m <= box.x2_m, seed
            assert box.y1_m <= about.y2_m, seed
            assert about.y1_m <= box.y2_m, seed


def test_boxes_and_centres():
    triangle = PolygonShape((((0.0, 1.0), (4.0, 1.0), (1.0, 5.0)),))
    assert triangle.box() == RectangleShape(0.0, 1.0, 4.0, 5.0)
    assert triangle.center() == Point(2.0, 3.0)
    assert triangle.vertex_count() == 3
    assert RectangleShape(0.0, 1.0, 4.0, 5.0).box() == triangle.box()
    assert RectangleShape(0.0, 1.0, 4.0, 5.0).center() == Point(2.0, 3.0)
    assert CircleShape(2.0, 3.0, 7.0).center() == Point(2.0, 3.0)
    box = CircleShape(2.0, 3.0, 7.0).box()
    assert (box.x1_m, box.y2_m) == (pytest.approx(-5.0, abs=1e-14), pytest.approx(10.0, abs=1e-14))


@given(coordinates, coordinates)
def test_the_middle_of_a_rectangle_lies_in_it(one, other):
    west, east = sorted((one, other))
    assert west <= RectangleShape(west, 0.0, east, 0.0).center().x_m <= east


# -- what is wrong -------------------------------------------------------------------------------

SQUARE = ((0.0, 0.0), (9.0, 0.0), (9.0, 9.0), (0.0, 9.0))
NAN = math.nan


def square(x, y, side):
    return ((x, y), (x + side, y), (x + side, y + side), (x, y + side))


@pytest.mark.parametrize(
    ("rings", "expected"),
    [
        ((), "a polygon has an outer ring"),
        ((((0.0, 0.0), (1.0, 0.0)),), "ring 0 has 2 vertices, needs 3 or more"),
        ((((0.0, 0.0), (1.0, NAN), (1.0, 1.0)),), "vertex 1 of ring 0 is not finite"),
        ((((0.0, 0.0), (1.0, 0.0), (1.0, 1e10)),), "vertex 2 of ring 0 is farther than 1e+09 m away"),
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
        ((SQUARE, SQUARE[:2]), "ring 1 has 2 vertices, needs 3 or more"),
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
def test_what_is_wrong_is_named(rings, expected):
    found = PolygonShape(rings).flaw()
    assert found == expected or (expected and found and expected in found)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (CircleShape(0.0, 0.0, 1.0), None),
        (CircleShape(0.0, 0.0, 0.0), "the radius is 0 m, must be above 0, at most 1e+09 m"),
        (CircleShape(0.0, 0.0, NAN), "the radius is nan m, must be above 0, at most 1e+09 m"),
        (CircleShape(NAN, 0.0, 1.0), "the centre is not finite, or farther than 1e+09 m away"),
        (RectangleShape(0.0, 0.0, 0.0, 0.0), None),
        (RectangleShape(1.0, 0.0, 0.0, 0.0), "the west side lies east of the east side"),
        (RectangleShape(0.0, 1.0, 0.0, 0.0), "the south side lies north of the north side"),
        (RectangleShape(0.0, 1.0, math.inf, 2.0), "a side is not finite, or farther than 1e+09 m away"),
    ],
)
def test_what_is_wrong_with_circles_and_rectangles_is_named(shape, expected):
    assert shape.flaw() == expected


def edges_of(ring):
    return [(ring[i], ring[(i + 1) % len(ring)]) for i in range(len(ring))]


def common_ends(one, other):
    """The ends of two edges that lie on both."""
    return {
        end for end in (*one, *other) if oracle_plane._is_on(end, one) and oracle_plane._is_on(end, other)
    }


def is_simple(ring):
    edges = edges_of(ring)
    for (i, one), (j, other) in combinations(enumerate(edges), 2):
        if j - i in {1, len(edges) - 1}:
            if len(common_ends(one, other)) > 1:
                return False
        elif oracle_plane._segments_meet(one, other):
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
            yield oracle_plane._contains(OraclePolygon((other,)), middle)


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
        assert oracle_plane._segments_meet(one, other)
    else:
        assert ring == other_ring
        assert j - i not in {1, len(rings[ring]) - 1}
        assert oracle_plane._segments_meet(one, other)


def is_valid(rings):
    """The rule, from its words, by looking at everything."""
    if not all(map(is_simple, rings)):
        return False
    for ring, other in combinations(rings, 2):
        for one in edges_of(ring):
            for far in edges_of(other):
                ends = common_ends(one, far)
                if len(ends) > 1 or (not ends and oracle_plane._segments_meet(one, far)):
                    return False
    outer, *holes = rings
    return all(all(sides(hole, outer)) for hole in holes) and not any(
        any(sides(hole, other)) or any(sides(other, hole)) for hole, other in combinations(holes, 2)
    )


@pytest.mark.parametrize("part", seeds(200, 50), ids=named)
def test_rings_are_taken_for_simple_if_they_are(part):
    seen = set()
    for seed in part:
        dice = PolygonDice(seed, is_turned=bool(seed % 3 == 0))
        for _ in range(6):
            ring = tuple(dice.point(3) for _ in range(dice.chance.randint(3, 9)))
            found = flaw([ring])
            if found is not None and not found.startswith("edges"):
                continue  # equal neighbours, or all on a line
            assert (found is None) == is_simple(ring), (seed, ring)
            if found is not None:
                check_named_edges(found, [ring])
            seen.add(found is None)
    assert seen == {False, True}


@pytest.mark.parametrize("part", seeds(200, 50), ids=named)
def test_polygons_are_taken_for_valid_if_they_are(part):
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
            found = flaw(rings)
            assert (found is None) == is_valid(rings), (seed, found, rings)
            if found is not None and found.startswith("edge"):
                check_named_edges(found, rings)
            seen.add(found if found is None else found.split()[-1])
    assert {None, "cross", "overlap"} <= seen


@pytest.mark.parametrize("part", seeds(200, 50), ids=named)
def test_holes_of_a_square_are_taken_for_valid_if_they_are(part):
    """More of what touches than in general."""
    seen = set()
    for seed in part:
        dice = PolygonDice(seed, is_turned=bool(seed % 2))
        outer = tuple(dice.turned(*corner) for corner in square(-3, -3, 6))
        for _ in range(8):
            rings = [outer, *(dice.ring(4, 3) for _ in range(dice.chance.randint(1, 3)))]
            found = flaw(rings)
            assert (found is None) == is_valid(rings), (seed, found, rings)
            seen.add(found is None)
    assert seen == {False, True}


def test_a_long_polygon_with_a_flaw_far_inside():
    """512 vertices, long teeth side by side, whose boxes all meet."""
    turn = (math.cos(0.3), math.sin(0.3))
    there = [(float(i), 5_000.0 if i % 2 else 0.0) for i in range(256)]
    flat = [*there, *((x, y - 2.0) for x, y in reversed(there))]
    ring = [(turn[0] * x - turn[1] * y, turn[1] * x + turn[0] * y) for x, y in flat]
    assert flaw([ring]) is None
    ring[100], ring[101] = ring[101], ring[100]
    check_named_edges(flaw([ring]), [ring])


# -- points inside -------------------------------------------------------------------------------


def has(ring, point):
    return oracle_plane.is_within(OraclePolygon((tuple(ring),)), point, None)


@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize("part", seeds(400, 100), ids=named)
def test_the_inner_point_lies_inside(part, is_turned):
    for seed in part:
        ring = PolygonDice(seed, is_turned=is_turned).ring(10)
        point = inner_point(ring)
        assert has(ring, point), seed
        assert is_within(OraclePolygon((ring,)), point, None), seed
        if not is_turned:  # what is turned may be as thin as a float64
            assert not any(oracle_plane._is_on(point, edge) for edge in edges_of(ring)), seed
        assert inner_point(tuple(ring)) == point


@pytest.mark.parametrize("part", seeds(400, 100), ids=named)
def test_of_a_sliver_too(part):
    for seed in part:
        chance = random.Random(seed)
        a, b = ((chance.uniform(-5e4, 5e4), chance.uniform(-5e4, 5e4)) for _ in range(2))
        c = tuple(u + 0.5 * (v - u) for u, v in zip(a, b, strict=True))
        ring = (a, b, (math.nextafter(c[0], math.inf), c[1]))
        if flaw([ring]) is None:
            assert has(ring, inner_point(ring)), seed


def test_of_what_has_no_float_between_its_edges_it_is_a_vertex():
    east = math.nextafter(2.0, 3.0)
    ring = ((2.0, 0.0), (east, 4.0), (math.nextafter(east, 3.0), 6.0))
    assert flaw([ring]) is None
    assert inner_point(ring) == Point(2.0, 0.0)


def test_the_inner_point_is_in_the_widest_part():
    ring = (
        (0.0, 0.0),
        (10.0, 0.0),
        (10.0, 4.0),
        (8.0, 4.0),
        (8.0, 1.0),
        (1.0, 1.0),
        (1.0, 4.0),
        (0.0, 4.0),
    )
    assert inner_point(ring) == Point(9.0, 2.5)
