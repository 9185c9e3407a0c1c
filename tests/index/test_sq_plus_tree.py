"""What is particular to the SQ+-tree: nodes that open, quadtrees that grow and shrink, few candidates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from index.contracts import InconsistentIndexError
from index.sq_plus_tree import SqPlusTree
from index.sq_plus_tree.closeness import class_closeness, closeness_table, kind_of
from index.sq_plus_tree.closeness_kernels import class_factor, class_of
from index.sq_plus_tree.layout import (
    BUCKET_MAX,
    CLASS_OFFSETS,
    CLASSES,
    COMBINED_MAX,
    NODE_COUNT,
    NODE_END,
    NOTHING,
    SIZE_MAX,
)
from safe_region.scoring.formulas import SET_SIMILARITIES, text_distance
from tests.index.brute import (
    TFIDF,
    Anchored,
    Dice,
    Interest,
    Object,
    ids,
    object_batch,
    reach_batch,
)
from tests.index.subscriptions import expected, insert, matched
from tests.support.leaves import compiled

SQUARE = (0.0, 0.0, 1_000.0)


def scattered(count, words=(1, 2), spread=900.0, reach_m=40.0, weight_m=60.0, seed=1):
    chance = np.random.default_rng(seed)
    interest = Interest(weight_m, 1, frozenset(words))
    return [
        Anchored(i, *chance.uniform(-spread, spread, 2).tolist(), 0.0, reach_m, 0, interest)
        for i in range(count)
    ]


def used_cells(index):
    nodes = index._nodes[1 : index._meta[NODE_END]]
    return int((nodes["cell"] != NOTHING).sum())


def opened(index):
    nodes = index._nodes[1 : index._meta[NODE_END]]
    return int((nodes["is_bucket"] == 0).sum())


def test_a_combination_is_opened_when_many_have_it():
    index = SqPlusTree(SQUARE)
    insert(index, scattered(BUCKET_MAX, words=(3, 5, 8)))
    index.check()
    assert (index._meta[NODE_COUNT], opened(index)) == (3, 0)
    subscriptions = scattered(BUCKET_MAX + 1, words=(3, 5, 8))
    insert(index, subscriptions[-1:])
    index.check()
    assert (index._meta[NODE_COUNT], opened(index)) == (7, 7)
    item = Object(1, 10.0, 10.0, frozenset({3, 8}))
    assert matched(index, item) == expected(subscriptions, item)
    index.remove(ids(range(BUCKET_MAX + 1)))
    assert index._meta[NODE_COUNT] == 0
    index.check()


def test_a_combination_that_nothing_can_match_has_no_entry():
    # One of two keywords: text distance 1/2 at least, 50 m, beyond the reach.
    index = SqPlusTree(SQUARE)
    insert(index, scattered(60, words=(1, 2), reach_m=40.0, weight_m=100.0))
    index.check()
    counts = index._nodes["entry_count"][1 : index._meta[NODE_END]]
    assert sorted(counts.tolist()) == [0, 0, 60]


def test_nodes_grow_quadtrees_and_shed_them():
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


def test_subscriptions_with_seven_keywords_are_found_by_single_ones():
    index = SqPlusTree(SQUARE)
    words = tuple(range(COMBINED_MAX + 1))
    subscriptions = scattered(100, words=words, reach_m=700.0, weight_m=500.0)
    insert(index, subscriptions)
    index.check()
    assert index._meta[NODE_COUNT] == len(words)
    for chosen in ({0}, {1, 5}, set(words), {6, 99}):
        item = Object(1, 10.0, 10.0, frozenset(chosen))
        assert matched(index, item) == expected(subscriptions, item)


def test_objects_of_very_many_keywords():
    index = SqPlusTree(SQUARE)
    subscriptions = scattered(200, words=(1, 2), reach_m=700.0)
    insert(index, subscriptions)
    for count in (63, 64, 65, 200):
        item = Object(1, 10.0, 10.0, frozenset(range(1, count + 1)))
        assert matched(index, item) == expected(subscriptions, item)


def test_objects_of_more_keywords_than_are_counted_match_no_more_for_it():
    # Those of 65 are taken for ones of 64 where candidates are looked for: 6 cm nearer.
    index = SqPlusTree(SQUARE)
    interest = Interest(600.0, 1, frozenset({1}))
    subscriptions = [Anchored(i, 100.0 + 0.01 * i, 0.0, 0.0, 700.0, 0, interest) for i in range(3_000)]
    insert(index, subscriptions)
    for count in (SIZE_MAX, SIZE_MAX + 1):
        item = Object(1, 0.0, 0.0, frozenset(range(1, count + 1)))
        found = matched(index, item)
        assert found == expected(subscriptions, item)
        assert 0 < len(found) < len(subscriptions)


def weighted(count, *, spread=900.0, seed=5, most=4, vocabulary=9):
    """Subscriptions of TFIDF, of all sizes and reaches, and some regions."""
    dice = Dice(seed, (TFIDF,))
    return [
        Anchored(
            i,
            dice.random.uniform(-spread, spread),
            dice.random.uniform(-spread, spread),
            dice.random.choice((0.0, 0.0, 0.0, 30.0)),
            dice.random.uniform(20.0, 700.0),
            0,
            Interest(dice.random.uniform(10.0, 900.0), TFIDF, dice.words(most, vocabulary)),
        )
        for i in range(count)
    ]


def weighted_objects(count, *, seed=6, most=6, vocabulary=9):
    """Objects whose squares are up to hundreds of times those of a keyword."""
    dice = Dice(seed)
    return [
        Object(
            i + 1,
            dice.random.uniform(-900.0, 900.0),
            dice.random.uniform(-900.0, 900.0),
            dice.words(most, vocabulary),
        )
        for i in range(count)
    ]


def test_with_weights_nearly_every_candidate_is_a_result():
    index = SqPlusTree(SQUARE)
    subscriptions = [one for one in weighted(3_000) if one.radius_m == 0.0]
    insert(index, subscriptions)
    index.check()
    assert used_cells(index) > 50
    objects = weighted_objects(200)
    found = index.match(object_batch(objects))
    for i, item in enumerate(objects):
        assert sorted(found.row(i).tolist()) == expected(subscriptions, item)
    assert len(found.ids) > 1_000
    # As with sets: the same subscription is met through smaller combinations, too.
    assert index.candidate_count < 6 * len(found.ids)


@pytest.mark.parametrize("most", [COMBINED_MAX, 14])
def test_with_weights_moves_and_removals(most):
    """Few and many keywords: up to 14, found by single ones."""
    index = SqPlusTree(SQUARE)
    there = {one.subscription_id: one for one in weighted(600, most=most, vocabulary=20)}
    insert(index, list(there.values()))
    objects = weighted_objects(40, most=16, vocabulary=20)
    for seed in range(4):
        moved = [
            replace(one, interest=there[one.subscription_id].interest)
            for one in weighted(600, spread=1_500.0, seed=seed)
            if one.subscription_id in there
        ]
        index.move(reach_batch(moved))
        there = {one.subscription_id: one for one in moved}
        gone = [key for key in there if key % 7 == seed]
        index.remove(ids(gone))
        for key in gone:
            del there[key]
        index.check()
        found = index.match(object_batch(objects))
        for i, item in enumerate(objects):
            assert sorted(found.row(i).tolist()) == expected(list(there.values()), item)
    assert len(found.ids) > 100


def test_with_weights_a_class_has_the_largest_factor_in_it():
    index = SqPlusTree(SQUARE)
    insert(index, weighted(100))
    forest = index._forest()
    for square in (2.0**-32, 0.5625, 7.3, 1024.0):
        for norm in square * np.geomspace(1.0, 1e4, 300):
            number = compiled(class_of)(forest, square, norm)
            assert compiled(class_factor)(forest, 0, square, number) >= 1.0 / np.sqrt(norm)
            assert number == 0 or compiled(class_factor)(forest, 0, square, number - 1) >= 1.0 / np.sqrt(
                norm
            )


def test_with_weights_or_without_but_not_both():
    index = SqPlusTree(SQUARE)
    alike, others = scattered(20), weighted(40)[20:]
    with pytest.raises(ValueError, match="TFIDF"):
        insert(index, [*alike, *others])
    insert(index, alike)
    with pytest.raises(ValueError, match="TFIDF"):
        insert(index, others)
    item = Object(1, 10.0, 10.0, frozenset({1, 2}))
    assert matched(index, item) == expected(alike, item)
    index.remove(ids(range(20)))
    insert(index, others)
    index.check()
    assert matched(index, item) == expected(others, item)


@pytest.mark.parametrize("similarity", SET_SIMILARITIES)
def test_the_closeness_of_a_class_is_the_largest_in_it(similarity):
    exact = closeness_table()
    largest = class_closeness(exact)
    ends = [*CLASS_OFFSETS[1:], SIZE_MAX + 1]
    room = 2e-7  # they are float32, rounded up
    for size in (1, 2, 5, 7, 16, SIZE_MAX):
        kind, loose = (kind_of(similarity, size, is_loose) for is_loose in (False, True))
        for number in range(CLASSES):
            for beyond in range(CLASS_OFFSETS[number], ends[number]):
                for common in range(1, min(size, COMBINED_MAX) + 1):
                    actual = 1.0 - text_distance(similarity, common, size, common + beyond)
                    assert largest[common, kind, number] >= actual
                    if common + beyond <= SIZE_MAX:
                        found = exact[common + beyond, common, kind]
                        assert actual <= found <= actual + room
                for common in range(1, min(size, 1 + beyond) + 1):
                    actual = 1.0 - text_distance(similarity, common, size, 1 + beyond)
                    assert largest[1, loose, number] >= actual


@pytest.mark.parametrize(
    ("table", "field", "place", "value"),
    [
        ("_threshold_m", None, "cell", 1e9),
        ("_nodes", "count", 1, 7),
        ("_nodes", "entry_count", 1, 7),
        ("_nodes", "keyword", 1, 77),
        ("_meta", None, NODE_COUNT, 77),
        ("_entries", "x_m", "entry", 77.0),
        ("_entries", "others", "entry", 1 << 40),
        ("_entries", "bound_m", "entry", 1e9),
        ("_entries", "rest_m", "entry", 77.0),
        ("_entries", "gain_m", "entry", 77.0),
        ("_entries", "kind", "entry", 7),
        ("_entries", "is_vague", "entry", 1),
        ("_entry_slots", None, "entry", 3_000),
    ],
)
@pytest.mark.parametrize("similarity", [1, TFIDF], ids=["sets", "tf-idf"])
def test_check_notices_damage(similarity, table, field, place, value):
    index = SqPlusTree(SQUARE)
    interest = Interest(60.0, similarity, frozenset({1, 2}))
    insert(index, [replace(one, interest=interest) for one in scattered(100)])
    index.check()
    cell = int(index._nodes["cell"].max())
    while index._cells["first_child"][cell] != NOTHING:
        cell = int(index._cells["first_child"][cell])
    places = {"cell": cell, "entry": int(index._cells["start"][cell])}
    rows = getattr(index, table)
    (rows if field is None else rows[field])[places.get(place, place)] = value
    with pytest.raises(InconsistentIndexError):
        index.check()


def test_check_notices_a_subscription_that_is_entered_twice():
    index = SqPlusTree(SQUARE)
    insert(index, [replace(one, interest=Interest(60.0, 1, frozenset({1, 2}))) for one in scattered(9)])
    index.check()
    node = int(np.flatnonzero(index._nodes["entry_count"])[0])
    start, count = (int(index._nodes[name][node]) for name in ("start", "entry_count"))
    assert index._nodes["cell"][node] == NOTHING
    index._entries[start + count] = index._entries[start]
    index._entry_slots[start + count] = index._entry_slots[start]
    index._nodes["entry_count"][node] += 1
    with pytest.raises(InconsistentIndexError, match="the entries of node"):
        index.check()


def test_check_notices_a_lost_member():
    index = SqPlusTree(SQUARE)
    insert(index, scattered(3))
    index._members[index._nodes["start"][1]] = 77
    with pytest.raises(InconsistentIndexError):
        index.check()
