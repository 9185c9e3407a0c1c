"""Buffers and anchors chosen by cost: exact whatever is chosen, and chosen for good reasons."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine import CostModel, Engine, EngineOptions, Positions
from engine.contracts import TOP_K
from engine.top_k.matcher import TopKSpecs
from index.batches import InterestBatch, KeywordLists, ObjectBatch
from safe_region.earth.frame import Point
from safe_region.regions.anchored import AnchoredRegion
from safe_region.regions.region import Buffered, RegionMode

FOREVER = 2**62


class Field:
    """Objects on a plane, one keyword, weight 0: lengths are distances."""

    def __init__(self, costs=None, k=3):
        self.engine = Engine(EngineOptions(buffer_extra=None, costs=costs or CostModel()))
        self.matcher = self.engine.matchers[TOP_K]
        self.places = np.empty((0, 2))
        self.k = k

    def publish(self, places):
        first = len(self.places) + 1
        self.places = np.concatenate([self.places, places])
        ids = np.arange(first, first + len(places), dtype=np.int64)
        words = KeywordLists.of([[1]] * len(places))
        batch = ObjectBatch(ids, places[:, 0].copy(), places[:, 1].copy(), words)
        self.engine.publish(batch, np.full(len(places), FOREVER, dtype=np.int64))

    def subscribe(self):
        one = np.ones(1, dtype=np.int64)
        interests = InterestBatch(np.zeros(1), np.ones(1, dtype=np.int8), KeywordLists.of([[1]]))
        self.matcher.subscribe(one, TopKSpecs(interests, one * self.k, one * RegionMode.ANCHORED))

    def evaluate(self, x_m, y_m, heading=math.nan, speed=math.nan):
        columns = [np.array([value], dtype=np.float64) for value in (x_m, y_m, heading, speed)]
        self.engine.evaluate(Positions(np.ones(1, dtype=np.int64), *columns))

    @property
    def row(self):
        return self.matcher.row(1)

    def region(self):
        row = self.row
        ids, shares = self.engine.held(1)
        region = AnchoredRegion(self.k)
        held = [
            Buffered(number, *self.places[number - 1].tolist(), share, FOREVER)
            for number, share in zip(ids.tolist(), shares.tolist(), strict=True)
        ]
        anchor = Point(float(row["x_m"]), float(row["y_m"]))
        region.update(anchor, float(row["reach_m"]), int(row["reach_id"]), held)
        return region

    def best(self, x_m, y_m):
        away = np.sqrt((self.places[:, 0] - x_m) ** 2 + (self.places[:, 1] - y_m) ** 2)
        return (np.lexsort((np.arange(len(away)), away))[: self.k] + 1).tolist()


def silent_m(field, x_m, y_m, heading):
    """How far a device gets on a straight way before it must report."""
    region = field.region()
    step = 0.0
    while step < 100_000.0:
        step += 2.0
        x, y = x_m + step * math.sin(heading), y_m + step * math.cos(heading)
        if not region.evaluate(x, y, 0).exact:
            return step
    return step


@pytest.mark.parametrize("seed", range(30))
def test_whatever_is_chosen_is_exact(seed):
    chance = np.random.default_rng(seed)
    is_grid = seed % 3 == 0  # distances that tie
    field = Field(
        CostModel(extra_max=int(chance.integers(0, 20)), ahead=1.0), k=int(chance.integers(1, 6))
    )

    def places(count):
        found = chance.uniform(-500.0, 500.0, (count, 2))
        return np.round(found / 100.0) if is_grid else found

    field.publish(places(int(chance.choice([2, 5, 30, 200]))))
    field.subscribe()
    compared = 0
    for _ in range(20):
        ((x_m, y_m),) = places(1).tolist()
        heading = float(chance.choice([math.nan, chance.uniform(0.0, 7.0)]))
        field.engine.advance(field.engine.now_ms + int(chance.integers(0, 5_000)))
        field.evaluate(x_m, y_m, heading, float(chance.choice([math.nan, 0.0, 12.0])))
        field.engine.check()
        region = field.region()
        here = region.evaluate(x_m, y_m, 0)
        assert here.exact
        for _ in range(30):
            x, y = (np.array([x_m, y_m]) + chance.normal(0.0, 0.5 if is_grid else 30.0, 2)).tolist()
            found = region.evaluate(x, y, 0)
            if found.exact:
                compared += 1
                assert [number for _, number in found.best] == field.best(x, y)
        if chance.random() < 0.5:
            field.publish(places(int(chance.integers(1, 10))))
            field.engine.check()
    assert compared > 10


def town(seed=1, count=2_000):
    return np.random.default_rng(seed).uniform(-5_000.0, 5_000.0, (count, 2))


def test_dear_reports_make_buffers_large_and_dear_objects_small():
    held = []
    for report, thing in ((100.0, 1.0), (2.0, 1.0), (0.01, 1.0)):
        field = Field(CostModel(report=report, object=thing))
        field.publish(town())
        field.subscribe()
        field.evaluate(0.0, 0.0, speed=10.0)
        held.append(int(field.row["buffer_count"]))
    assert held[0] > held[1] > held[2]


def test_a_device_at_rest_holds_few_objects():
    """Nothing is saved by a large region, and every arrival would be sent."""
    held = []
    for speed in (0.0, 20.0):
        field = Field()
        field.publish(town(1))
        field.engine.advance(60_000)
        field.publish(town(2))  # as many again in a minute: a lively place
        field.engine.advance(120_000)
        field.subscribe()
        field.evaluate(0.0, 0.0, speed=speed)
        held.append(int(field.row["buffer_count"]))
    assert held[0] < held[1]


def test_many_arrivals_near_it_make_a_buffer_smaller():
    held = []
    for is_near in (False, True):
        field = Field(CostModel(report=4.0))
        field.publish(town())
        field.subscribe()
        field.evaluate(0.0, 0.0, speed=10.0)
        for second in range(1, 60):
            field.engine.advance(1_000 * second)
            field.publish(town(second, 2) * (0.02 if is_near else 1.0))
        field.evaluate(2_000.0, 2_000.0, speed=10.0)
        held.append(int(field.row["buffer_count"]))
    assert held[1] < held[0]


def test_the_anchor_lies_ahead_and_the_device_gets_farther():
    reached = {}
    for ahead in (0.0, 0.9):
        total = 0.0
        for seed in range(20):
            field = Field(CostModel(ahead=ahead))
            field.publish(town(seed))
            field.subscribe()
            field.evaluate(0.0, 0.0, heading=1.0, speed=10.0)
            assert (field.row["x_m"] > 0.0) == (ahead > 0.0)
            total += silent_m(field, 0.0, 0.0, 1.0)
        reached[ahead] = total
    assert reached[0.9] > 1.2 * reached[0.0]


def test_without_a_heading_the_anchor_is_where_the_device_is():
    field = Field()
    field.publish(town())
    field.subscribe()
    field.evaluate(12.0, 34.0, speed=10.0)
    assert (field.row["x_m"], field.row["y_m"]) == (12.0, 34.0)


def test_few_objects_are_all_held_if_that_is_cheaper_than_reports():
    field = Field()
    field.publish(town(1, 12))
    field.subscribe()
    field.evaluate(0.0, 0.0, speed=10.0)
    assert math.isinf(field.row["reach_m"])
    assert int(field.row["buffer_count"]) == 12
