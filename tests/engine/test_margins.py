"""Positions with a margin: the buffer grows until the device can keep silent, and shrinks again."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from engine import Engine, EngineOptions, Positions
from engine.contracts import TOP_K
from engine.top_k.matcher import TopKSpecs
from index.batches import InterestBatch, KeywordLists, ObjectBatch
from safe_region.regions.region import RegionMode
from safe_region.scoring.formulas import REACH_SLACK
from tests.engine.test_engine import FOREVER, SUSHI, floats, ids

K = 2
EXTRA = 3
EXTRA_MAX = 40


class Row:
    """Objects one metre apart, and some subscriptions among them."""

    def __init__(self, count=200, extra=EXTRA) -> None:
        self.engine = Engine(EngineOptions(buffer_extra=extra, margin_extra_max=EXTRA_MAX))
        self.matcher = self.engine.matchers[TOP_K]
        self.next_id = 1
        self.publish(*range(count))

    def publish(self, *places):
        numbers = np.arange(self.next_id, self.next_id + len(places), dtype=np.int64)
        self.next_id += len(places)
        words = KeywordLists.of([[SUSHI]] * len(places))
        batch = ObjectBatch(numbers, floats(*places), np.zeros(len(places)), words)
        self.engine.publish(batch, np.full(len(places), FOREVER, dtype=np.int64))

    def subscribe(self, *handles):
        count = len(handles)
        words = KeywordLists.of([[SUSHI]] * count)
        interests = InterestBatch(np.zeros(count), np.ones(count, dtype=np.int8), words)
        modes = np.full(count, int(RegionMode.ANCHORED), dtype=np.int64)
        specs = TopKSpecs(interests, np.full(count, K, dtype=np.int64), modes)
        self.matcher.subscribe(ids(*handles), specs)

    def evaluate(self, *rows):
        self.engine.evaluate(positions(*rows))
        self.engine.check()

    def beyond(self, handle):
        return int(self.matcher.row(handle)["extra"])

    def allows(self, handle, margin_m):
        row = self.matcher.row(handle)
        held, _ = self.engine.held(handle)
        table = self.engine.objects.table
        places = table.rows["x_m"][table.slots(held)]
        worst_m = np.sort(np.abs(places - row["x_m"]))[K - 1]
        return worst_m + 2.0 * margin_m < row["reach_m"] * (1.0 - REACH_SLACK)


def positions(*rows):
    handles, places, margins = zip(*rows, strict=True)
    return Positions(ids(*handles), floats(*places), np.zeros(len(rows)), margin_m=floats(*margins))


def test_each_row_of_a_batch_gets_its_number_of_objects():
    row = Row()
    row.subscribe(1, 2, 3)
    row.evaluate((1, 50.3, 0.0), (2, 50.3, 4.0), (3, 100.3, 1000.0))
    assert row.beyond(1) == EXTRA
    assert EXTRA < row.beyond(2) < EXTRA_MAX
    assert row.allows(2, 4.0)
    assert row.beyond(3) == EXTRA_MAX, "the bound"
    assert not row.allows(3, 1000.0)
    assert len(row.engine.held(3)[0]) == K + EXTRA_MAX


def test_the_buffer_shrinks_when_the_margin_does():
    row = Row()
    row.subscribe(1)
    row.evaluate((1, 50.3, 9.0))
    assert row.allows(1, 9.0)
    row.evaluate((1, 50.3, 0.0))
    row.evaluate((1, 50.3, 0.0))
    assert row.beyond(1) == EXTRA
    assert len(row.engine.held(1)[0]) == K + EXTRA
    assert row.matcher.row(1)["buffer_room"] <= K + 2 * EXTRA + 4


def test_a_buffer_that_was_looked_up_in_vain_is_no_larger():
    """It has the room it had: what arrives then must not be written into that of others."""
    row = Row(extra=0)
    row.subscribe(1, 2)
    row.evaluate((1, 50.3, 0.0), (2, 50.3, 0.0))
    row.engine.retrieve(positions((1, 50.3, 9.0)))
    row.publish(*np.linspace(50.3, 50.4, 30))
    assert row.beyond(1) == 0
    row.engine.check()


def test_without_extra_a_margin_is_covered_too():
    row = Row(extra=0)
    row.subscribe(1)
    row.evaluate((1, 50.3, 3.0))
    assert row.allows(1, 3.0)


def test_a_device_that_holds_all_objects_needs_no_more():
    row = Row(count=4)
    row.subscribe(1)
    row.evaluate((1, 2.0, 5000.0))
    assert math.isinf(row.matcher.row(1)["reach_m"])


@pytest.mark.parametrize("seed", range(5))
def test_margins_come_and_go(seed):
    chance = random.Random(seed)
    row = Row(count=60, extra=seed % 3)
    handles = list(range(1, 9))
    row.subscribe(*handles)
    for _ in range(60):
        some = chance.sample(handles, chance.randint(1, 8))
        rows = [(one, chance.uniform(0, 60), chance.choice((0.0, 0.5, 4.0, 20.0))) for one in some]
        row.evaluate(*rows)
        for handle, _, margin_m in rows:
            reach_m = row.matcher.row(handle)["reach_m"]
            is_full = row.beyond(handle) == EXTRA_MAX
            assert margin_m == 0.0 or math.isinf(reach_m) or is_full or row.allows(handle, margin_m)
        row.publish(*(chance.uniform(0, 60) for _ in range(chance.randint(0, 6))))
        table = row.engine.objects.table
        alive = table.rows["id"][table.used()].tolist()
        row.engine.remove(ids(*chance.sample(alive, min(len(alive), chance.randint(0, 5)))))
        row.engine.park(ids(chance.choice(handles)))
        row.engine.check()
