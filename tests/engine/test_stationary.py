"""Stationary subscriptions: after any mix of operations results are right, under every policy."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from engine import Engine, EngineOptions, Positions
from engine.contracts import STATIONARY, handle_of
from engine.options import StationaryPolicy
from engine.stationary.history import History
from engine.stationary.layout import ENTRY_DTYPE
from engine.stationary.matcher import StationaryMatcher, StationarySpecs
from engine.stationary.policies import N_FACTOR_MAX, cheapest_counts, steady_counts, steps_below
from engine.windows import Lasts
from index.batches import InterestBatch, KeywordLists, ObjectBatch
from index.catalogue import OBJECT_INDEXES, SUBSCRIPTION_INDEXES
from index.contracts import InconsistentIndexError
from index.iqf_plus import IqfPlusObjectIndex
from safe_region import oracle
from safe_region.scoring.formulas import Similarity, text_weight
from tests.support.amounts import examples

SIDE = 8
MAXDIST_M = 20.0
WORDS = 7
POLICIES = list(StationaryPolicy)
INDEXES = {
    "naive": (OBJECT_INDEXES["naive"], SUBSCRIPTION_INDEXES["naive"]),
    "as served": (lambda: IqfPlusObjectIndex(6), SUBSCRIPTION_INDEXES["sq-plus-tree"]),
}


class Stationary:
    """An engine of stationary subscriptions, what they were told, and the oracle."""

    def __init__(self, policy: StationaryPolicy, indexes: str, seed: int) -> None:
        self.chance = random.Random(seed)
        object_index, subscription_index = INDEXES[indexes]
        options = EngineOptions(
            object_index=object_index,
            subscription_index=lambda: subscription_index(None),
            stationary=policy,
            maxdist_m=MAXDIST_M,
        )
        self.engine = Engine(options, {STATIONARY: StationaryMatcher})
        self.matcher = self.engine.matchers[STATIONARY]
        self.now_ms = 0
        self.next_id = 1
        self.next_number = 0
        self.objects: dict[int, oracle.OracleObject] = {}
        self.queries: dict[int, oracle.OracleSubscription] = {}
        self.places: dict[int, tuple[float, float]] = {}
        self.awake: set[int] = set()
        self.received: dict[int, set[int]] = {}
        self.changes = 0

    def place(self) -> tuple[float, float]:
        return float(self.chance.randint(-SIDE, SIDE)), float(self.chance.randint(-SIDE, SIDE))

    def words(self, most: int) -> list[int]:
        return sorted(self.chance.sample(range(WORDS), self.chance.randint(1, most)))

    # -- what happens ----------------------------------------------------------------------------

    def note(self, changes) -> None:
        for change in changes:
            held = self.received[int(change["handle"])]
            if change["is_drop"]:
                held.remove(int(change["object_id"]))
            else:
                assert int(change["object_id"]) not in held, "no change is sent twice"
                held.add(int(change["object_id"]))
            self.changes += 1

    def subscribe(self, count: int) -> None:
        handles, keywords, weights, k, similarity, durations, counts = [], [], [], [], [], [], []
        scales = []
        for _ in range(count):
            self.next_number += 1
            handle = handle_of(STATIONARY, self.next_number)
            window = self.chance.choice(((0, 0), (6, 0), (25, 0), (0, 1), (0, 5), (0, 40)))
            one = oracle.OracleSubscription(
                frozenset(map(str, words := self.words(3))),
                self.chance.choice((1, 2, 3, 8, 50)),
                self.chance.choice((0.1, 0.5, 0.9)),
                self.chance.choice(("jaccard", "dice", "cosine", "tfidf")),
                window=oracle.OracleWindow(window[0] or None, window[1] or None),
                distance_scale_m=self.chance.choice((None, 1.0, 5.0, 300.0)),
            )
            scales.append(one.distance_scale_m or MAXDIST_M)
            self.queries[handle] = one
            handles.append(handle)
            keywords.append(words)
            weights.append(text_weight(one.alpha, scales[-1]))
            k.append(one.k)
            similarity.append(int(Similarity[one.similarity.upper()]))
            durations.append(window[0])
            counts.append(window[1])
        interests = InterestBatch(
            np.array(weights), np.array(similarity, dtype=np.int8), KeywordLists.of(keywords)
        )
        lasts = Lasts(np.array(durations, dtype=np.int64), np.array(counts, dtype=np.int64))
        ids = np.array(handles, dtype=np.int64)
        specs = StationarySpecs(interests, np.array(k, dtype=np.int64), lasts, np.array(scales))
        self.matcher.subscribe(ids, specs)
        self.evaluate(handles)

    def evaluate(self, handles: list[int]) -> None:
        for handle in handles:
            self.places[handle] = self.place()
            self.received.setdefault(handle, set())
        x_m, y_m = np.array([self.places[one] for one in handles]).reshape(-1, 2).T
        ids = np.array(handles, dtype=np.int64)
        self.awake |= set(handles)
        self.note(self.engine.evaluate(Positions(ids, x_m.copy(), y_m.copy())))

    def publish(self, count: int) -> None:
        new = []
        for _ in range(count):
            x_m, y_m = self.place()
            words = frozenset(map(str, self.words(5)))
            expiry_ms = self.now_ms + self.chance.choice((1, 9, 60, 10_000, 10_000, 10_000))
            new.append(oracle.OracleObject(self.next_id, x_m, y_m, words, self.now_ms, expiry_ms))
            self.next_id += 1
        batch = ObjectBatch(
            np.array([one.object_id for one in new], dtype=np.int64),
            np.array([one.x_m for one in new]),
            np.array([one.y_m for one in new]),
            KeywordLists.of([sorted(map(int, one.keywords)) for one in new]),
        )
        published = self.engine.publish(batch, np.array([one.expiry_ms for one in new], dtype=np.int64))
        self.objects.update({one.object_id: one for one in new})
        self.note(published.left)
        self.note(published.changes)

    def retract(self, count: int) -> None:
        some = self.chance.sample(sorted(self.objects), min(count, len(self.objects)))
        if some:
            changes = self.engine.remove(np.array(some, dtype=np.int64))
            for one in some:
                del self.objects[one]
            self.note(changes)

    def advance(self, by_ms: int) -> None:
        self.now_ms += by_ms
        changes = []
        due = self.engine.advance(self.now_ms, on_changes=changes.append).tolist()
        for one in due:
            del self.objects[one]
        for some in changes:
            self.note(some)
        for handle, held in self.received.items():
            window = self.queries[handle].window
            young = {
                one
                for one in held
                if one in self.objects and oracle.does_count(window, self.objects[one], self.now_ms)
            }
            self.received[handle] = young if window.duration_ms else held & self.objects.keys()

    def park(self, count: int) -> None:
        some = self.chance.sample(sorted(self.awake), min(count, len(self.awake)))
        self.matcher.park(np.array(some, dtype=np.int64))
        self.awake -= set(some)
        for handle in some:
            self.received[handle] = set()

    def unsubscribe(self) -> None:
        if self.queries:
            handle = self.chance.choice(sorted(self.queries))
            self.matcher.unsubscribe(np.array([handle], dtype=np.int64))
            for known in (self.queries, self.places, self.received):
                known.pop(handle, None)
            self.awake.discard(handle)

    # -- what must hold --------------------------------------------------------------------------

    def compare(self) -> None:
        for handle in self.awake:
            query = self.queries[handle]
            window = oracle.OracleWindow(query.window.duration_ms, query.window.count, self.next_id - 1)
            best = oracle.top_k(
                query._replace(window=window),
                *self.places[handle],
                MAXDIST_M,
                self.objects.values(),
                self.now_ms,
            )
            expected = {one.object_id for one in best}
            ids, shares = self.matcher.held(handle)
            assert set(ids.tolist()) == expected
            assert self.received[handle] == expected, "the changes sent add up to the result"
            x_m, y_m = self.places[handle]
            for object_id, share in zip(ids.tolist(), shares.tolist(), strict=True):
                item = self.objects[object_id]
                length = ((x_m - item.x_m) ** 2 + (y_m - item.y_m) ** 2) ** 0.5 + share
                (match,) = [one for one in best if one.object_id == object_id]
                assert length == match.length_m


STEPS = {
    "publish": (12, lambda world: world.publish(world.chance.choice((1, 1, 3, 8)))),
    "advance": (6, lambda world: world.advance(world.chance.choice((0, 1, 2, 7)))),
    "retract": (2, lambda world: world.retract(world.chance.choice((1, 3)))),
    "subscribe": (1, lambda world: world.subscribe(world.chance.choice((1, 4)))),
    "evaluate": (
        2,
        lambda world: world.evaluate(
            world.chance.sample(sorted(world.queries), min(3, len(world.queries)))
        ),
    ),
    "park": (1, lambda world: world.park(2)),
    "unsubscribe": (0.3, lambda world: world.unsubscribe()),
}


@pytest.mark.parametrize("indexes", INDEXES)
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.value)
@pytest.mark.parametrize("seed", range(examples(2)))
def test_any_mix_of_operations(policy, indexes, seed):
    world = Stationary(policy, indexes, seed)
    world.subscribe(6)
    names, weights = list(STEPS), [weight for weight, _ in STEPS.values()]
    for step in range(120):
        (name,) = world.chance.choices(names, weights)
        STEPS[name][1](world)
        world.compare()
        if step % 6 == 0:
            world.engine.check()
    assert world.changes > 100, "a run with few changes proves nothing"
    assert world.matcher.refills > 0


def test_the_cheapest_count_is_the_least_of_the_cost():
    for k in (1, 2, 20, 100):
        for cost in (1.0, 300.0, 2_000.0, 1e6):
            (n,) = cheapest_counts(np.array([k]), np.array([cost])).tolist()
            counts = np.arange(k, N_FACTOR_MAX * k + 1)
            spare = counts - k + 1.0
            costs = counts * (
                k * (1.0 + np.log(counts / k)) + cost / (spare * (2.0 * counts + spare + 1.0))
            )
            assert costs[n - k] <= costs.min() * 1.02


@pytest.mark.parametrize("ratio", [0.6, 0.9, 1.0, 1.1, 1.8])
@pytest.mark.parametrize(("held", "k"), [(1, 1), (5, 2), (20, 20), (37, 20)])
def test_the_time_until_too_few_are_held_is_that_of_the_walk(held, k, ratio):
    """Step by step from the top, where there is none up: what came in between has to go first."""
    up, down = ratio / (1.0 + ratio), 1.0 / (1.0 + ratio)
    one_less = 1.0 / down  # steps from the present number to one less
    expected = 0.0
    for state in range(2 * held, k - 1, -1):
        if state < 2 * held:
            one_less = (1.0 + up * one_less) / down
        if state <= held:
            expected += one_less
    found = steps_below(np.array([float(held)]), np.array([k]), ratio)
    assert found == pytest.approx(expected, rel=1e-6)


def test_without_a_tendency_it_is_equation_12():
    for held, k in ((20, 20), (60, 20), (7, 3)):
        papers = 2 * (held - k + 1) * held + (held - k + 1) * (held - k + 2)
        assert steps_below(np.array([float(held)]), np.array([k]), 1.0) == pytest.approx(papers)


def test_a_subscription_reached_more_often_than_estimated_holds_less():
    """Its buffer is refilled by what comes: the same theta lasts longer."""
    history = History()
    slots = np.array([0, 1], dtype=np.int32)
    history.note_built(slots, np.array([50, 50]), np.array([1_000, 1_000]))
    assert history.factors(slots).tolist() == [1.0, 1.0]
    history.note_arrivals(1_000, np.zeros(200, dtype=np.int32))
    first, second = history.factors(slots).tolist()
    assert first == pytest.approx(204.0 / 54.0)
    assert second == pytest.approx(1.0 / 8.0, rel=0.7)
    k, cost = np.full(2, 20), np.full(2, 1e6)
    reached_more, as_expected = cheapest_counts(k, cost, np.array([first, 1.0])).tolist()
    assert reached_more < as_expected
    history.forget(slots[:1])
    assert history.factors(slots[:1]).tolist() == [1.0]


def test_recent_arrivals_and_removals_are_counted():
    history = History()
    assert history.ratio == pytest.approx(1.0)
    nobody = np.empty(0, dtype=np.int32)
    for _ in range(5_000):
        history.note_arrivals(15, nobody)
        history.note_gone(10)
    assert history.ratio == pytest.approx(1.5, rel=0.01)
    for _ in range(5_000):
        history.note_gone(10)
    assert history.ratio == pytest.approx(0.5)


def test_a_window_is_compared_with_its_own_messages(monkeypatch):
    """It has a small part of the live ones; in a steady flow, all goes on as its past says."""
    asked = []

    def counts(k, cost, factor, ratio):
        asked.extend(zip(factor.tolist(), ratio.tolist(), strict=True))
        return cheapest_counts(k, cost, factor, ratio)

    monkeypatch.setattr("engine.stationary.matcher.cheapest_counts", counts)
    world = Stationary(StationaryPolicy.CSKYBAND, "naive", 7)
    engine, chance = world.engine, np.random.default_rng(7)
    ids = iter(np.split(np.arange(1, 4_201), 420))

    def publish():
        some = next(ids)
        places = chance.random((2, len(some))) * SIDE
        objects = ObjectBatch(some, *places, KeywordLists.of([[1]] * len(some)))
        engine.publish(objects, np.full(len(some), engine.now_ms + 10_000))

    for _ in range(20):
        publish()
    handles = np.array([handle_of(STATIONARY, number) for number in (1, 2)])
    interests = InterestBatch(
        np.full(2, 10.0), np.full(2, Similarity.JACCARD, np.int8), KeywordLists.of([[1]] * 2)
    )
    windows = Lasts(np.zeros(2, dtype=np.int64), np.array([20, 50]))
    world.matcher.subscribe(handles, StationarySpecs(interests, np.array([2, 2]), windows))
    middle = Positions(handles, np.full(2, SIDE / 2.0), np.full(2, SIDE / 2.0))
    engine.evaluate(middle)
    for step in range(1, 401):
        publish()
        engine.advance(500 * step)
        if step % 20 == 0:
            engine.evaluate(middle)
    factors, ratios = np.array(asked).T
    assert set(ratios.tolist()) == {1.0}
    assert 0.5 < np.median(factors) < 2.0


def test_a_subscription_with_costlier_searches_holds_more():
    counts = cheapest_counts(np.full(4, 20), np.array([10.0, 1_000.0, 10_000.0, 1e6]))
    assert sorted(counts.tolist()) == counts.tolist()
    assert counts[0] < counts[-1]


def test_entries_are_small():
    assert ENTRY_DTYPE.itemsize == 48


def damage_dominators(world):
    world.matcher.tables.entries["dominators"][:8] += 1


def damage_result(world):
    world.matcher.tables.entries["is_result"][:8] ^= 1


def damage_chain(world):
    world.matcher.tables.entries["previous"][:8] += 1


def damage_reach(world):
    world.matcher.subscriptions.rows["reach_m"] += 5.0


@pytest.mark.parametrize("damage", [damage_dominators, damage_result, damage_chain, damage_reach])
def test_check_notices_damage(damage):
    world = Stationary(StationaryPolicy.CSKYBAND, "naive", 3)
    world.publish(60)
    world.subscribe(5)
    world.engine.check()
    damage(world)
    with pytest.raises(InconsistentIndexError):
        world.engine.check()


@pytest.mark.parametrize("k", [1, 2, 20, 300])
@pytest.mark.parametrize("ratio", [0.5, 8.0, 512.0])
def test_the_least_cost_in_all_is_found(k, ratio):
    """Against every size, and the time to get below k from the chances to come and to go."""

    def cost(size):
        return size + ratio / turns(size, k)

    found = int(steady_counts(np.array([k]), np.array([ratio]))[0])
    sizes = range(k, min(N_FACTOR_MAX * k, k + 150) + 1)
    assert cost(found) == pytest.approx(min(cost(size) for size in sizes), rel=1e-9)


def turns(size, k):
    """Turns until fewer than k are left, from `size` on, which is also how many come in a turn.

    A step down from j takes 1 / j on average, and what has come meanwhile has to go first.
    """
    top = size + 15 * math.isqrt(size) + 40
    down = 0.0
    total = 0.0
    for j in range(top, k - 1, -1):
        down = (1.0 + size * down) / j
        if j <= size:
            total += down
    return total


@pytest.mark.parametrize("notify", [False, True])
def test_an_object_that_expires_before_a_better_one_needs_no_retrieval(notify):
    engine = Engine(EngineOptions(), {STATIONARY: StationaryMatcher})
    matcher = engine.matchers[STATIONARY]
    handle = np.array([handle_of(STATIONARY, 1)])
    words = KeywordLists.of([[1]])
    interest = InterestBatch(np.zeros(1), np.array([1], dtype=np.int8), words)
    matcher.subscribe(handle, StationarySpecs(interest, np.array([1], dtype=np.int64)))
    engine.evaluate(Positions(handle, np.zeros(1), np.zeros(1)))
    for number, (x_m, expiry_ms) in enumerate([(3.0, 50), (1.0, 100), (2.0, 200)], start=1):
        batch = ObjectBatch(np.array([number]), np.array([x_m]), np.zeros(1), words)
        engine.publish(batch, np.array([expiry_ms]))
    for now_ms, best in ((60, 2), (110, 3)):
        engine.advance(now_ms, notify=notify)
        engine.check()
        assert engine.held(int(handle[0]))[0].tolist() == [best]
    assert matcher.refills == 0


def test_a_share_of_a_score_is_by_the_scale_of_the_subscription():
    """With alpha 0.5 the k-th at 2 m has 0.9 of a score by 10 m: 0.95 of that is 2.9 m away."""
    options = EngineOptions(stationary=StationaryPolicy.SKYBAND, maxdist_m=MAXDIST_M)
    engine = Engine(options, {STATIONARY: StationaryMatcher})
    handles = np.array([handle_of(STATIONARY, number) for number in (1, 2)])
    words = KeywordLists.of([[1], [1]])
    interests = InterestBatch(np.array([10.0, MAXDIST_M]), np.array([1, 1], dtype=np.int8), words)
    k = np.array([1, 1], dtype=np.int64)
    matcher = engine.matchers[STATIONARY]
    matcher.subscribe(handles, StationarySpecs(interests, k, scale_m=np.array([10.0, MAXDIST_M])))
    batch = ObjectBatch(np.array([1]), np.array([2.0]), np.zeros(1), KeywordLists.of([[1]]))
    engine.publish(batch, np.array([1_000]))
    engine.evaluate(Positions(handles, np.zeros(2), np.zeros(2)))
    rows = matcher.subscriptions.rows[matcher.subscriptions.slots(handles)]
    assert rows["reach_m"].tolist() == pytest.approx([20.0 - 0.95 * 18.0, 40.0 - 0.95 * 38.0])
