"""Areas of objects on devices: distances are the kernels', to the bit, and silence is safe."""

from __future__ import annotations

import math
import random

import pytest

from safe_region.earth.frame import Point
from safe_region.geometry import segment_kernels, shape_kernels
from safe_region.geometry.areas import area_distance
from safe_region.geometry.shapes import PolygonShape, RectangleShape
from safe_region.oracle import plane as oracle_plane
from safe_region.oracle.plane import OracleCircle, OracleRectangle
from safe_region.regions.ranges import RangeRegion
from safe_region.regions.region import Buffered, inscribed_radius_m
from tests.safe_region.geometry.polygons import PolygonDice
from tests.safe_region.geometry.test_shape_kernels import ring_of
from tests.support.amounts import examples
from tests.support.leaves import compiled

FOREVER_MS = 10**9
MANY = 1000


def shape_of(area):
    return RectangleShape(*area) if isinstance(area, OracleRectangle) else PolygonShape(area.rings)


def kernel_distance(area, point):
    if isinstance(area, OracleRectangle):
        return compiled(segment_kernels.box_distance)(*point, *area)
    return compiled(shape_kernels.ring_distance)(*ring_of(area), *point)


@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize("seed", range(examples(30)))
def test_distances_are_those_of_the_kernels_to_the_bit(seed, is_turned):
    dice = PolygonDice(seed, is_turned=is_turned)
    inside = 0
    for _ in range(20):
        area = dice.rectangle() if dice.chance.random() < 0.2 else dice.area()
        is_ring = not isinstance(area, OracleRectangle)
        for _ in range(20):
            point = dice.on_edge(area) if is_ring and dice.chance.random() < 0.5 else dice.point(parts=2)
            found = area_distance(shape_of(area), *point)
            assert found == kernel_distance(area, point)
            within = oracle_plane.is_within(OracleCircle(found, point), (0.0, 0.0), area)
            assert within, "the oracle agrees"
            if found > 0.0:
                below = OracleCircle(math.nextafter(found, 0.0), point)
                assert not oracle_plane.is_within(below, (0.0, 0.0), area)
            inside += found == 0.0
    assert inside > 10


def edges_of_silence(chance, offset_m):
    """An area that is just not held, a region, and the place nearest to it where it is silent."""
    radius_m, slack_m = chance.choice((0.001, 1.0, 100.0)), chance.choice((1e-6, 1.0, 100.0))
    angle = chance.uniform(0.0, 6.3)
    toward = math.cos(angle), math.sin(angle)
    anchor = offset_m + chance.uniform(-1, 1), offset_m + chance.uniform(-1, 1)
    away_m = (radius_m + slack_m) * (1.0 + chance.choice((0.0, 1e-15, 1e-13)))
    near = [anchor[i] + away_m * toward[i] for i in (0, 1)]
    along, far = chance.uniform(1.0, 40_000.0), chance.uniform(1.0, 40_000.0)
    ring = (
        (near[0] - along * toward[1], near[1] + along * toward[0]),
        (near[0] + far * toward[1], near[1] - far * toward[0]),
        (near[0] + far * toward[0], near[1] + far * toward[1]),
    )
    region = RangeRegion(radius_m)
    region.update(Point(*anchor), slack_m, False, MANY)
    room_m = inscribed_radius_m(region.evaluate(*anchor, 0))
    here = anchor[0] + room_m * toward[0], anchor[1] + room_m * toward[1]
    return PolygonShape((ring,)), region, anchor, here, radius_m, slack_m


@pytest.mark.parametrize("offset_m", [0.0, 1e5, 2e7])
def test_where_it_is_silent_no_area_is_missed_by_rounding(offset_m):
    chance = random.Random(int(offset_m))
    silent, tries = 0, examples(3000)
    for _ in range(tries):
        area, region, anchor, here, radius_m, slack_m = edges_of_silence(chance, offset_m)
        if area_distance(area, *anchor) <= radius_m + slack_m:
            continue  # the device would hold it
        if region.evaluate(*here, 0).exact:
            assert area_distance(area, *here) > radius_m
            silent += here != anchor
    assert silent > tries / 60


def test_the_area_decides_matches_and_the_point_ranks():
    region = RangeRegion(2.0)
    wide = Buffered(1, 9.0, 0.0, 0.0, FOREVER_MS, RectangleShape(2.0, -1.0, 16.0, 1.0))
    beyond = Buffered(2, 9.0, 0.0, 0.0, FOREVER_MS, RectangleShape(2.5, -1.0, 16.0, 1.0))
    around = Buffered(
        3, 0.0, 5.0, 0.0, FOREVER_MS, PolygonShape((((-9.0, -9.0), (9.0, -9.0), (0.0, 9.0)),))
    )
    region.update(
        Point(0.0, 0.0), 2.0, False, MANY, [wide, beyond, around, Buffered(4, 1, 0, 0, FOREVER_MS)]
    )
    assert region.evaluate(0.0, 0.0, 0).best == [(1.0, 4), (5.0, 3), (9.0, 1)]
