"""What is particular to IGPT and IPT: groups, thresholds that rise and fall, what is skipped."""

from __future__ import annotations

import math

import numpy as np
import pytest

from index.batches import InterestBatch, KeywordLists, ObjectBatch, ReachBatch
from index.contracts import InconsistentIndexError
from index.naive import NaiveSubscriptionIndex
from index.published.igpt import Igpt, Ipt
from index.published.igpt.layout import DEPTH_MAX, LIST_COUNT, NOTHING, ROOT
from index.square import Square
from safe_region.scoring.formulas import Similarity
from tests.index.brute import (
    Anchored,
    Dice,
    Interest,
    Object,
    ids,
    reach_batch,
)
from tests.index.subscriptions import expected, insert, matched
from tests.support.amounts import examples

SQUARE = Square(0.0, 0.0, 1_000.0)
VOCABULARY = 400
MAXDIST_M = 2_000.0 * math.sqrt(2.0)


def scattered(count, words=(1, 2), spread=900.0, reach_m=40.0, seed=1):
    """Return subscriptions to the same keywords, of many preferences."""
    chance = np.random.default_rng(seed)
    weights = np.exp(chance.uniform(2.0, 8.0, count)).tolist()
    places = chance.uniform(-spread, spread, (count, 2)).tolist()
    return [
        Anchored(i, x_m, y_m, 0.0, reach_m, 0, Interest(weights[i], 3, frozenset(words)))
        for i, (x_m, y_m) in enumerate(places)
    ]


def leaves(index):
    cells = index._cells[: index._meta[0]]
    return np.flatnonzero((cells["first_child"] == NOTHING) & (cells["count"] > 0))


def lists(index):
    """The groups of each list, as rows."""
    found = []
    for head in index._list_values[index._list_keys != np.iinfo(np.int64).min].tolist():
        groups, group = [], head
        while group != NOTHING:
            groups.append(index._groups[group])
            group = int(index._groups[group]["next"])
        found.append(groups)
    return found


# -- a workload like the paper's -------------------------------------------------------------------


class Workload:
    """Messages of nine keywords, subscriptions of one to five of theirs, reaches of twentieth best."""

    def __init__(self, similarity, subscriptions=2_000, window=6_000, arrivals=30, seed=3):
        chance = np.random.default_rng(seed)
        shares = 1.0 / np.arange(1.0, VOCABULARY + 1.0)
        count = window + arrivals
        picks = np.argsort(chance.exponential(1.0, (count, VOCABULARY)) / shares, axis=1)[:, :9]
        rows = list(np.sort(picks, axis=1))
        has = np.zeros((count, VOCABULARY))
        np.put_along_axis(has, picks, 1.0, axis=1)
        squares = np.ones(VOCABULARY)
        if similarity == Similarity.TFIDF:
            squares = np.round(np.log(1.0 + count / has.sum(axis=0)) * 2**16) ** 2 / 2.0**32
        places = chance.uniform(-1_000.0, 1_000.0, (count, 2))
        x_m, y_m = places.T.copy()
        everything = ObjectBatch(np.arange(count), x_m, y_m, KeywordLists.of(rows), norm2=has @ squares)
        self.arrivals = part(everything, window, count)
        sources = chance.choice(window, subscriptions)
        words = [np.sort(chance.choice(rows[i], chance.integers(1, 6), replace=False)) for i in sources]
        keywords = KeywordLists.of(words)
        wants = np.array([np.isin(np.arange(VOCABULARY), row) for row in words], dtype=np.float64)
        alpha = chance.uniform(0.01, 0.99, subscriptions)
        weight_m = (1.0 - alpha) / alpha * MAXDIST_M
        self.interests = InterestBatch(
            weight_m,
            np.full(subscriptions, int(similarity), dtype=np.int8),
            keywords,
            squares[keywords.ids],
        )
        common = (wants * squares) @ has.T
        left, right = (wants @ squares)[:, None], has @ squares
        similar = {
            Similarity.JACCARD: common / (left + right - common),
            Similarity.DICE: 2.0 * common / (left + right),
        }.get(similarity, common / np.sqrt(left * right))
        away = np.hypot(x_m[sources, None] - x_m, y_m[sources, None] - y_m)
        lengths = np.where(common > 0.0, away + weight_m[:, None] * (1.0 - similar), np.inf)
        self.reaches = ReachBatch(
            np.arange(subscriptions),
            x_m[sources],
            y_m[sources],
            np.zeros(subscriptions),
            np.partition(lengths[:, :window], 19, axis=1)[:, 19],
            np.zeros(subscriptions, dtype=np.int64),
        )
        self.sharing = int((common[:, window:] > 0.0).sum())

    def matches(self, index):
        index.insert(self.reaches, self.interests)
        found = index.match(self.arrivals)
        return [sorted(found.row(i).tolist()) for i in range(len(self.arrivals))]


def part(objects, begin, end):
    offsets = objects.keywords.offsets[begin : end + 1]
    words = KeywordLists(offsets - offsets[0], objects.keywords.ids[offsets[0] : offsets[-1]])
    return ObjectBatch(
        objects.ids[begin:end],
        objects.x_m[begin:end],
        objects.y_m[begin:end],
        words,
        norm2=objects.norm2[begin:end],
    )


@pytest.mark.parametrize("similarity", Similarity)
def test_pruned_entries(similarity):
    workload = Workload(similarity)
    truth = workload.matches(NaiveSubscriptionIndex())
    results = sum(map(len, truth))
    found = {
        "igpt": Igpt(SQUARE, capacity=400),
        "near": Igpt(SQUARE, capacity=400, near=True),
        "ipt": Ipt(SQUARE, capacity=400),
    }
    for index in found.values():
        assert workload.matches(index) == truth
        index.check()
        assert results <= index.candidate_count
    igpt, near, ipt = found.values()
    # Groups never skip whom individual bounds would not have skipped: in the end the same are verified.
    assert igpt.candidate_count <= ipt.candidate_count
    assert near.candidate_count <= ipt.candidate_count
    assert 3 * ipt.candidate_count < workload.sharing
    # IPT looks at each entry of each keyword, which is what shares a keyword, or more.
    assert ipt.visited_count >= workload.sharing
    assert igpt.visited_count < 0.9 * ipt.visited_count
    assert near.visited_count < 0.75 * ipt.visited_count


def test_a_far_leaf_is_not_looked_at():
    index, individual = Igpt(SQUARE, capacity=20), Ipt(SQUARE, capacity=20)
    subscriptions = scattered(400, reach_m=120.0)
    item = Object(1, 10.0, 10.0, frozenset({1, 2}))
    for one in (index, individual):
        insert(one, subscriptions)
        assert matched(one, item) == expected(subscriptions, item) != []
    assert individual.visited_count == 800
    assert index.visited_count < 80
    assert index.candidate_count <= individual.candidate_count < 40


# -- trap: algorithm 1 as printed ------------------------------------------------------------------


@pytest.mark.parametrize("factory", [Igpt, Ipt])
@pytest.mark.parametrize("count", [2, 3, 6])
def test_a_second_keyword_that_would_not_do_alone(factory, count):
    """The same keywords: a similarity of 1. All but the first alone add up to less than is needed.

    The algorithm as printed meets it at the first keyword, skips it at the second and so loses it.
    """
    index = factory(SQUARE)
    words = frozenset(range(count))
    insert(index, [Anchored(7, 0.0, 0.0, 0.0, 12.0, 0, Interest(100.0, 3, words))])
    needed = 1.0 - 12.0 / 100.0
    assert (count - 1) / count < needed
    assert matched(index, Object(1, 3.0, 4.0, words)) == [7]
    assert matched(index, Object(1, 9.0, 12.0, words)) == []


@pytest.mark.parametrize("similarity", Similarity)
@pytest.mark.parametrize("seed", range(examples(3)))
def test_results_that_only_just_match(similarity, seed):
    """Reaches a trifle beyond the length of an object, so that lambda is what the two share."""
    dice = Dice(seed, (int(similarity),))
    objects = [dice.object(i) for i in range(30)]
    subscriptions = []
    while len(subscriptions) < 300:
        one = dice.anchored(len(subscriptions))
        length = one.interest.length(one.x_m, one.y_m, dice.random.choice(objects))
        if length is not None and one.interest.weight_m > 0.0:
            reach_m = length * (1.0 + 1e-15)
            subscriptions.append(
                Anchored(one.subscription_id, one.x_m, one.y_m, 0.0, reach_m, 100, one.interest)
            )
    for index in (Igpt(Square(0.0, 0.0, 8.0), capacity=10), Ipt(), Igpt(capacity=30, near=True)):
        insert(index, subscriptions)
        for item in objects:
            assert matched(index, item) == expected(subscriptions, item)


# -- thresholds ------------------------------------------------------------------------------------


@pytest.mark.parametrize("near", [False, True])
@pytest.mark.parametrize("seed", range(examples(2)))
def test_thresholds_that_rise_and_fall(seed, near):
    dice = Dice(seed)
    index = Igpt(Square(0.0, 0.0, 8.0), capacity=60, groups=4, near=near)
    there = {key: dice.anchored(key) for key in range(200)}
    insert(index, list(there.values()))
    for step in range(40):
        for key in dice.random.sample(sorted(there), dice.random.choice((1, 5, 60))):
            old = there[key]
            factor = dice.random.choice((0.0, 0.5, 0.97, 1.03, 2.0))
            reach_m = dice.random.choice((old.reach_m * factor, 5.0, 60.0, -1.0, math.inf))
            reach_m = 30.0 if math.isnan(reach_m) else reach_m
            there[key] = Anchored(
                key, old.x_m, old.y_m, old.radius_m, reach_m, old.reach_id, old.interest
            )
            index.move(reach_batch([there[key]]))
        if step % 8 == 0:
            index.check()
        item = dice.object(step)
        assert matched(index, item) == expected(there.values(), item)
    index.check()


def test_an_id_twice_in_a_move_is_where_it_was_last():
    index = Igpt(SQUARE, capacity=20)
    subscriptions = scattered(100)
    insert(index, subscriptions)
    places = [(-900.0, -900.0, 5.0), (900.0, 900.0, math.inf), (1.0, 2.0, 50.0)]
    moves = [Anchored(5, *place[:2], 0.0, place[2], 0, subscriptions[5].interest) for place in places]
    index.move(reach_batch(moves))
    index.check()
    subscriptions[5] = moves[-1]
    item = Object(1, 0.0, 0.0, frozenset({1, 2}))
    assert matched(index, item) == expected(subscriptions, item)


def test_the_largest_reach_of_a_leaf_follows():
    index = Igpt(SQUARE)
    subscriptions = scattered(10, reach_m=math.inf)
    insert(index, subscriptions)
    for count, one in enumerate(subscriptions):
        assert index._cells["top_count"][ROOT] == 10 - count
        assert index._cells["reach_m"][ROOT] == math.inf
        lower = Anchored(one.subscription_id, one.x_m, one.y_m, 2.0, float(count), 0, one.interest)
        index.move(reach_batch([lower]))
        index.check()
    assert index._cells["reach_m"][ROOT] == 11.0
    index.remove(ids(range(10)))
    index.check()
    assert index._cells["reach_m"][ROOT] == -math.inf


# -- groups ----------------------------------------------------------------------------------------


def test_a_list_is_partitioned_by_preference_as_it_grows():
    index = Igpt(SQUARE, groups=10)
    insert(index, scattered(15))
    assert [len(groups) for groups in lists(index)] == [1, 1]
    subscriptions = scattered(600)
    insert(index, subscriptions[15:])
    index.check()
    for groups in lists(index):
        counts = [int(group["count"]) for group in groups]
        assert len(counts) == 10
        assert sum(counts) == 600
        # Quantiles of 512 of them: what came later belongs to one or another.
        assert max(counts) < 3 * min(counts)
    index.remove(ids(range(20, 600)))
    index.check()
    for groups in lists(index):
        assert [len(groups), int(groups[0]["list_count"])] == [4, 20]
    index.remove(ids(range(20)))
    index.check()
    assert (index._meta[LIST_COUNT], len(index)) == (0, 0)


def test_equal_preferences_stay_in_one_group():
    index = Igpt(SQUARE)
    interest = Interest(50.0, 3, frozenset({1}))
    subscriptions = [Anchored(i, float(i), 0.0, 0.0, 30.0 + i % 3, 0, interest) for i in range(200)]
    insert(index, subscriptions)
    index.check()
    assert [len(groups) for groups in lists(index)] == [1]
    item = Object(1, 20.0, 0.0, frozenset({1, 9}))
    assert matched(index, item) == expected(subscriptions, item) != []


def test_subscriptions_without_text_weight_are_separate():
    index = Igpt(SQUARE)
    subscriptions = [
        Anchored(i, 10.0 * i, 0.0, 0.0, reach_m, 0, Interest(weight_m, 3, frozenset({1, i % 4 + 2})))
        for i, (weight_m, reach_m) in enumerate(
            [(0.0, 25.0), (1e-9, 25.0), (40.0, math.inf), (40.0, 45.0), (40.0, 45.0), (0.0, -math.inf)]
        )
    ]
    insert(index, subscriptions)
    index.check()
    longest = max(lists(index), key=lambda groups: sum(int(group["count"]) for group in groups))
    assert sorted((int(group["is_apart"]), int(group["count"])) for group in longest) == [(0, 2), (1, 4)]
    for x_m in (0.0, 20.0, 60.0, 500.0):
        item = Object(1, x_m, 0.0, frozenset({1}))
        assert matched(index, item) == expected(subscriptions, item) != []


# -- cells -----------------------------------------------------------------------------------------


def test_leaves_are_divided_and_merged():
    index = Igpt(SQUARE, capacity=20)
    subscriptions = scattered(500)
    insert(index, subscriptions)
    index.check()
    assert len(leaves(index)) > 25
    item = Object(1, 10.0, 10.0, frozenset({1, 2}))
    assert matched(index, item) == expected(subscriptions, item)
    for first in range(0, 495, 45):
        index.remove(ids(range(first, first + 45)))
        index.check()
    assert len(leaves(index)) == 1
    assert matched(index, item) == expected(subscriptions[495:], item)


def test_more_than_a_leaf_holds_at_one_point():
    index = Igpt(SQUARE, capacity=3)
    subscriptions = [
        Anchored(one.subscription_id, 5.0, 5.0, 0.0, one.reach_m, 0, one.interest)
        for one in scattered(30)
    ]
    insert(index, subscriptions)
    index.check()
    assert index._cells["depth"][leaves(index)].tolist() == [DEPTH_MAX]
    item = Object(1, 30.0, 10.0, frozenset({1, 2}))
    assert matched(index, item) == expected(subscriptions, item) != []


def test_without_a_square_the_index_finds_one():
    index = Igpt(capacity=20)
    far = [
        Anchored(one.subscription_id, one.x_m + 5e6, one.y_m, 0.0, one.reach_m, 0, one.interest)
        for one in scattered(300)
    ]
    insert(index, far[:5])
    insert(index, far[5:])
    index.check()
    assert len(leaves(index)) > 10
    item = Object(1, 5e6, 10.0, frozenset({1, 2}))
    assert matched(index, item) == expected(far, item) != []


def test_a_new_square_does_not_confuse_objects():
    """Marks of what an object has come to are numbered; the numbers go on with a new square."""
    index = Igpt()
    subscriptions = scattered(50, reach_m=300.0)
    insert(index, subscriptions)
    square = index._square
    item = Object(1, 10.0, 10.0, frozenset({1, 2}))
    assert matched(index, item) == expected(subscriptions, item) != []
    far = [
        Anchored(50 + one.subscription_id, 40.0 * one.x_m, one.y_m, 0.0, 9.0, 0, one.interest)
        for one in scattered(150)
    ]
    insert(index, far)
    assert index._square != square
    assert matched(index, item) == expected(subscriptions + far, item) != []


@pytest.mark.parametrize("arguments", [{"capacity": 0}, {"groups": 0}])
def test_invalid_parameters(arguments):
    with pytest.raises(ValueError, match="must be positive"):
        Igpt(SQUARE, **arguments)


# -- damage ----------------------------------------------------------------------------------------

DAMAGES = {
    "kScore*": lambda index, group: index._entries[group["start"]].__setitem__("kscore", -9.0),
    "alpha*": lambda index, group: index._entries[group["start"]].__setitem__("alpha", 1e-9),
    "inner": lambda index, group: index._entries[group["start"]].__setitem__("inner_m", 900.0),
    "weight": lambda index, group: index._entries[group["start"]].__setitem__("weight", 0.01),
    "rest": lambda index, group: index._entries[group["start"]].__setitem__("rest", -0.1),
    "next weight": lambda index, group: index._entries[group["start"]].__setitem__("next_weight", 9.0),
    "place": lambda index, group: index._entries[group["start"]].__setitem__("place", 9),
    "later alpha*": lambda index, group: index._entries[group["start"]].__setitem__("later_alpha", 0.0),
    "later weight": lambda index, group: index._entries[group["start"]].__setitem__("later_weight", 0.0),
    "slot": lambda index, group: index._entries[group["start"]].__setitem__("slot", 999),
    "group's kScore*": lambda _index, group: group.__setitem__("kscore", 1e6),
    "group's alpha*": lambda _index, group: group.__setitem__("alpha", 0.0),
    "group's weight": lambda _index, group: group.__setitem__("weight", 0.0),
    "border": lambda _index, group: group.__setitem__("border", 0.0),
    "group's count": lambda _index, group: group.__setitem__("count", 1),
    "list's count": lambda _index, group: group.__setitem__("list_count", 1),
    "apart": lambda _index, group: group.__setitem__("is_apart", 1),
    "room": lambda _index, group: group.__setitem__("room", 1),
    "key": lambda _index, group: group.__setitem__("key", 5),
    "reach": lambda index, _group: index._cells["reach_m"].__setitem__(ROOT, 1.0),
    "top": lambda index, _group: index._cells["top_count"].__setitem__(leaves(index)[0], 999),
    "members": lambda index, _group: index._cells["count"].__setitem__(leaves(index)[0], 1),
    "chain": lambda index, _group: index._table.rows["previous"].__setitem__(3, 7),
    "position": lambda index, _group: index._table.rows["x_m"].__setitem__(3, 999.0),
    "reach of one": lambda index, _group: index._table.rows["reach_m"].__setitem__(3, 1.0),
    "use": lambda index, _group: index._table.uses.__setitem__(1, 1),
    "stack": lambda index, _group: index._meta.__setitem__(7, 1),
    "lists": lambda index, _group: index._meta.__setitem__(LIST_COUNT, 1),
    "rows": lambda index, _group: index._meta.__setitem__(3, 400),
    "entries": lambda index, _group: index._meta.__setitem__(6, 4_000),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_check_notices_damage(damage):
    index = Igpt(SQUARE, capacity=60)
    insert(index, scattered(200))
    index.check()
    group = next(groups[0] for groups in lists(index) if len(groups) > 2)
    DAMAGES[damage](index, group)
    with pytest.raises(InconsistentIndexError):
        index.check()
