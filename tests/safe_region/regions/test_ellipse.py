"""The disc that stands for an approximate safe region in an index contains it, and not much more."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from safe_region.regions.ellipse_kernels import enclose
from tests.support.leaves import compiled


def scene(dice):
    """Results as (dx, dy, r) about an anchor at the origin, and a gamma beyond all their lengths."""
    count = dice.randint(1, 8)
    spread = dice.choice((1.0, 100.0, 1e6))
    results = [
        (
            dice.uniform(-spread, spread),
            dice.uniform(-spread, spread),
            dice.choice((0.0, dice.uniform(0, spread))),
        )
        for _ in range(count)
    ]
    if dice.random() < 0.2:
        results[0] = (0.0, 0.0, results[0][2])
    worst = max(math.hypot(x, y) + r for x, y, r in results)
    return results, worst * dice.choice((1.0 + 1e-9, 1.001, 1.1, 3.0)) + 1e-9


def disc(results, gamma):
    columns = np.array(results, dtype=np.float64).T.copy()
    return compiled(enclose)(gamma, columns[0], columns[1], columns[2])


def reach_of(results, gamma, angle):
    """How far the region goes in a direction, by halving on the definition."""
    direction = (math.cos(angle), math.sin(angle))

    def is_inside(distance):
        x, y = distance * direction[0], distance * direction[1]
        return all(math.hypot(x - dx, y - dy) + r + distance <= gamma for dx, dy, r in results)

    low, high = 0.0, gamma
    for _ in range(80):
        middle = (low + high) / 2.0
        low, high = (middle, high) if is_inside(middle) else (low, middle)
    return low


@pytest.mark.parametrize("seed", range(200))
def test_the_disc_contains_the_region(seed):
    dice = random.Random(seed)
    results, gamma = scene(dice)
    x, y, radius = disc(results, gamma)
    slack = 1e-9 * gamma
    assert math.hypot(x, y) <= radius + slack, "the anchor is in the region"
    towards = [math.atan2(dy, dx) for dx, dy, _ in results]
    for angle in [*towards, *(dice.uniform(-math.pi, math.pi) for _ in range(60))]:
        far = reach_of(results, gamma, angle)
        away = math.hypot(far * math.cos(angle) - x, far * math.sin(angle) - y)
        assert away <= radius + slack


def test_the_disc_of_a_circle_is_that_circle():
    x, y, radius = disc([(0.0, 0.0, 0.0)], 10.0)
    assert (x, y) == pytest.approx((0.0, 0.0), abs=1e-9)
    assert radius == pytest.approx(5.0, rel=0.02)


def test_it_is_seldom_much_larger_than_the_region():
    dice = random.Random(7)
    shares = []
    for _ in range(200):
        results, gamma = scene(dice)
        x, y, radius = disc(results, gamma)
        # Needles point at results.
        angles = [math.pi * i / 90 for i in range(180)] + [math.atan2(dy, dx) for dx, dy, _ in results]
        reaches = [reach_of(results, gamma, angle) for angle in angles]
        farthest = max(
            math.hypot(far * math.cos(angle) - x, far * math.sin(angle) - y)
            for far, angle in zip(reaches, angles, strict=True)
        )
        shares.append(farthest / radius)
    assert sorted(shares)[len(shares) // 10] > 0.7


def test_a_tie_with_gamma_leaves_the_anchor():
    assert disc([(3.0, 4.0, 1.0)], 6.0)[2] < 1e-6 * 6.0 + 5.5
    x, y, radius = disc([(3.0, 4.0, 2.0)], 6.0)
    assert (x, y, radius) == (0.0, 0.0, 0.0)
