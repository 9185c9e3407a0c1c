"""How much boolean subscriptions are work, in pairs tested and subscriptions settled: never in time."""

from __future__ import annotations

import random

import numpy as np
import pytest

from engine import Engine, EngineOptions, Positions
from engine.boolean.expression_kernels import TABLE_SIZE, Clauses, fill_table, matches_clause, new_table
from engine.boolean.layout import CLAUSE_DTYPE, EXCLUDED_DTYPE, NOTHING, SUBSCRIPTION_DTYPE
from engine.boolean.work import Work
from engine.contracts import BOOLEAN, handle_of
from engine.polygons import Polygons
from index.batches import KeywordLists, ObjectBatch
from safe_region.jit import kernel
from safe_region.regions.region import RegionMode
from tests.engine.kinds import KINDS, BooleanAsk
from tests.index.brute import ids
from tests.support.amounts import examples

HOT, COLD = 0, 1
SIDE_M = 1000.0
FOREVER = 2**62
EVERYTHING_M = 4 * SIDE_M


def require(*words, excluded=()):
    return frozenset(words), frozenset(excluded)


class City:
    """Objects spread over a square, and subscriptions with a circle each."""

    def __init__(self, matches_max=20, seed=1):
        self.engine = Engine(EngineOptions(matches_max=matches_max, range_slack=1.0))
        self.matcher = self.engine.matchers[BOOLEAN]
        self.random = np.random.default_rng(seed)
        self.next_id, self.next_number = 1, 1

    def publish(self, count, words=(HOT,), near_m=SIDE_M):
        numbers = np.arange(self.next_id, self.next_id + count, dtype=np.int64)
        self.next_id += count
        x_m, y_m = self.random.uniform(-near_m, near_m, (2, count))
        batch = ObjectBatch(numbers, x_m, y_m, KeywordLists.of([sorted(words)] * count))
        return self.engine.publish(batch, np.full(count, FOREVER, dtype=np.int64))

    def subscribe(self, *clauses, radius_m=EVERYTHING_M, moving=False, region=RegionMode.ANCHORED):
        center = None if moving else (0.0, 0.0)
        query = BooleanAsk(clauses, center=center, radius_m=radius_m, region=region)
        handle = handle_of(BOOLEAN, self.next_number)
        self.next_number += 1
        self.matcher.subscribe(ids([handle]), KINDS[BOOLEAN].specs([query]))
        return handle

    def evaluate(self, handle, x_m=0.0):
        before = self.pairs
        changes = self.engine.evaluate(Positions(ids([handle]), np.array([x_m]), np.zeros(1)))
        return changes, self.pairs - before

    def search(self, *clauses):
        before = self.pairs
        specs = KINDS[BOOLEAN].specs([BooleanAsk(clauses, center=(0.0, 0.0), radius_m=EVERYTHING_M)])
        found = self.matcher.search(specs, np.zeros(1), np.zeros(1))
        return found.ids.tolist(), self.pairs - before

    def nearest(self, count):
        rows = self.engine.objects.table.rows[self.engine.objects.table.used()]
        order = np.lexsort((rows["id"], np.sqrt(rows["x_m"] ** 2 + rows["y_m"] ** 2)))
        return rows["id"][order[:count]].tolist()

    def held(self, handle):
        return sorted(self.engine.held(handle)[0].tolist())

    @property
    def work(self) -> Work:
        return self.matcher.tables.work

    @property
    def pairs(self):
        return self.engine.pairs_tested


# -- too many matches ----------------------------------------------------------------------------


def test_too_many_matches_are_updated_once_a_second():
    city = City()
    city.publish(500)
    handles = [city.subscribe(require(HOT)) for _ in range(8)]
    for handle in handles:
        city.evaluate(handle)
    before, held = city.pairs, city.held(handles[0])
    looked_at = city.pairs - before
    before = city.pairs
    for _ in range(50):
        assert len(city.publish(1, near_m=1.0).changes) == 0
        city.engine.advance(city.engine.now_ms + 10)
        assert len(city.engine.settle().changes) == 0
    assert city.work.settled == 0
    assert city.pairs - before == 50 * len(handles), "each object was tested once for each"
    assert looked_at > 0
    assert city.held(handles[0]) == held
    city.engine.advance(1_000)
    changes = city.engine.settle().changes
    assert city.work.settled == len(handles)
    assert len(changes) == len(handles) * 2 * 20
    for handle in handles:
        assert city.held(handle) == sorted(city.nearest(20))
    assert city.engine.next_settle_ms() is None
    city.engine.check()


def test_a_removed_object_leaves_at_once_and_is_replaced_later():
    city = City()
    city.publish(500)
    handle = city.subscribe(require(HOT))
    city.evaluate(handle)
    gone = city.held(handle)[:2]
    changes = city.engine.remove(ids(gone))
    assert changes["object_id"].tolist() == gone
    assert (changes["is_drop"] == 1).all()
    assert len(city.held(handle)) == 18
    assert city.engine.next_settle_ms() == 1_000
    city.engine.check()
    city.engine.advance(1_000)
    assert city.engine.settle().changes["is_drop"].tolist() == [0, 0]
    assert city.held(handle) == sorted(city.nearest(20))


def test_an_object_farther_than_the_held_ones_costs_no_work():
    city = City()
    city.publish(500, near_m=10.0)
    handle = city.subscribe(require(HOT))
    city.evaluate(handle)
    city.publish(50)
    city.engine.remove(ids(sorted(set(range(1, 501)) - set(city.held(handle)))[:100]))
    assert city.engine.next_settle_ms() is None
    city.engine.check()


def test_it_ends_when_it_is_settled():
    city = City()
    city.publish(30)
    handle = city.subscribe(require(HOT))
    city.evaluate(handle)
    city.engine.remove(ids(range(1, 16)))
    assert city.engine.bounds(ids([handle])).bound_id[0] == 1
    city.engine.advance(1_000)
    settled = city.engine.settle()
    assert settled.rebound.tolist() == [handle]
    assert city.engine.bounds(ids([handle])).bound_id[0] == 0
    assert city.held(handle) == list(range(16, 31))
    city.engine.check()


def test_a_subscription_evaluated_meanwhile_is_not_settled():
    city = City()
    city.publish(500)
    handle = city.subscribe(require(HOT))
    city.evaluate(handle)
    city.publish(10, near_m=1.0)
    city.engine.advance(600)
    city.evaluate(handle)
    assert city.held(handle) == sorted(city.nearest(20))
    city.publish(10, near_m=0.5)
    city.engine.advance(1_000)
    assert len(city.engine.settle().changes) == 0
    assert city.engine.next_settle_ms() == 1_600
    city.engine.advance(1_600)
    city.engine.settle()
    assert city.held(handle) == sorted(city.nearest(20))
    assert city.work.settled == 1


def test_of_very_many_no_more_is_looked_at_than_is_held_and_some():
    """A circle about everything there is: evaluated, settled and searched nearest first."""
    city = City()
    city.publish(20_000)
    handle = city.subscribe(require(HOT))
    _, pairs = city.evaluate(handle)
    assert pairs < 20 * 20
    city.publish(3, near_m=1.0)
    before = city.pairs
    city.engine.settle(everything=True)
    assert city.pairs - before < 20 * 20
    assert city.held(handle) == sorted(city.nearest(20))
    found, pairs = city.search(require(HOT))
    assert found == city.nearest(20)
    assert pairs < 20 * 20


@pytest.mark.parametrize("region", [RegionMode.ANCHORED, RegionMode.NEAREST])
def test_a_device_that_jumps_into_a_crowd_is_no_more_work(region):
    city = City()
    city.publish(20_000)
    handle = city.subscribe(require(HOT), radius_m=2 * SIDE_M, moving=True, region=region)
    for x_m in (0.0, 100 * SIDE_M, 0.0, -100 * SIDE_M, 1.0):
        _, pairs = city.evaluate(handle, x_m)
        assert pairs < 20 * 20
        city.engine.check()


def test_a_slack_that_is_cut_is_not_cut_again_at_the_next_object():
    city = City(matches_max=80)
    city.publish(60, near_m=10.0)
    handle = city.subscribe(require(HOT), radius_m=5.0, moving=True)
    city.evaluate(handle)
    rebound = sum(len(city.publish(1, near_m=10.0).rebound) for _ in range(100))
    assert 1 <= rebound <= 15
    city.engine.check()


def test_a_small_range_in_a_crowd_is_little_work():
    city = City()
    city.publish(20_000)
    handle = city.subscribe(require(HOT), radius_m=20.0, moving=True, region=RegionMode.NEAREST)
    for x_m in (0.0, 100.0, 103.0):
        _, pairs = city.evaluate(handle, x_m)
        assert pairs < 20 * 20
        city.engine.check()


# -- clauses -------------------------------------------------------------------------------------


def test_clauses_with_equal_requirements_share_a_search():
    city = City(matches_max=10_000)
    city.publish(1_000, (HOT, COLD))
    clauses = [require(HOT, excluded=(COLD, 100 + i)) for i in range(64)]
    handle = city.subscribe(*clauses)
    changes, pairs = city.evaluate(handle)
    assert len(changes) == 0
    assert pairs == 1_000
    assert city.search(*clauses) == ([], 1_000)
    city.publish(1_000, (HOT,))
    assert city.search(*clauses)[1] == 2_000
    assert len(city.search(*clauses)[0]) == 1_000


def test_an_object_found_by_another_clause_is_not_searched_again():
    city = City(matches_max=10_000)
    city.publish(500, (HOT, COLD, 5))
    clauses = [require(HOT, COLD, 5), require(HOT, 5), require(HOT, excluded=(5,)), require(HOT, COLD)]
    found, pairs = city.search(*clauses)
    assert len(found) == 500
    assert pairs == 500


@kernel
def _which(rows, offsets, words):
    """Whether each object matches an expression."""
    table = new_table(TABLE_SIZE)
    found = np.zeros(len(offsets) - 1, dtype=np.bool_)
    fill_table(table, rows, np.arange(1, dtype=np.int32))
    fill_table(table, rows, np.arange(rows.clauses.shape[0], dtype=np.int32))
    for i in range(len(found)):
        found[i] = matches_clause(table, words[offsets[i] : offsets[i + 1]])
    return found


def _packed(lists, dtype):
    """Return rows with their keywords in a pool."""
    packed = KeywordLists.of([sorted(one) for one in lists])
    rows = np.zeros(len(lists), dtype=dtype)
    rows["keyword_start"], rows["keyword_count"] = packed.offsets[:-1], np.diff(packed.offsets)
    return rows, packed.ids


@pytest.mark.parametrize("seed", range(examples(20)))
def test_an_expression_of_many_clauses_is_their_union(seed):
    chance = random.Random(seed)
    most = chance.choice((4, 20, 200, 5_000))
    count = chance.choice((1, 2, 63, 64))
    lengths = (1, 1, 2, 3, min(16, most // 2))
    clauses = []
    for _ in range(count):
        required = set(chance.sample(range(most), chance.choice(lengths)))
        some = chance.sample(range(most), chance.choice((0, *lengths)))
        clauses.append((required, set(some) - required))
    objects = [
        set(chance.sample(range(most), min(most, chance.choice((1, 2, 5, 64))))) for _ in range(60)
    ]
    objects += [one[0] | {most} for one in clauses]
    expected = [any(need <= one and not out & one for need, out in clauses) for one in objects]
    rows, pool = _packed([need for need, _ in clauses], CLAUSE_DTYPE)
    excluded, excluded_pool = _packed([out for _, out in clauses], EXCLUDED_DTYPE)
    rows["excluded"] = np.where(excluded["keyword_count"] > 0, np.arange(count), NOTHING)
    nobody = np.zeros(0, dtype=SUBSCRIPTION_DTYPE)
    arrays = Clauses(nobody, rows, pool, excluded, excluded_pool, Polygons().pool)
    words = KeywordLists.of([sorted(one) for one in objects])
    assert _which(arrays, words.offsets, words.ids).tolist() == expected
