"""What the AP-Tree does inside: partitions by cost, splits, degrades, drifts and is rebuilt in slices."""

from __future__ import annotations

import dataclasses
from itertools import combinations, pairwise

import numpy as np
import pytest

from index.contracts import InconsistentIndexError
from index.published.ap_tree import ApTree, cut_kernels
from index.published.ap_tree.drift_kernels import divergence
from index.published.ap_tree.layout import JOB_NEW, KEYWORDS, LEAF, NOTHING, ROOT, SPACE, Units
from index.square import Square
from tests.index.boxes import (
    Box,
    BoxDice,
    Clause,
    area_batch,
    expected,
    insert,
    matched,
    move,
    point,
)
from tests.index.brute import ids
from tests.support.amounts import examples

VARIANTS = ("DP", "HR", "KPriority", "SPriority", "Trie-Qd", "NR")


def root_of(index):
    return int(index._arrays.meta[ROOT])


def kind_of_root(index):
    return int(index._arrays.nodes[root_of(index)]["kind"])


def is_rebuilding(index):
    return int(index._arrays.meta[JOB_NEW]) != NOTHING


def crowd(count, seed=1, vocabulary=None, first=0):
    dice = BoxDice(seed)
    return [dice.clause(first + i, vocabulary) for i in range(count)]


def by_id(clauses):
    return {one.clause_id: one for one in clauses}


# -- the running example ---------------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_running_example(variant):
    """Figure 3, as far as the text tells it: m1 is delivered to s7, m2 to s1 and s4.

    m1 lies in the ranges of s1, s2, s4 and s7. The first keywords are w1 to w5, and w1 that of s1, s2, s4
    and s5, whose second ones are w2, w3 and w5.
    """
    everywhere, west, east = Box(0, 0, 8, 8), Box(0, 0, 4, 8), Box(4, 0, 8, 8)
    subscriptions = [
        Clause(1, everywhere, frozenset({1, 2})),
        Clause(2, west, frozenset({1, 3})),
        Clause(3, east, frozenset({2, 3})),
        Clause(4, everywhere, frozenset({1, 2})),
        Clause(5, east, frozenset({1, 5})),
        Clause(6, east, frozenset({5, 6})),
        Clause(7, west, frozenset({3, 4})),
        Clause(8, east, frozenset({3, 4})),
        Clause(9, east, frozenset({4, 6})),
    ]
    index = ApTree(variant=variant, fanout=4, leaf_max=2)
    insert(index, subscriptions)
    index.rebuild()
    index.check()
    assert kind_of_root(index) != LEAF
    messages = [point(1, 1.0, 1.0, {2, 3, 4}), point(2, 3.0, 3.0, {1, 2, 6})]
    assert matched(index, messages) == [[7], [1, 4]]


# -- cuts ------------------------------------------------------------------------------------------


def random_units(seed):
    """Keywords (both prefix sums alike) or stretches of space (what ends lags behind what begins)."""
    chance = np.random.default_rng(seed)
    count = int(chance.integers(2, 10))
    low = np.concatenate([[0.0], np.cumsum(chance.integers(1, 9, count))])
    high = low.copy() if seed % 2 else np.concatenate([[0.0], low[:-1] * chance.uniform(0.3, 1.0)])
    hit = np.concatenate([[0.0], np.cumsum(chance.uniform(0.0, 0.4, count))])
    return Units(low, high, hit), count


def cost_of(units, bounds):
    return sum(
        (units.low[end] - units.high[begin]) * min(1.0, units.hit[end] - units.hit[begin])
        for begin, end in pairwise(bounds)
    )


def cut_optimally(units, parts, bounds):
    count = len(units.low) - 1
    costs, choices = np.zeros((2, count + 1)), np.zeros((parts + 1, count + 1), dtype=np.int32)
    for layer in range(1, parts + 1):
        cut_kernels.add_layer(units, count, layer, costs, choices)
    cut_kernels.read_choices(count, parts, choices, bounds)


@pytest.mark.parametrize("seed", range(examples(16)))
def test_the_dynamic_program_is_optimal_and_the_heuristic_not_better(seed):
    units, count = random_units(seed)
    for parts in range(1, count + 1):
        bounds = np.zeros(parts + 1, dtype=np.int32)
        cut_optimally(units, parts, bounds)
        found = cut_kernels.total_cost(units, bounds, parts)
        least = min(
            cost_of(units, (0, *inner, count)) for inner in combinations(range(1, count), parts - 1)
        )
        assert found == pytest.approx(least)
        assert cost_of(units, bounds.tolist()) == pytest.approx(least)
        cut_kernels.cut_heuristically(units, count, parts, bounds)
        greedy = cut_kernels.total_cost(units, bounds, parts)
        assert bounds[0] == 0
        assert bounds[-1] == count
        assert (np.diff(bounds) > 0).all()
        assert greedy == pytest.approx(cost_of(units, bounds.tolist()))
        assert greedy >= least - 1e-9


# -- what a node becomes ---------------------------------------------------------------------------


def test_nodes_are_partitioned_by_distinguishing_keywords():
    same_place = [Clause(i, Box(0, 0, 9, 9), frozenset({i % 40, 100 + i % 7})) for i in range(200)]
    by_keywords = ApTree(leaf_max=10)
    insert(by_keywords, same_place)
    same_words = [Clause(i, Box(i, i, i + 1, i + 1), frozenset({1, 2})) for i in range(200)]
    by_place = ApTree(leaf_max=10)
    insert(by_place, same_words)
    assert kind_of_root(by_keywords) == KEYWORDS
    assert kind_of_root(by_place) == SPACE
    for index in (by_keywords, by_place):
        index.check()


def test_a_node_that_cannot_be_partitioned_stays_a_leaf():
    index = ApTree(leaf_max=10)
    insert(index, [Clause(i, Box(0, 0, 1, 1), frozenset({1, 2, 3})) for i in range(500)])
    assert kind_of_root(index) == LEAF


def test_priorities():
    dice = BoxDice(6)
    clauses = []
    for i in range(400):
        x_m, y_m = dice.coordinate(), dice.coordinate()
        clauses.append(Clause(i, Box(x_m, y_m, x_m, y_m), dice.words(2, 20)))
    roots = {}
    for variant in VARIANTS:
        index = ApTree(variant=variant, leaf_max=10)
        insert(index, clauses)
        index.rebuild()
        roots[variant] = kind_of_root(index)
    assert roots["KPriority"] == roots["Trie-Qd"] == KEYWORDS
    assert roots["SPriority"] == SPACE


def test_objects_determine_probabilities():
    """All objects lie in one corner, where few clauses are: cells there are worth it."""
    dice = BoxDice(4)
    clauses = [Clause(i, dice.box(), frozenset({i % 3})) for i in range(600)]
    spots = [point(i, 1.0 + 0.01 * i, 1.0, {0, 1, 2}) for i in range(200)]
    seen = {}
    for name, workload in (("with", area_batch(spots)), ("without", None)):
        index = ApTree(Square(0.0, 0.0, 50.0), leaf_max=10, fanout=9, workload=workload)
        insert(index, clauses)
        index.rebuild()
        index.check()
        assert matched(index, spots) == expected(by_id(clauses), spots)
        seen[name] = index.candidate_count
    assert seen["with"] < seen["without"]


def test_an_unknown_variant_is_refused():
    with pytest.raises(ValueError, match="variant is 'XY', must be one of DP, HR"):
        ApTree(variant="XY")


# -- splits, degrades, drift -----------------------------------------------------------------------


def test_a_full_leaf_is_parted_and_an_emptied_node_becomes_a_leaf():
    index = ApTree(leaf_max=10)
    clauses = crowd(10)
    insert(index, clauses)
    assert kind_of_root(index) == LEAF
    insert(index, crowd(50, seed=2, first=10))
    assert kind_of_root(index) != LEAF
    index.check()
    index.remove(ids(range(4, 60)))
    assert kind_of_root(index) == LEAF
    index.check()


def test_room_is_used_again():
    index = ApTree(leaf_max=5, fanout=9)
    for _ in range(3):
        insert(index, crowd(500))
        size = index.memory_bytes()
        index.remove(ids(range(500)))
    insert(index, crowd(500))
    assert index.memory_bytes() <= 1.5 * size
    index.check()


def drifted(variant):
    """A tree built for some words in the west, to which many more come, with others, in the east."""
    chance = np.random.default_rng(5)
    index = ApTree(variant=variant, leaf_max=10, fanout=16)
    clauses = []
    for i in range(3_000):
        x_m = float(chance.uniform(0, 10) + (50 if i > 300 else 0))
        y_m = float(chance.uniform(0, 10))
        first = 100 if i > 300 else 0
        words = frozenset((first + chance.integers(0, 40, 2)).tolist())
        clauses.append(Clause(i, Box(x_m, y_m, x_m + 1, y_m + 1), words))
    for start in range(0, len(clauses), 50):
        insert(index, clauses[start : start + 50])
    objects = []
    for i in range(200):
        x_m, y_m = float(chance.uniform(50, 60)), float(chance.uniform(0, 10))
        objects.append(point(i, x_m, y_m, (100 + chance.integers(0, 40, 8)).tolist()))
    assert matched(index, objects) == expected(by_id(clauses), objects)
    index.check()
    return index


def test_drift_is_noticed_and_rebuilding_pays():
    following, rigid = drifted("HR"), drifted("NR")
    assert following.rebuild_count > 0
    assert rigid.rebuild_count == 0
    assert following.candidate_count < rigid.candidate_count


def test_divergence_is_that_of_smoothed_weights():
    index = ApTree(leaf_max=10)
    insert(index, [Clause(i, Box(i, i, i + 1, i + 1), frozenset({1})) for i in range(100)])
    tree, row = index._arrays.tree(), index._arrays.nodes[root_of(index)]
    start, count = int(row["start"]), int(row["count"])
    parts = tree.parts[start : start + count]
    weights = [0 if child == NOTHING else int(tree.nodes[child]["weight"]) for child in parts["child"]]
    parts["built"] = np.arange(count)
    old = (np.arange(count) + 1) / (np.arange(count) + 1).sum()
    new = (np.array(weights) + 1) / (np.array(weights) + 1).sum()
    assert divergence(tree, tree.nodes[root_of(index)]) == pytest.approx((old * np.log(old / new)).sum())


# -- rebuilt in slices -----------------------------------------------------------------------------


@pytest.mark.usefixtures("tiny_slices")
@pytest.mark.parametrize("seed", range(examples(5)))
def test_nothing_gets_lost_while_a_tree_is_rebuilt(seed):
    dice = BoxDice(300 + seed)
    vocabulary = (None, 8, 40)[seed % 3]
    drift_max = (0.001, 1e-6)[seed % 2]
    index = ApTree(leaf_max=4, fanout=9, drift_max=drift_max, variant=("HR", "DP")[seed % 2])
    there = by_id(crowd(150, seed, vocabulary))
    insert(index, list(there.values()))
    next_id, rebuilt = 1_000, 0
    for step in range(150):
        if not is_rebuilding(index) and step % 10 == 0:
            index.begin_rebuild()
        rebuilt += is_rebuilding(index)
        some = dice.random.sample(sorted(there), min(len(there), dice.random.randint(0, 4)))
        kind = dice.random.choice(("insert", "insert", "move", "remove", "maintain", "check"))
        if kind == "insert":
            new = [dice.clause(next_id + i, vocabulary) for i in range(dice.random.choice((1, 1, 5)))]
            next_id += len(new)
            insert(index, new)
            there.update(by_id(new))
        elif kind == "move":
            moved = [dataclasses.replace(there[key], box=dice.box()) for key in some]
            move(index, moved)
            there.update(by_id(moved))
        elif kind == "remove":
            index.remove(ids(some))
            for key in some:
                del there[key]
        elif kind == "maintain":
            index.maintain()
        elif step % 3 == 0:
            index.check()
        objects = [dice.area_object(i) for i in range(2)]
        assert matched(index, objects) == expected(there, objects)
    assert rebuilt > 20
    while index.maintain():
        pass
    assert not is_rebuilding(index)
    index.check()
    objects = [dice.area_object(i) for i in range(50)]
    assert matched(index, objects) == expected(there, objects)


@pytest.mark.usefixtures("tiny_slices")
def test_every_slice_leaves_a_tree_that_is_right():
    there = by_id(crowd(200, 7))
    index = ApTree(leaf_max=4, fanout=9)
    insert(index, list(there.values()))
    while index.maintain():
        pass
    old = root_of(index)
    index.begin_rebuild()
    steps, busy = 0, True
    while busy:
        busy = index.maintain()
        steps += 1
        if steps % 4 == 0:
            index.check()
    assert steps > 20
    assert root_of(index) != old
    index.check()
    objects = [BoxDice(8).area_object(i) for i in range(30)]
    assert matched(index, objects) == expected(there, objects)


@pytest.mark.usefixtures("tiny_slices")
def test_a_subtree_is_rebuilt_beside():
    """Drift below the root: only that part of the tree is replaced."""
    west = [Clause(i, Box(i % 20, 0, i % 20 + 1, 1), frozenset({1, 10 + i % 50})) for i in range(2_000)]
    index = ApTree(leaf_max=10, fanout=9)
    insert(index, west)
    while index.maintain():
        pass
    before, root = index.rebuild_count, root_of(index)
    replaced = 0
    for step in range(60):
        new = [
            Clause(10_000 + 10 * step + i, Box(3, 0, 4, 1), frozenset({1, 500 + i})) for i in range(10)
        ]
        insert(index, new)
        replaced += is_rebuilding(index)
    assert index.rebuild_count > before
    assert replaced > 0
    index.check()
    assert root_of(index) == root
    found = matched(index, [point(1, 3.5, 0.5, {1, 503})])
    assert found == [[10_000 + 10 * step + 3 for step in range(60)]]


@pytest.mark.usefixtures("tiny_slices")
def test_nothing_gets_lost_when_a_tree_is_planted_between_two_rebuilds():
    """Marks of the first rebuild must not be taken for those of the second."""
    index = ApTree(leaf_max=4, fanout=9)
    there = by_id(crowd(150, 4))
    insert(index, list(there.values()))
    for _ in range(2):
        while index.maintain():
            pass
        index.rebuild()
        index.begin_rebuild()
    while index.maintain():
        pass
    index.check()
    objects = [BoxDice(9).area_object(i) for i in range(30)]
    assert matched(index, objects) == expected(there, objects)


def test_the_order_is_frozen_until_all_is_rebuilt():
    index = ApTree(leaf_max=10)
    insert(index, [Clause(i, Box(0, 0, 1, 1), frozenset({i % 30, 40})) for i in range(100)])
    index.rebuild()
    order = index._arrays.order.copy()
    assert order[1 + 40] == 1, "the most frequent keyword comes first"
    insert(index, [Clause(1_000 + i, Box(0, 0, 1, 1), frozenset({7_000 + i})) for i in range(3)])
    assert np.array_equal(index._arrays.order[1 : len(order)], order[1:])
    assert index._arrays.order[7_001:7_004].tolist() == [32, 33, 34]
    index.check()
    index.begin_rebuild()
    while index.maintain():
        pass
    index.check()


# -- check -----------------------------------------------------------------------------------------


def break_box(arrays, leaf, _parted):
    arrays.runs.records[int(leaf["start"])]["x1_m"] += 5.0


def break_signature(arrays, leaf, _parted):
    arrays.runs.records[int(leaf["start"])]["signature"] ^= 1


def break_slot(arrays, leaf, _parted):
    first = int(leaf["start"])
    arrays.runs.records[first] = arrays.runs.records[first + 1]


def break_generation(arrays, leaf, _parted):
    arrays.table.rows["generation"][int(arrays.runs.records[int(leaf["start"])]["slot"])] += 1


def break_weight(_arrays, _leaf, parted):
    parted["weight"] += 1


def break_region(arrays, _leaf, parted):
    arrays.parts[int(parted["start"]) + 1]["low"] += 1e9


def break_order(arrays, _leaf, _parted):
    arrays.order[1:3] = arrays.order[1]


def break_child(arrays, _leaf, parted):
    start = int(parted["start"])
    children = arrays.parts["child"][start : start + int(parted["count"])]
    children[np.flatnonzero(children != NOTHING)[0]] = NOTHING


def break_parent(_arrays, leaf, _parted):
    leaf["parent"] += 1


def break_free_chain(arrays, _leaf, _parted):
    arrays.nodes = np.concatenate([arrays.nodes, arrays.nodes[:1]])
    arrays.meta[1] += 1


@pytest.mark.parametrize(
    "damage",
    [
        break_box,
        break_signature,
        break_slot,
        break_generation,
        break_weight,
        break_region,
        break_order,
        break_child,
        break_parent,
        break_free_chain,
    ],
)
def test_check_finds_damage(damage):
    index = ApTree(leaf_max=10, fanout=9)
    insert(index, crowd(300, seed=3))
    index.check()
    arrays = index._arrays
    end = int(arrays.meta[1])
    nodes = arrays.nodes[:end]
    leaf = nodes[np.flatnonzero((nodes["kind"] == LEAF) & (nodes["count"] > 1))[0]]
    damage(arrays, leaf, arrays.nodes[root_of(index)])
    with pytest.raises(InconsistentIndexError):
        index.check()
