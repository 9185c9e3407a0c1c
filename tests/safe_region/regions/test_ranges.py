"""The anchored range: whoever says that it is exact is, whatever the slack and however things round."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safe_region import oracle
from safe_region.earth.frame import Point
from safe_region.regions.ranges import RangeRegion
from safe_region.regions.region import Buffered, inscribed_radius_m
from tests.support.amounts import examples

FOREVER_MS = 2**50
NOW_MS = 1_000
MANY = 1_000

small = st.integers(-8, 8).map(float)
wide = st.floats(-40_000.0, 40_000.0)
coordinates = st.tuples(small, small) | st.tuples(wide, wide)
radii = st.sampled_from((1.0, 3.0, 5.0)) | st.floats(1e-3, 50_000.0)
slacks = st.sampled_from((0.0, 1e-9, 1.0)) | st.floats(0.0, 50_000.0)


def length(one, other):
    dx, dy = one[0] - other[0], one[1] - other[1]
    return math.sqrt(dx * dx + dy * dy)


def region_of(places, radius_m, slack_m, anchor):
    """A device that holds what it should of objects at these places."""
    region = RangeRegion(radius_m)
    held = [
        Buffered(i, *place, 0.0, FOREVER_MS)
        for i, place in enumerate(places)
        if length(place, anchor) <= radius_m + slack_m
    ]
    region.update(Point(*anchor), slack_m, False, MANY, held)
    return region


def expected(places, radius_m, here):
    objects = [
        oracle.OracleObject(i, *place, frozenset("a"), 0, FOREVER_MS) for i, place in enumerate(places)
    ]
    clauses = (oracle.OracleClause(frozenset("a")),)
    wanted = oracle.OracleRange(clauses, oracle.OracleCircle(radius_m))
    found = oracle.matching(wanted, *here, objects, NOW_MS)
    return [tuple(one) for one in found]


@given(st.lists(coordinates, max_size=12), radii, slacks, coordinates, coordinates)
@settings(max_examples=examples(300), deadline=None)
def test_an_exact_state_is_exact(places, radius_m, slack_m, anchor, here):
    region = region_of(places, radius_m, slack_m, anchor)
    evaluation = region.evaluate(*here, NOW_MS)
    if evaluation.exact:
        assert evaluation.best == expected(places, radius_m, here)


@given(st.lists(coordinates, max_size=12), radii, slacks, coordinates, st.floats(0.0, 6.3))
@settings(max_examples=examples(300), deadline=None)
def test_on_the_edge_of_silence_nothing_is_missed(places, radius_m, slack_m, anchor, angle):
    """Objects right beyond the grown circle, and a device that is as near to them as it may be."""
    region = region_of(places, radius_m, slack_m, anchor)
    beyond_m = math.nextafter(radius_m + slack_m, math.inf)
    toward = (math.cos(angle), math.sin(angle))
    far = (anchor[0] + beyond_m * toward[0], anchor[1] + beyond_m * toward[1])
    if length(far, anchor) <= radius_m + slack_m:
        return  # it has been rounded inside
    room_m = inscribed_radius_m(region.evaluate(*anchor, NOW_MS))
    here = (anchor[0] + room_m * toward[0], anchor[1] + room_m * toward[1])
    if region.evaluate(*here, NOW_MS).exact:
        assert length(far, here) > radius_m


@given(st.lists(coordinates, max_size=12), radii, slacks, coordinates, coordinates, st.floats(0.0, 6.3))
@settings(max_examples=examples(200), deadline=None)
def test_a_device_with_a_margin_holds_enough(places, radius_m, slack_m, anchor, here, angle):
    region = region_of(places, radius_m, slack_m, anchor)
    uncertainty_m = radius_m / 3.0
    if region.evaluate(*here, NOW_MS, uncertainty_m).exact:
        there = (here[0] + uncertainty_m * math.cos(angle), here[1] + uncertainty_m * math.sin(angle))
        assert region.evaluate(*there, NOW_MS).best == expected(places, radius_m, there)


@given(radii, slacks, coordinates, st.floats(0.0, 6.3), st.floats(0.0, 0.999))
@settings(max_examples=examples(200), deadline=None)
def test_the_inscribed_circle_is_silent(radius_m, slack_m, anchor, angle, share):
    region = region_of([], radius_m, slack_m, anchor)
    room_m = share * inscribed_radius_m(region.evaluate(*anchor, NOW_MS)) * (1.0 - 1e-9)
    here = (anchor[0] + room_m * math.cos(angle), anchor[1] + room_m * math.sin(angle))
    moved_m = length(here, anchor)
    if moved_m <= room_m * (1.0 + 1e-9):  # a step may be lost in rounding far from the origin
        assert region.evaluate(*here, NOW_MS).exact


def test_without_slack_it_is_exact_at_the_anchor_only():
    region = region_of([(3.0, 4.0)], 5.0, 0.0, (0.0, 0.0))
    assert region.evaluate(0.0, 0.0, NOW_MS).exact
    assert region.evaluate(0.0, 0.0, NOW_MS).best == [(5.0, 0)]
    assert not region.evaluate(0.0, 0.0, NOW_MS, 1e-3).exact
    assert not region.evaluate(1e-3, 0.0, NOW_MS).exact


def test_expired_objects_do_not_count():
    region = RangeRegion(5.0)
    region.update(Point(0.0, 0.0), 1.0, False, MANY, [Buffered(1, 1.0, 0.0, 0.0, NOW_MS)])
    assert region.evaluate(0.0, 0.0, NOW_MS - 1).best == [(1.0, 1)]
    assert region.evaluate(0.0, 0.0, NOW_MS).best == []
    assert region.forget_expired(NOW_MS) == [1]


@pytest.mark.parametrize(
    ("live", "moved_m", "is_lacking", "is_capped"),
    [(10, 0.0, False, True), (9, 4.9, False, True), (9, 5.0, False, False), (8, 0.0, True, False)],
)
def test_with_too_many_matches_it_is_inexact_farther_on_or_when_a_tenth_is_removed(
    live, moved_m, is_lacking, is_capped
):
    region = RangeRegion(50.0)
    held = [Buffered(i, 1.0, 0.0, 0.0, FOREVER_MS if i < live else NOW_MS) for i in range(10)]
    region.update(Point(0.0, 0.0), 0.0, True, 10, held)
    evaluation = region.evaluate(moved_m, 0.0, NOW_MS)
    assert not evaluation.exact
    assert (evaluation.is_lacking, evaluation.is_capped) == (is_lacking, is_capped)
    assert len(evaluation.best) == live
