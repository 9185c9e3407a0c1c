"""The oracle of boolean subscriptions, against examples worked out by hand."""

from __future__ import annotations

import pytest

from safe_region import oracle
from safe_region.oracle import (
    OracleCircle,
    OracleClause,
    OracleMatch,
    OracleObject,
    OraclePolygon,
    OracleRange,
    OracleRectangle,
)

NOW_MS = 5
TEA = OracleClause(frozenset({"tea"}))
SQUARE = ((0.0, 0.0), (8.0, 0.0), (8.0, 8.0), (0.0, 8.0))
HOLE = ((2.0, 2.0), (6.0, 2.0), (6.0, 6.0), (2.0, 6.0))
WITH_HOLE = OraclePolygon((SQUARE, HOLE))


def an_object(object_id, x_m=0.0, y_m=0.0, words=("tea",), area=None):
    return OracleObject(object_id, x_m, y_m, frozenset(words), 0, 10, area)


def ids(wanted, objects, here=(0.0, 0.0), now_ms=NOW_MS):
    return [one.object_id for one in oracle.matching(wanted, *here, objects, now_ms)]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("tea",), True),
        (("tea", "milk"), False),
        (("milk",), False),
        (("cake", "jam"), True),
        (("cake", "jam", "milk"), True),
        (("tea", "milk", "cake", "jam"), True),
        (("cake",), False),
        ((), False),
    ],
)
def test_an_object_matches_a_clause_or_another(words, expected):
    clauses = (
        OracleClause(frozenset({"tea"}), frozenset({"milk"})),
        OracleClause(frozenset({"cake", "jam"})),
    )
    wanted = OracleRange(clauses, OracleCircle(5.0))
    assert ids(wanted, [an_object(1, words=words)]) == [1] * expected


def test_only_live_objects_match():
    wanted = OracleRange((TEA,), OracleCircle(5.0))
    assert [ids(wanted, [an_object(1)], now_ms=now_ms) for now_ms in (-1, 0, 9, 10)] == [[], [1], [1], []]


def test_a_circle_without_a_centre_is_about_the_device():
    objects = [an_object(1, 3.0, 4.0), an_object(2, 13.0, 4.0)]
    assert ids(OracleRange((TEA,), OracleCircle(5.0)), objects) == [1]
    assert ids(OracleRange((TEA,), OracleCircle(5.0)), objects, (10.0, 0.0)) == [2]
    fixed = OracleRange((TEA,), OracleCircle(5.0, (10.0, 0.0)))
    assert ids(fixed, objects) == [2]
    assert oracle.matching(fixed, 0.0, 0.0, objects, NOW_MS) == [OracleMatch(5.0, 2)]


def test_matches_are_sorted_by_the_distance_of_their_point_from_the_centre():
    objects = [
        an_object(3, 8.0, 8.0),
        an_object(2, 5.0, 4.0),
        an_object(1, 4.0, 5.0),
        an_object(4, 9.0, 9.0),
    ]
    wanted = OracleRange((TEA,), OracleRectangle(0.0, 0.0, 8.0, 8.0))
    found = oracle.matching(wanted, 100.0, 100.0, objects, NOW_MS)
    assert found == [OracleMatch(1.0, 1), OracleMatch(1.0, 2), OracleMatch(32.0**0.5, 3)]
    assert ids(OracleRange((TEA,), WITH_HOLE), objects) == [3]


@pytest.mark.parametrize(
    ("area", "expected"),
    [
        (OracleRectangle(3.0, 3.0, 5.0, 5.0), []),  # within the hole
        (OracleRectangle(2.0, 3.0, 5.0, 5.0), [1]),
        (OraclePolygon((((3.0, 3.0), (5.0, 3.0), (4.0, 6.0)),)), [1]),
        (OraclePolygon((((3.0, 3.0), (5.0, 3.0), (4.0, 5.0)),)), []),
        (OraclePolygon((((-9.0, -9.0), (30.0, -9.0), (-9.0, 30.0)),)), [1]),  # about all of it
        (None, []),
    ],
)
def test_an_area_matches_by_its_shape_and_not_by_its_point(area, expected):
    wanted = OracleRange((TEA,), WITH_HOLE)
    found = oracle.matching(wanted, 0.0, 0.0, [an_object(1, 4.0, 4.0, area=area)], NOW_MS)
    assert [one.object_id for one in found] == expected
    assert [one.length_m for one in found] == [0.0] * len(expected)


@pytest.mark.parametrize(
    ("area", "expected"),
    [
        (OracleRectangle(3.0, 4.0, 9.0, 9.0), [1]),
        (OracleRectangle(3.1, 4.0, 9.0, 9.0), []),
        (OracleRectangle(-9.0, 5.0, 9.0, 9.0), [1]),
        (OraclePolygon((((5.0, -9.0), (5.0, 9.0), (9.0, 0.0)),)), [1]),
        (OraclePolygon((((5.1, -9.0), (5.1, 9.0), (9.0, 0.0)),)), []),
        (OraclePolygon((((-50.0, -50.0), (50.0, -50.0), (0.0, 50.0)),)), [1]),
        (OraclePolygon((((3.0, 4.0), (9.0, 4.0), (9.0, 9.0)),)), [1]),
    ],
)
def test_a_circle_has_areas_that_are_near_enough(area, expected):
    wanted = OracleRange((TEA,), OracleCircle(5.0))
    assert ids(wanted, [an_object(1, 100.0, 100.0, area=area)]) == expected


def test_a_rectangle_has_polygons_that_touch_it():
    wanted = OracleRange((TEA,), OracleRectangle(0.0, 0.0, 4.0, 4.0))
    touching = OraclePolygon((((4.0, 4.0), (9.0, 4.0), (9.0, 9.0)),))
    corner = OraclePolygon((((3.0, 6.0), (6.0, 3.0), (9.0, 9.0)),))  # boxes meet, it does not
    about = OraclePolygon((((-9.0, -9.0), (30.0, -9.0), (-9.0, 30.0)),))
    objects = [an_object(i, area=area) for i, area in enumerate((touching, corner, about))]
    assert ids(wanted, objects) == [0, 2]
