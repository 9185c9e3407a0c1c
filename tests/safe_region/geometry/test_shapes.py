"""Shapes: boxes that lose nothing, what is wrong with them, points that lie inside."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from safe_region.earth.frame import Point
from safe_region.geometry import polygon_checks, shape_kernels
from safe_region.geometry.polygon_validity import flaw
from safe_region.geometry.shapes import CircleShape, PolygonShape, RectangleShape, inner_point
from safe_region.oracle import plane as oracle_plane
from safe_region.oracle.plane import OraclePolygon
from tests.safe_region.geometry.polygons import PolygonDice, edges_of
from tests.safe_region.geometry.test_shape_kernels import is_within, ring_of
from tests.support.amounts import examples, named, seeds
from tests.support.leaves import compiled

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
def test_a_shape_that_meets_a_circle_meets_its_box(part):
    for seed in part:
        dice = PolygonDice(seed, is_turned=True)
        area = dice.area()
        x_m, y_m = dice.point(12)
        distance_m = compiled(shape_kernels.ring_distance)(*ring_of(area), x_m, y_m)
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


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (CircleShape(0.0, 0.0, 1.0), None),
        (CircleShape(0.0, 0.0, 0.0), "the radius is 0 m, must be above 0, at most 1e+09 m"),
        (CircleShape(0.0, 0.0, math.nan), "the radius is nan m, must be above 0, at most 1e+09 m"),
        (CircleShape(math.nan, 0.0, 1.0), "the centre is not finite, or beyond 1e+09 m"),
        (RectangleShape(0.0, 0.0, 0.0, 0.0), None),
        (RectangleShape(1.0, 0.0, 0.0, 0.0), "the west side lies east of the east side"),
        (RectangleShape(0.0, 1.0, 0.0, 0.0), "the south side lies north of the north side"),
        (RectangleShape(0.0, 1.0, math.inf, 2.0), "a side is not finite, or beyond 1e+09 m"),
    ],
)
def test_invalid_circles_and_rectangles_are_named(shape, expected):
    assert shape.flaw() == expected


# -- points inside -------------------------------------------------------------------------------


def has(ring, point):
    return oracle_plane.is_within(OraclePolygon((tuple(ring),)), point, None)


@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize("part", seeds(400, 100), ids=named)
def test_the_inner_point_lies_inside(part, is_turned):
    for seed in part:
        ring = PolygonDice(seed, is_turned=is_turned).ring(10)
        point = inner_point(ring)
        assert polygon_checks.inner_point(*polygon_checks.columns_of(ring)) == point, seed
        assert has(ring, point), seed
        assert is_within(OraclePolygon((ring,)), point, None), seed
        if not is_turned:  # what is turned may be as thin as a float64
            assert not any(oracle_plane.is_on(point, edge) for edge in edges_of(ring)), seed
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
            assert polygon_checks.inner_point(*polygon_checks.columns_of(ring)) == inner_point(ring), seed


def test_the_inner_point_is_a_vertex_if_no_float_is_between_the_edges():
    east = math.nextafter(2.0, 3.0)
    ring = ((2.0, 0.0), (east, 4.0), (math.nextafter(east, 3.0), 6.0))
    assert flaw([ring]) is None
    assert inner_point(ring) == Point(2.0, 0.0)
    assert polygon_checks.inner_point(*polygon_checks.columns_of(ring)) == Point(2.0, 0.0)


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
