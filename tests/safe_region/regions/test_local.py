"""The local safe region: within it the result set is the oracle's, and it contains the anchor."""

from __future__ import annotations

import math
import random

import pytest
import shapely

from safe_region.earth.frame import Point
from safe_region.regions.local import Circle, local_safe_region


def length(circle, point):
    return math.dist(point, (circle.x_m, circle.y_m)) + circle.r_m


def scene(dice):
    """An anchor among circles: results, others below gamma, the rest."""
    anchor = Point(dice.uniform(-50, 50), dice.uniform(-50, 50))
    circles = [
        Circle(
            dice.uniform(-400, 400),
            dice.uniform(-400, 400),
            dice.choice((0.0, 30.0, dice.uniform(0, 200))),
        )
        for _ in range(40)
    ]
    circles.sort(key=lambda one: length(one, anchor))
    k = dice.randint(1, 6)
    between = dice.randint(0, 8)
    return anchor, circles[:k], circles[k : k + between], circles[k + between :]


@pytest.mark.parametrize("seed", range(150))
def test_within_it_the_results_stay_the_best(seed):
    dice = random.Random(seed)
    anchor, results, others, rest = scene(dice)
    gamma = length(rest[0], anchor)
    region = local_safe_region(anchor, gamma, results, others)
    assert region.buffer(1e-3).contains(shapely.Point(anchor))
    left, low, right, high = region.bounds
    inside = 0
    for _ in range(300):
        point = (dice.uniform(left, right), dice.uniform(low, high))
        if region.contains(shapely.Point(point)):
            inside += 1
            worst = max(length(one, point) for one in results)
            assert worst <= min(length(one, point) for one in [*others, *rest]) + 1e-6
    assert inside > 0


@pytest.mark.parametrize("seed", range(40))
def test_it_is_nearly_as_large_as_the_definition(seed):
    """Polygons give away little: of the points that the definition allows most are inside."""
    dice = random.Random(1_000 + seed)
    anchor, results, others, rest = scene(dice)
    gamma = length(rest[0], anchor)
    region = local_safe_region(anchor, gamma, results, others)
    left, low, right, high = region.bounds
    allowed = found = 0
    for _ in range(2_000):
        point = (dice.uniform(left, right), dice.uniform(low, high))
        in_ellipses = all(length(one, point) + math.dist(anchor, point) <= gamma for one in results)
        worst = max(length(one, point) for one in results)
        if in_ellipses and all(worst <= length(one, point) for one in others):
            allowed += 1
            found += region.contains(shapely.Point(point))
    assert found >= 0.9 * allowed - 3


def test_ties_leave_nothing():
    results = [Circle(10.0, 0.0, 5.0)]
    assert local_safe_region(Point(0.0, 0.0), 15.0, results, []).area < 1e-6
    other = Circle(12.0, 0.0, 3.0)
    assert local_safe_region(Point(0.0, 0.0), 40.0, results, [other]).area < 1e-3
