"""Whenever the region says "exact", the k best of the buffer are the k best of all."""

from __future__ import annotations

import math

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from safe_region import oracle
from safe_region.earth.frame import Point
from safe_region.regions.anchored import AnchoredRegion
from safe_region.regions.polygon import boundary
from safe_region.regions.region import Buffered, inscribed_radius_m
from safe_region.scoring.formulas import SET_SIMILARITIES, text_distance, text_weight
from tests.support.amounts import examples

MAXDIST_M = 34.0
NOW_MS = 10
FOREVER_MS = 2**50

coordinates = st.integers(-10, 10).map(float)
words = st.frozensets(st.sampled_from("abcd"), min_size=1)


@st.composite
def worlds(draw, *, line=False):
    """Some objects and a subscription; on a line, sums of distances tie as well."""
    ys = st.just(0.0) if line else coordinates
    places = draw(st.lists(st.tuples(coordinates, ys, words), min_size=1, max_size=14))
    objects = [
        oracle.OracleObject(i, x, y, keywords, 0, FOREVER_MS) for i, (x, y, keywords) in enumerate(places)
    ]
    alpha = draw(st.sampled_from((0.1, 0.5, 0.9, 0.999)))
    similarity = draw(st.sampled_from(SET_SIMILARITIES))
    subscription = oracle.OracleSubscription(
        draw(words), draw(st.integers(1, 4)), alpha, similarity.name.lower()
    )
    return objects, subscription, draw(st.tuples(coordinates, ys)), draw(st.tuples(coordinates, ys))


def anchored(objects, subscription, anchor, extra):
    """What a server would give a device: the best k + extra at the anchor, and the reach."""
    ranked = oracle.ranked(subscription, *anchor, MAXDIST_M, objects, NOW_MS)
    keep = subscription.k + extra
    weight = text_weight(subscription.alpha, MAXDIST_M)
    region = AnchoredRegion(subscription.k)
    reach = ranked[keep] if len(ranked) > keep else oracle.OracleMatch(math.inf, 0)
    buffer = []
    for match in ranked[:keep]:
        one = objects[match.object_id]
        share = weight * oracle.text_distance(
            subscription.similarity, subscription.keywords, one.keywords
        )
        buffer.append(Buffered(one.object_id, one.x_m, one.y_m, share, one.expiry_ms))
    region.update(Point(*anchor), reach.length_m, reach.object_id, buffer)
    return region


def check_exact(world, extra):
    objects, subscription, anchor, here = world
    region = anchored(objects, subscription, anchor, extra)
    evaluation = region.evaluate(*here, NOW_MS)
    if evaluation.exact:
        best = oracle.top_k(subscription, *here, MAXDIST_M, objects, NOW_MS)
        assert evaluation.best == [tuple(match) for match in best]
    return evaluation


@given(worlds(), st.integers(0, 3))
@settings(max_examples=examples(200), deadline=None)
def test_exact_means_exact(world, extra):
    check_exact(world, extra)


@given(worlds(line=True), st.integers(0, 3))
@settings(max_examples=examples(200), deadline=None)
def test_exact_means_exact_on_a_line(world, extra):
    check_exact(world, extra)


@given(worlds(), st.integers(0, 3))
@settings(max_examples=examples(200), deadline=None)
def test_the_anchor_itself_is_always_exact(world, extra):
    objects, subscription, anchor, _ = world
    assert check_exact((objects, subscription, anchor, anchor), extra).exact


@given(worlds(), st.integers(0, 3), st.floats(0.0, 2.0 * math.pi), st.floats(0.0, 0.999))
@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
def test_the_inscribed_circle_is_inside(world, extra, angle, share):
    objects, subscription, anchor, there = world
    here = (0.9 * anchor[0] + 0.1 * there[0], 0.9 * anchor[1] + 0.1 * there[1])
    region = anchored(objects, subscription, anchor, extra)
    evaluation = region.evaluate(*here, NOW_MS)
    radius = inscribed_radius_m(evaluation)
    assume(0.0 < radius < math.inf)
    assert evaluation.exact
    x = here[0] + share * radius * math.cos(angle)
    y = here[1] + share * radius * math.sin(angle)
    assert region.evaluate(x, y, NOW_MS).exact


@given(worlds(), st.integers(0, 3), st.floats(0.0, 2.0 * math.pi), st.floats(0.0, 3.0))
@settings(max_examples=examples(200), deadline=None)
def test_a_device_with_a_margin_holds_enough(world, extra, angle, uncertainty_m):
    objects, subscription, anchor, here = world
    region = anchored(objects, subscription, anchor, extra)
    if region.evaluate(*here, NOW_MS, uncertainty_m).exact:
        x = here[0] + 0.999 * uncertainty_m * math.cos(angle)
        y = here[1] + 0.999 * uncertainty_m * math.sin(angle)
        best = oracle.top_k(subscription, x, y, MAXDIST_M, objects, NOW_MS)
        assert region.evaluate(x, y, NOW_MS).best == [tuple(match) for match in best]


def test_at_the_anchor_a_vague_position_is_no_exception():
    region = AnchoredRegion(1)
    region.update(Point(0.0, 0.0), 4.0, 9, [Buffered(1, 4.0, 0.0, 0.0, FOREVER_MS)])
    assert region.evaluate(0.0, 0.0, NOW_MS).exact
    assert not region.evaluate(0.0, 0.0, NOW_MS, 0.001).exact


@given(worlds(), st.integers(0, 3))
@settings(max_examples=examples(150), deadline=None)
def test_the_polygon_is_the_boundary(world, extra):
    objects, subscription, anchor, _ = world
    region = anchored(objects, subscription, anchor, extra)
    polygon = boundary(region, NOW_MS, vertex_count=24)
    if math.isinf(region.reach_m):
        assert polygon is None
        return
    if region.evaluate(*anchor, NOW_MS).margin_m < 1e-6:
        return  # the device may not move at all, or on a line
    for x, y in polygon.exterior.coords:
        dx, dy = x - anchor[0], y - anchor[1]
        if math.hypot(dx, dy) < 1e-6:
            continue
        inside = region.evaluate(anchor[0] + 0.999 * dx, anchor[1] + 0.999 * dy, NOW_MS)
        outside = region.evaluate(anchor[0] + 1.001 * dx, anchor[1] + 1.001 * dy, NOW_MS)
        assert inside.exact
        assert not outside.exact


def test_an_object_at_the_reach_adds_no_line_to_the_polygon():
    """In its very direction the ellipse of such an object, a line, would reach it but for rounding."""
    objects = [
        oracle.OracleObject(key, x, -6.0, frozenset("a"), 0, FOREVER_MS)
        for key, x in ((0, 0.0), (1, 1.0), (2, 1.0))
    ]
    subscription = oracle.OracleSubscription(frozenset("ab"), 1, 0.1, "jaccard")
    region = anchored(objects, subscription, (-2.0, -9.0), 1)
    for x, y in boundary(region, NOW_MS, vertex_count=24).exterior.coords:
        assert region.evaluate(-2.0 + 0.999 * (x + 2.0), -9.0 + 0.999 * (y + 9.0), NOW_MS).exact


def test_a_tie_with_the_reach_is_not_exact():
    """With <= the device would keep object 1, though object 0, which it was not given, ties and wins."""
    region = AnchoredRegion(1)
    region.update(Point(0.0, 0.0), 10.0, 0, [Buffered(1, 4.0, 0.0, 0.0, FOREVER_MS)])
    # At (-3, 0): 7 to object 1, 3 to the anchor, 10 in all, equal to the reach of object 0 at (-10, 0).
    assert not region.evaluate(-3.0, 0.0, NOW_MS).exact
    assert region.evaluate(-2.9, 0.0, NOW_MS).exact


def test_an_expiry_only_shrinks_the_region():
    region = AnchoredRegion(1)
    near = Buffered(1, 1.0, 0.0, 0.0, 100)
    far = Buffered(2, 3.0, 0.0, 0.0, FOREVER_MS)
    region.update(Point(0.0, 0.0), 5.0, 9, [near, far])
    assert region.evaluate(1.5, 0.0, 99).exact
    assert not region.evaluate(-1.5, 0.0, 100).exact
    assert region.evaluate(0.5, 0.0, 100).best == [(2.5, 2)]
    assert region.forget_expired(100) == [1]
    region.update(region.anchor, 5.0, 9, drop=[2])
    assert not region.evaluate(0.0, 0.0, 100).exact, "fewer than k left and a finite reach"


@given(st.sampled_from(SET_SIMILARITIES), words, words)
def test_text_distance_is_the_definitions_to_the_bit(similarity, left, right):
    common = len(left & right)
    ours = text_distance(int(similarity), common, len(left), len(right))
    assert ours == oracle.text_distance(similarity.name.lower(), left, right)
