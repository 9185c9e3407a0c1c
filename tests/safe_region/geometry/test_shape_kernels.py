"""Kernels of shapes say what the oracle says, to the bit: also of points on edges and beside them."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from safe_region.geometry import segment_kernels, shape_kernels
from safe_region.geometry.orientation_kernels import orientation
from safe_region.oracle import plane as oracle_plane
from safe_region.oracle.plane import OracleCircle, OraclePolygon, OracleRectangle
from tests.safe_region.geometry.polygons import PolygonDice
from tests.support.amounts import examples, named, seeds

small = st.integers(-3, 3).map(float)
wide = st.floats(-40_000.0, 40_000.0).filter(lambda value: value == 0.0 or abs(value) > 1e-280)
points = st.tuples(small, small) | st.tuples(wide, wide)


def turn(a, b, c):
    """On which side of ab c lies, from the definition."""
    (ax, ay), (bx, by), (cx, cy) = (tuple(map(Fraction, point)) for point in (a, b, c))
    area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
    return (area > 0) - (area < 0)


def pooled(polygon):
    """A polygon in a pool, behind a ring of another one: arrays, its first ring, how many it has."""
    rings = [((9.0, 9.0), (9.5, 9.0), (9.0, 9.5)), *polygon.rings]
    vertices = np.array([vertex for ring in rings for vertex in ring])
    offsets = np.cumsum([0, *map(len, rings)])
    x_m, y_m = (np.ascontiguousarray(column) for column in vertices.T)
    return x_m, y_m, offsets, 1, len(polygon.rings)


def ring_of(area):
    """The ring of an area in a pool, behind another one."""
    x_m, y_m, offsets, first, _ = pooled(area)
    return x_m, y_m, int(offsets[first]), int(offsets[first + 1])


def is_within(wanted, point, area):
    """What the kernels say of a range and an object."""
    box = (*point, *point) if area is None else area
    ring = ring_of(area) if isinstance(area, OraclePolygon) else None
    if isinstance(wanted, OracleCircle):
        if ring is not None:
            return shape_kernels.ring_distance(*ring, *wanted.center) <= wanted.radius_m
        return segment_kernels.box_distance(*wanted.center, *box) <= wanted.radius_m
    if isinstance(wanted, OracleRectangle):
        if ring is not None:
            return shape_kernels.box_meets_polygon(*wanted, *ring)
        return segment_kernels.boxes_meet(*wanted, *box)
    return is_within_polygon(pooled(wanted), point, area)


def is_within_polygon(pool, point, area):
    if isinstance(area, OraclePolygon):
        return shape_kernels.polygons_meet(*pool, *ring_of(area))
    if area is not None:
        return shape_kernels.polygon_meets_box(*pool, *area)
    return shape_kernels.polygon_contains(*pool, *point)


# -- orientation and segments --------------------------------------------------------------------


@given(points, points, points)
@settings(max_examples=examples(500), deadline=None)
def test_orientation(a, b, c):
    assert orientation(*a, *b, *c) == turn(a, b, c)


@given(points, points, st.floats(-2.0, 3.0), st.integers(-3, 3), st.integers(-3, 3))
@settings(max_examples=examples(1_000), deadline=None)
def test_orientation_of_points_near_the_line(a, b, share, steps_x, steps_y):
    c = [one + share * (other - one) for one, other in zip(a, b, strict=True)]
    for axis, steps in enumerate((steps_x, steps_y)):
        for _ in range(abs(steps)):
            c[axis] = math.nextafter(c[axis], math.copysign(math.inf, steps))
        if 0.0 < abs(c[axis]) < 1e-280:
            c[axis] = 0.0
    corners = (a, b, tuple(c))
    for i in range(3):
        one, other, third = corners[i - 2], corners[i - 1], corners[i]
        assert orientation(*one, *other, *third) == turn(one, other, third)
        assert orientation(*other, *one, *third) == -turn(one, other, third)


@pytest.mark.parametrize("scale", [1e-280, 1e-162, 1e-161, 1e-160, 1e-100, 1.0, 1e9, 1e16])
def test_orientation_of_the_very_small_and_the_very_large(scale):
    chance = random.Random(1)
    for _ in range(examples(300)):
        a, b = ([scale * chance.uniform(1.0, 8.0) for _ in range(2)] for _ in range(2))
        c = [one + 0.25 * (other - one) for one, other in zip(a, b, strict=True)]
        c[1] = math.nextafter(c[1], chance.choice((-math.inf, math.inf)))
        assert orientation(*a, *b, *c) == turn(a, b, c)
        # Coordinates of all magnitudes at once.
        d = (chance.choice((-1e16, 1e-280, 1e-200, 0.0, 3.0)), chance.choice((1e16, -1e-280, 0.0)))
        assert orientation(*a, *b, *d) == turn(a, b, d)
        assert orientation(*a, *d, 0.0, 0.0) == turn(a, d, (0.0, 0.0))


@given(points, points, points, points)
@settings(max_examples=examples(500), deadline=None)
def test_segments_meet(a, b, c, d):
    expected = oracle_plane.segments_meet((a, b), (c, d))
    assert segment_kernels.segments_meet(*a, *b, *c, *d) == expected
    assert segment_kernels.segments_meet(*d, *c, *a, *b) == expected


@pytest.mark.parametrize("part", seeds(200, 50), ids=named)
def test_segments_that_nearly_touch(part):
    for seed in part:
        dice = PolygonDice(seed, is_turned=True)
        area = dice.area()
        a, b = area.rings[0][:2]
        for c, d in ((dice.on_edge(area), dice.point()), (dice.on_edge(area), dice.on_edge(area))):
            expected = oracle_plane.segments_meet((a, b), (c, d))
            assert segment_kernels.segments_meet(*a, *b, *c, *d) == expected, seed
            corners = (min(c[0], d[0]), min(c[1], d[1]), max(c[0], d[0]), max(c[1], d[1]))
            edges = oracle_plane.edges(OracleRectangle(*corners))
            expected = any(oracle_plane.segments_meet((a, b), edge) for edge in edges) or all(
                corners[i] <= a[i] <= corners[i + 2] for i in range(2)
            )
            assert segment_kernels.segment_meets_box(*a, *b, *corners) == expected, seed


# -- distances -----------------------------------------------------------------------------------


@given(points, points, points)
@settings(max_examples=examples(500), deadline=None)
def test_distances_to_segments(here, a, b):
    found = segment_kernels.segment_distance(*here, *a, *b)
    assert found == oracle_plane.to_segment(here, (a, b))
    box = (min(a[0], b[0]), min(a[1], b[1]), max(a[0], b[0]), max(a[1], b[1]))
    assert found >= segment_kernels.box_distance(*here, *box)
    if a == b or math.dist(a, b) > 1e-100:  # shapely's lengths underflow
        true = shapely.Point(here).distance(shapely.LineString([a, b]))
        assert math.isclose(found, true, rel_tol=1e-9, abs_tol=1e-9)


@pytest.mark.parametrize("part", seeds(8_000, 4_000), ids=named)
def test_the_nearest_point_of_a_segment_lies_in_its_box(part):
    """Right before its end, where the difference of both ends was rounded up."""
    chance = random.Random(part.start)
    for _ in part:
        ax, ay, bx, by = (chance.uniform(-10.0, 10.0) * 10.0 ** chance.randint(-3, 4) for _ in range(4))
        back = 10.0 ** chance.uniform(-17.0, -12.0)
        aside = chance.choice((0.0, 1e-16, -1e-12))
        here = (bx - back * (bx - ax) - aside * (by - ay), by - back * (by - ay) + aside * (bx - ax))
        box = (min(ax, bx), min(ay, by), max(ax, bx), max(ay, by))
        far = segment_kernels.segment_distance(*here, ax, ay, bx, by)
        assert far >= segment_kernels.box_distance(*here, *box)
        assert far == oracle_plane.to_segment(here, ((ax, ay), (bx, by)))


def test_the_distance_to_an_end_is_that_to_a_point():
    assert segment_kernels.segment_distance(0.1, 0.2, 0.3, 0.7, 0.5, 0.9) == math.sqrt(
        (0.1 - 0.3) * (0.1 - 0.3) + (0.2 - 0.7) * (0.2 - 0.7)
    )
    assert segment_kernels.segment_distance(3.0, 4.0, 0.0, 0.0, 0.0, 0.0) == 5.0
    assert segment_kernels.segment_distance(7.0, 3.0, 0.0, 0.0, 9.0, 0.0) == 3.0


# -- ranges and objects --------------------------------------------------------------------------


@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize("part", seeds(300, 50), ids=named)
def test_every_range_and_every_object(part, is_turned):
    for seed in part:
        dice = PolygonDice(seed, is_turned=is_turned)
        polygon, area = dice.polygon(), dice.area()
        radius_m = dice.chance.choice((1.0, 5.0, math.sqrt(2.0))) * (1000.0 if is_turned else 1.0)
        ranges = [polygon, dice.rectangle(), OracleCircle(radius_m, dice.point())]
        areas = [area, dice.touching_area(polygon), dice.rectangle(), None]
        for wanted in ranges:
            for one in areas:
                for point in (dice.point(parts=2), dice.on_edge(polygon), dice.on_edge(area)):
                    expected = oracle_plane.is_within(wanted, point, one)
                    assert is_within(wanted, point, one) == expected, (seed, wanted, point, one)


@pytest.mark.parametrize("part", seeds(200, 50), ids=named)
def test_a_circle_ends_at_its_radius(part):
    for seed in part:
        dice = PolygonDice(seed, is_turned=bool(seed % 2))
        area, here = dice.area(), dice.point()
        distance_m = shape_kernels.ring_distance(*ring_of(area), *here)
        assert math.isclose(
            distance_m, shapely.Polygon(area.rings[0]).distance(shapely.Point(here)), abs_tol=1e-9
        )
        for radius_m in (distance_m, math.nextafter(distance_m, 0.0), dice.beside(distance_m)):
            wanted = OracleCircle(radius_m, here)
            assert is_within(wanted, here, area) == (distance_m <= radius_m)
            assert oracle_plane.is_within(wanted, here, area) == (distance_m <= radius_m), seed


@pytest.mark.parametrize("part", seeds(200, 50), ids=named)
def test_in_general_position_shapely_agrees(part):
    for seed in part:
        chance = random.Random(seed)

        def star(x, y, radius, chance=chance):
            angles = sorted(chance.uniform(0.0, 6.28) for _ in range(chance.randint(5, 60)))
            lengths = [radius * chance.uniform(0.3, 1.0) for _ in angles]
            return tuple(
                (x + far * math.cos(angle), y + far * math.sin(angle))
                for angle, far in zip(angles, lengths, strict=True)
            )

        polygon = OraclePolygon((star(0.0, 0.0, 900.0), star(0.0, 0.0, 200.0)))
        area = OraclePolygon(
            (star(chance.uniform(-1e3, 1e3), chance.uniform(-1e3, 1e3), chance.uniform(1.0, 600.0)),)
        )
        shape = shapely.Polygon(polygon.rings[0], polygon.rings[1:])
        other = shapely.Polygon(area.rings[0])
        if not (shape.is_valid and other.is_valid):
            continue
        point = (chance.uniform(-1e3, 1e3), chance.uniform(-1e3, 1e3))
        assert is_within(polygon, point, area) == shape.intersects(other), seed
        assert is_within(polygon, point, None) == shape.covers(shapely.Point(point)), seed
        box = OracleRectangle(*other.bounds)
        assert is_within(polygon, point, box) == shape.intersects(shapely.box(*box)), seed
        assert is_within(box, point, area)


SQUARE = ((0.0, 0.0), (8.0, 0.0), (8.0, 8.0), (0.0, 8.0))
HOLE = ((2.0, 2.0), (2.0, 6.0), (6.0, 6.0), (6.0, 2.0))
WITH_HOLE = OraclePolygon((SQUARE, HOLE))


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        ((1.0, 1.0), True),
        ((0.0, 0.0), True),  # a vertex
        ((8.0, 4.0), True),  # an edge
        ((4.0, 4.0), False),  # in the hole
        ((2.0, 4.0), True),  # its edge
        ((6.0, 6.0), True),  # its vertex
        ((math.nextafter(2.0, 3.0), 4.0), False),
        ((math.nextafter(8.0, 9.0), 4.0), False),
        ((-1.0, 0.0), False),  # the ray goes along an edge
        ((-1.0, 2.0), False),  # and here along that of the hole
        ((1.0, 2.0), True),
        ((7.0, 6.0), True),
        ((9.0, 8.0), False),
    ],
)
def test_points_about_a_hole(point, expected):
    assert is_within(WITH_HOLE, point, None) == expected
    assert is_within(WITH_HOLE, point, OracleRectangle(*point, *point)) == expected
    assert oracle_plane.is_within(WITH_HOLE, point, None) == expected


@pytest.mark.parametrize(
    ("ring", "expected"),
    [
        (((3.0, 3.0), (5.0, 3.0), (5.0, 5.0), (3.0, 5.0)), False),  # within the hole
        (((2.0, 4.0), (5.0, 3.0), (5.0, 5.0)), True),  # touches its edge
        ((math.nextafter(2.0, 3.0), 4.0), False),
        (HOLE, True),  # is the hole
        (SQUARE, True),
        (((-1.0, -1.0), (9.0, -1.0), (9.0, 9.0), (-1.0, 9.0)), True),  # about the range
        (((1.0, 1.0), (7.0, 1.0), (7.0, 7.0), (1.0, 7.0)), True),  # about the hole
        (((0.5, 0.5), (1.0, 0.5), (1.0, 1.0)), True),  # within the range
        (((8.0, 8.0), (9.0, 8.0), (9.0, 9.0)), True),  # touches a vertex
        (((9.0, 0.0), (9.0, 8.0), (8.0, 4.0)), True),  # touches an edge
        (((9.0, 0.0), (9.0, 8.0), (math.nextafter(8.0, 9.0), 4.0)), False),
        (((0.0, 9.0), (8.0, 9.0), (8.0, 10.0)), False),
    ],
)
def test_areas_about_a_hole(ring, expected):
    if not isinstance(ring[0], tuple):
        ring = (ring, (5.0, 3.0), (5.0, 5.0))
    area = OraclePolygon((ring,))
    assert is_within(WITH_HOLE, ring[0], area) == expected
    assert oracle_plane.is_within(WITH_HOLE, ring[0], area) == expected
    assert is_within(OraclePolygon((SQUARE[::-1], HOLE[::-1])), ring[0], area) == expected


@pytest.mark.parametrize(
    ("box", "expected"),
    [
        ((3.0, 3.0, 5.0, 5.0), False),
        ((2.0, 3.0, 5.0, 5.0), True),
        ((4.0, 1.0, 4.0, 3.0), True),
        ((-1.0, -1.0, 9.0, 9.0), True),
        ((8.0, 8.0, 9.0, 9.0), True),
        ((9.0, 9.0, 10.0, 10.0), False),
    ],
)
def test_rectangles_about_a_hole(box, expected):
    assert is_within(WITH_HOLE, box[:2], OracleRectangle(*box)) == expected
    assert oracle_plane.is_within(WITH_HOLE, box[:2], OracleRectangle(*box)) == expected
