"""What is particular to the SQ+-tree: combinations, quadtrees that grow and shrink, few candidates."""

from __future__ import annotations

import numpy as np
import pytest

from index.contracts import InconsistentIndexError
from index.sq_plus_tree import SqPlusTree
from index.sq_plus_tree.layout import CLASS_OFFSETS, CLASSES, COMBINED_MAX, NODE_COUNT, NOTHING
from index.sq_plus_tree.text_distances import SIZE_MAX, text_distances
from safe_region.scoring import Similarity, text_distance
from tests.index.brute import (
    Anchored,
    Dice,
    Interest,
    Object,
    ids,
    interest_batch,
    object_batch,
    reach_batch,
)

SQUARE = (0.0, 0.0, 1_000.0)


def insert(index, subscriptions):
    index.insert(reach_batch(subscriptions), interest_batch([one.interest for one in subscriptions]))


def scattered(count, words=(1, 2), spread=900.0, reach_m=40.0, weight_m=60.0, seed=1):
    chance = np.random.default_rng(seed)
    interest = Interest(weight_m, 1, frozenset(words))
    return [
        Anchored(i, *chance.uniform(-spread, spread, 2).tolist(), 0.0, reach_m, 0, interest)
        for i in range(count)
    ]


def matched(index, item):
    return sorted(index.match(object_batch([item])).row(0).tolist())


def expected(subscriptions, item):
    return sorted(one.subscription_id for one in subscriptions if one.is_matched_by(item))


def used_cells(index):
    return int((index._groups["cell"][: index._meta[3]] != NOTHING).sum())


def test_a_subscription_has_an_entry_for_each_combination():
    index = SqPlusTree(SQUARE)
    insert(index, scattered(1, words=(3, 5, 8)))
    assert index._meta[NODE_COUNT] == 7
    index.remove(ids([0]))
    assert index._meta[NODE_COUNT] == 0
    index.check()


def test_groups_grow_quadtrees_and_shed_them():
    index = SqPlusTree(SQUARE)
    subscriptions = scattered(600)
    insert(index, subscriptions)
    index.check()
    assert used_cells(index) == 3
    item = Object(1, 10.0, 10.0, frozenset({1, 2}))
    assert matched(index, item) == expected(subscriptions, item) != []
    index.remove(ids(range(5, 600)))
    index.check()
    assert used_cells(index) == 0
    assert matched(index, item) == expected(subscriptions[:5], item)


@pytest.mark.parametrize("step", [0.5, 30.0, 2_500.0])
def test_moves_within_a_leaf_to_another_and_beyond_the_root(step):
    index = SqPlusTree(SQUARE)
    chance = np.random.default_rng(4)
    subscriptions = scattered(300)
    insert(index, subscriptions)
    for _ in range(6):
        subscriptions = [
            Anchored(
                one.subscription_id,
                one.x_m + float(chance.normal(0.0, step)),
                one.y_m + float(chance.normal(0.0, step)),
                0.0,
                float(chance.choice([5.0, 40.0, 300.0, np.inf])),
                0,
                one.interest,
            )
            for one in subscriptions
        ]
        index.move(reach_batch(subscriptions))
        index.check()
        for words in ({1}, {2, 3}, {1, 2}, {1, 2, 3, 4}):
            x_m, y_m = chance.uniform(-1_500.0, 1_500.0, 2).tolist()
            item = Object(1, x_m, y_m, frozenset(words))
            assert matched(index, item) == expected(subscriptions, item)


def test_nearly_every_candidate_is_a_result():
    index = SqPlusTree(SQUARE)
    dice = Dice(3)
    subscriptions = [
        Anchored(
            i,
            dice.random.uniform(-900.0, 900.0),
            dice.random.uniform(-900.0, 900.0),
            0.0,
            dice.random.uniform(20.0, 700.0),
            0,
            Interest(dice.random.uniform(10.0, 900.0), 1, dice.words(4)),
        )
        for i in range(3_000)
    ]
    insert(index, subscriptions)
    objects = [
        Object(1, dice.random.uniform(-900.0, 900.0), dice.random.uniform(-900.0, 900.0), dice.words(6))
        for _ in range(200)
    ]
    found = index.match(object_batch(objects))
    # The same subscription is met through smaller combinations, too: up to eight of them here.
    assert len(found.ids) > 1_000
    assert index.candidate_count < 6 * len(found.ids)


def test_room_is_used_again():
    index = SqPlusTree(SQUARE)
    insert(index, scattered(400))
    size = index.memory_bytes()
    for seed in range(8):
        index.remove(ids(range(400)))
        insert(index, scattered(400, words=(seed, seed + 1, seed + 2), seed=seed))
    index.check()
    assert index.memory_bytes() <= 4 * size


def test_thousands_at_one_point():
    index = SqPlusTree(SQUARE)
    subscriptions = scattered(1_500, spread=0.0)
    insert(index, subscriptions)
    index.check()
    item = Object(1, 1.0, 1.0, frozenset({1, 2}))
    assert len(matched(index, item)) == 1_500
    index.remove(ids(range(1_500)))
    assert matched(index, item) == []
    index.check()


@pytest.mark.parametrize("similarity", list(Similarity))
def test_the_text_distance_of_a_class_is_the_least_in_it(similarity):
    table = text_distances()
    ends = [*CLASS_OFFSETS[1:], 100]
    for size in (1, 2, 5, 7, 16, SIZE_MAX):
        for number in range(CLASSES):
            for count in range(CLASS_OFFSETS[number], ends[number]):
                for common in range(1, min(size, COMBINED_MAX) + 1):
                    actual = text_distance(similarity, common, size, common + count)
                    assert table[similarity, size, common, number] <= actual
                for common in range(1, min(size, 1 + count) + 1):
                    actual = text_distance(similarity, common, size, 1 + count)
                    assert table[similarity, size, 0, number] <= actual + 1e-15


@pytest.mark.parametrize("part", ["threshold", "place", "owner", "trie", "count", "position"])
def test_check_notices_damage(part):
    index = SqPlusTree(SQUARE)
    insert(index, scattered(100))
    index.check()
    cell = int(index._groups["cell"][0])
    if part == "threshold":
        index._threshold_m[cell, 2] += 1.0
    elif part == "place":
        index._places.values[0] += 1
    elif part == "owner":
        index._entries["owner"][index._places.values[0]] = 77
    elif part == "trie":
        index._nodes["child_count"][1] += 1
    elif part == "count":
        index._groups["count"][0] += 1
    else:
        index._entries["x_m"][index._places.values[0]] += 1.0
    with pytest.raises(InconsistentIndexError):
        index.check()
