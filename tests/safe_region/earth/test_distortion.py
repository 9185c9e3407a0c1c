"""How far the plane is off: no way within an area is farther off than it says, and some are as far."""

from __future__ import annotations

import math
import random

import pytest

from safe_region.earth.distortion import Direction, distortion
from safe_region.earth.frame import Area, Frame
from safe_region.earth.ground import ground_distance_m

ITALY = Frame.of(Area(6.6, 35.4, 18.6, 47.1))


def error_of(frame, place, other):
    plane_m = math.dist(frame.project(*place), frame.project(*other))
    return abs(plane_m / ground_distance_m(*place, *other) - 1.0)


@pytest.mark.parametrize("seed", range(40))
def test_it_bounds_every_way_within_the_area(seed):
    chance = random.Random(seed)
    south = chance.uniform(-80.0, 70.0)
    height, width = 10.0 ** chance.uniform(-2.0, 1.9), 10.0 ** chance.uniform(-2.0, 2.2)
    area = Area(3.0, south, 3.0 + width, min(88.9, south + height))
    frame = Frame.of(area)

    def drawn(low, high):
        return chance.choice((low, high, chance.uniform(low, high)))

    most = distortion(frame).error
    seen = 0.0
    for _ in range(1_000):
        lon, lat = drawn(area.lon_min, area.lon_max), drawn(area.lat_min, area.lat_max)
        other = drawn(area.lon_min, area.lon_max), drawn(area.lat_min, area.lat_max)
        if chance.random() < 0.3:  # a short way
            lon_step, lat_step = (chance.choice((0.0, chance.uniform(-0.05, 0.05))) for _ in range(2))
            other = (
                min(area.lon_max, max(area.lon_min, lon + lon_step * width)),
                min(area.lat_max, max(area.lat_min, lat + lat_step * height)),
            )
        if other != (lon, lat):
            seen = max(seen, error_of(frame, (lon, lat), other))
    assert 0.95 * most < seen <= 1.0005 * most


def test_where_it_is_most():
    found = distortion(ITALY)
    assert (found.lat, found.direction) == (47.1, Direction.EAST_WEST)
    assert 0.10 < found.error < 0.11
    small = distortion(Frame.of(Area(14.18, 35.8, 14.58, 36.09)))
    assert small.error < 0.005
    equator = distortion(Frame.of(Area(10.0, -0.1, 10.2, 0.1)))
    assert equator.direction is Direction.NORTH_SOUTH
    assert equator.error == pytest.approx(0.00562, abs=1e-4)


def test_an_area_around_the_earth_has_no_bound():
    found = distortion(Frame.of(Area(-180.0, -60.0, 180.0, 60.0)))
    assert found.error > 1e6
