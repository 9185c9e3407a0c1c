"""What is particular to the SQ-tree: how it prunes, splits, merges, tightens, and finds its root."""

from __future__ import annotations

import numpy as np
import pytest

from index.contracts import InconsistentIndexError
from index.published.sq_tree import SqTree
from index.published.sq_tree.bound_kernels import common_needed, expected_distance, threshold
from index.published.sq_tree.layout import (
    COMMON_MAX,
    FREE_CELLS,
    FREE_NODES,
    NODE_DTYPE,
    NOTHING,
    ROOT,
    SUBSCRIPTION_DTYPE,
)
from tests.index.brute import (
    Anchored,
    Dice,
    Interest,
    Object,
    ids,
    object_batch,
)
from tests.index.subscriptions import insert
from tests.support.leaves import compiled


def tree(**options):
    """A tree that has seen objects with all keywords: what it keeps is decided by its leaves alone."""
    index = SqTree(**options)
    index.match(object_batch([Object(1, 0.0, 0.0, frozenset(range(9)))]))
    return index


def scattered(count, spread, reach_m=2.0, seed=1):
    """Subscriptions to one of many keywords each, all over a square."""
    chance = np.random.default_rng(seed)
    return [
        Anchored(
            i,
            float(chance.uniform(-spread, spread)),
            float(chance.uniform(-spread, spread)),
            0.0,
            reach_m,
            0,
            Interest(9_000.0, 1, frozenset({int(chance.integers(0, 9))})),
        )
        for i in range(count)
    ]


def leaves(index):
    nodes = index._tree().nodes
    found, stack = [], [ROOT]
    while stack:
        node = stack.pop()
        first = int(nodes[node]["first_child"])
        if first == NOTHING:
            found.append(node)
        else:
            stack += range(first, first + 4)
    return found


def test_a_full_leaf_splits_and_empty_ones_merge():
    index = tree(square=(0.0, 0.0, 100.0), capacity=4)
    subscriptions = scattered(200, 100.0)
    insert(index, subscriptions)
    index.check()
    assert len(leaves(index)) > 20
    index.remove(ids(range(1, 200)))
    index.check()
    assert len(leaves(index)) == 1


def test_room_is_used_again():
    index = tree(square=(0.0, 0.0, 100.0), capacity=4)
    insert(index, scattered(300, 100.0))
    size = index.memory_bytes()
    for round_number in range(5):
        index.remove(ids(range(300)))
        insert(index, scattered(300, 100.0, seed=round_number))
    index.check()
    assert index.memory_bytes() <= 1.2 * size


def test_thousands_at_one_point_stop_at_the_depth_cap():
    index = tree(square=(0.0, 0.0, 100.0), capacity=4)
    subscriptions = scattered(500, 0.0)
    insert(index, subscriptions)
    index.check()
    item = next(one for one in map(Dice(1).object, range(100)) if 3 in one.keywords)
    expected = sorted(one.subscription_id for one in subscriptions if one.is_matched_by(item))
    assert sorted(index.match(object_batch([item])).row(0).tolist()) == expected


def test_far_objects_touch_few_subscriptions():
    """The thresholds do prune: an object in an empty corner meets a fraction of the tree."""
    index = tree(square=(0.0, 0.0, 1000.0), capacity=4)
    subscriptions = scattered(400, 100.0)
    insert(index, subscriptions)
    arrays = index._tree()
    root = arrays.nodes[ROOT]
    away = float(np.hypot(900.0, 900.0))
    assert root["subtree_count"] == 400
    children = range(int(root["first_child"]), int(root["first_child"]) + 4)
    assert all(arrays.subtree_m[child, 1] < away for child in children)


def test_thresholds_tighten_after_departures():
    index = tree(square=(0.0, 0.0, 100.0), capacity=200)
    insert(
        index,
        [*scattered(100, 50.0), Anchored(999, 0.0, 0.0, 0.0, 70.0, 0, scattered(1, 1.0)[0].interest)],
    )
    wide = index._tree().subtree_m[ROOT, 1]
    index.remove(ids([999, *range(60)]))
    index.check()
    assert index._tree().subtree_m[ROOT, 1] < wide / 10


def test_a_root_of_its_own_follows_its_subscriptions():
    index = tree(capacity=4)
    insert(index, scattered(300, 5_000.0))
    index.check()
    assert index._square[2] > 1_000.0
    assert len(leaves(index)) > 20


def test_subscriptions_with_more_common_keywords_than_expected_stay_above_the_leaves():
    """pnum > E[i_n]: nobody has published anything yet, so every node keeps what reaches it first."""
    index = SqTree(square=(0.0, 0.0, 100.0), capacity=4)
    insert(index, scattered(200, 100.0))
    index.check()
    assert index._tree().nodes["own_count"].max() > 40
    # Once objects are seen, a node distributes at its next subscription.
    index.match(object_batch([Object(1, 0.0, 0.0, frozenset(range(9)))]))
    insert(
        index,
        [Anchored(1_000 + i, 1.0 + i, 1.0, 0.0, 2.0, 0, scattered(1, 1.0)[0].interest) for i in range(3)],
    )
    index.check()
    assert index._tree().nodes["own_count"][ROOT] <= 4


@pytest.mark.parametrize("similarity", [1, 2, 3])
@pytest.mark.parametrize("common", [1, 2, 3, 5, 16, 40])
def test_the_threshold_covers_every_object_with_so_many_common_keywords(similarity, common):
    for count in (1, 2, 5, 20):
        row = np.zeros(1, dtype=SUBSCRIPTION_DTYPE)
        row["reach_m"], row["weight_m"] = 50.0, 30.0
        row["similarity"], row["keyword_count"] = similarity, count
        shared = min(common, count)
        interest = Interest(30.0, similarity, frozenset(range(count)))
        for more in range(12):
            words = frozenset(range(shared)) | frozenset(range(100, 100 + more))
            share = interest.share(Object(1, 0.0, 0.0, words))
            assert compiled(threshold)(row[0], common) >= 50.0 - share


def test_the_expected_distance_is_the_mean_over_the_area():
    root = np.zeros(1, dtype=NODE_DTYPE)
    root["x_m"], root["y_m"], root["half_m"] = 10.0, -20.0, 100.0
    side = np.linspace(-100.0, 100.0, 801)
    x, y = np.meshgrid(10.0 + side, -20.0 + side)
    for centre_x, centre_y, half in ((10.0, -20.0, 100.0), (60.0, -70.0, 50.0), (35.0, 5.0, 25.0)):
        dx = np.maximum(0.0, np.abs(x - centre_x) - half)
        dy = np.maximum(0.0, np.abs(y - centre_y) - half)
        mean = float(np.hypot(dx, dy).mean())
        assert compiled(expected_distance)(root[0], centre_x, centre_y, half) == pytest.approx(
            mean, abs=0.5
        )


@pytest.mark.parametrize(
    "part", ["own", "subtree", "posting", "count", "chain", "free nodes", "free cells"]
)
def test_check_notices_damage(part):
    index = tree(square=(0.0, 0.0, 100.0), capacity=4)
    insert(index, scattered(50, 100.0))
    insert(index, scattered(150, 100.0)[50:])
    index.remove(np.arange(50, 150))
    index.check()
    arrays = index._tree()
    leaf = next(node for node in leaves(index) if arrays.nodes[node]["own_count"] > 1)
    if part == "own":
        arrays.own_m[leaf] = -1.0
    elif part == "subtree":
        arrays.subtree_m[leaf] = -1.0
    elif part == "posting":
        arrays.postings["slot"][0] = 33
    elif part == "count":
        arrays.nodes["subtree_count"][ROOT] += 1
    elif part == "free nodes":
        assert arrays.meta[FREE_NODES] != NOTHING
        arrays.meta[FREE_NODES] = NOTHING
    elif part == "free cells":
        assert arrays.meta[FREE_CELLS] != NOTHING
        arrays.meta[FREE_CELLS] = NOTHING
    else:
        arrays.subscriptions["previous"][arrays.nodes["first"][leaf]] = 7
    with pytest.raises(InconsistentIndexError):
        index.check()


def test_no_more_common_keywords_are_expected_than_thresholds_are_kept_for():
    """E[i_n] is t_max at most: what needs 18 of 20 keywords stays at the root, though 20 are expected."""
    words = frozenset(range(COMMON_MAX + 4))
    subscriptions = [
        Anchored(i, float(i), float(i % 7), 0.0, 3.0, 0, Interest(30.0, 1, words)) for i in range(50)
    ]
    index = SqTree(square=(0.0, 0.0, 100.0), capacity=4)
    index.observe(object_batch([Object(1, 0.0, 0.0, words)]))
    insert(index, subscriptions)
    index.check()
    root = index._tree().nodes[ROOT]
    assert compiled(common_needed)(index._tree().subscriptions[0], root["distance_m"]) == 18.0
    assert root["common"] == len(words)
    assert root["own_count"] == len(subscriptions)


def test_observing_is_matching_without_matches():
    objects = object_batch([Object(i, 0.0, 0.0, frozenset({i % 3, i % 5})) for i in range(30)])
    trees = [SqTree(square=(0.0, 0.0, 100.0), capacity=4) for _ in range(2)]
    trees[0].observe(objects)
    trees[1].match(objects)
    for index in trees:
        insert(index, scattered(200, 100.0))
        index.check()
    first, second = (index._tree() for index in trees)
    assert first.nodes["common"][ROOT] > 1.0
    assert (first.nodes == second.nodes).all()
    assert trees[0].seen_count == trees[1].seen_count == 30
