"""The contract of clause indexes. The catalogue's are tested, and more of FACTORIES."""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np
import pytest

from bench.peers.clause_dict import ClauseDict
from bench.peers.clause_strtree import ClauseStrtree
from bench.peers.numba_dict import NumbaDict
from examples.clause_lists import ClauseLists
from index.catalogue import CLAUSE_INDEXES
from index.published.ap_tree import ApTree
from index.published.grid_files import KkClauses, SsClauses
from index.published.inverted_quad import InvertedQuad
from index.published.quad_inverted import QuadInverted
from index.published.rt_tree import RtTree
from index.published.rt_tree.orders import ORDERS
from index.square import Square
from tests.index.boxes import (
    AreaObject,
    Box,
    BoxDice,
    Clause,
    boxes_of,
    expected,
    insert,
    matched,
    move,
    point,
)
from tests.index.brute import ids, keyword_lists
from tests.index.published import marked
from tests.support.amounts import examples

FACTORIES = {
    **CLAUSE_INDEXES,
    "iq-tree-subscriptions, tiny cells": lambda: QuadInverted(lifetime=1e6),
    "iq-tree-subscriptions, given square": lambda: QuadInverted(Square(3.0, -2.0, 16.0)),
    "rq-tree, tiny cells": lambda: InvertedQuad(lifetime=1e6),
    "rq-tree, given square": lambda: InvertedQuad(Square(3.0, -2.0, 16.0)),
    "ss-index": lambda: SsClauses(side=4),
    "kk-index": lambda: KkClauses(side=4),
    "kk-index, given square": lambda: KkClauses(Square(3.0, -2.0, 16.0), side=9),
    "ap-tree-rebuilding": lambda: ApTree(fanout=4, leaf_max=3, drift_max=1e-6, change_share=0.05),
    "ap-tree-rarest-first": lambda: ApTree(fanout=9, leaf_max=8, is_rarest_first=True),
    "ap-tree-dp": lambda: ApTree(variant="DP", fanout=9, leaf_max=8),
    "ap-tree-kpriority": lambda: ApTree(variant="KPriority", fanout=9, leaf_max=8),
    "ap-tree-spriority": lambda: ApTree(variant="SPriority", fanout=9, leaf_max=8),
    "ap-tree-trie-qd": lambda: ApTree(variant="Trie-Qd", leaf_max=8),
    "ap-tree-nr": lambda: ApTree(variant="NR", fanout=9, leaf_max=8),
    **{
        f"rt-plus-plus-tree, {order}": partial(RtTree, "rt-plus-plus-tree", None, order)
        for order in ORDERS
    },
    "the example of a plug-in": ClauseLists,
    "dict": ClauseDict,
    "dict, tiny cells": lambda: ClauseDict(cell_m=0.3),
    "strtree": ClauseStrtree,
    "numba dict": NumbaDict,
    "numba dict, tiny cells": lambda: NumbaDict(cell_m=0.3),
}


@pytest.fixture(params=marked(FACTORIES))
def index(request):
    return FACTORIES[request.param]()


@pytest.mark.parametrize("seed", range(examples(2)))
def test_any_mix_of_operations(index, seed):
    dice = BoxDice(seed)
    there = {}
    next_id = 1
    matches = 0
    for step in range(60):
        kind = dice.random.choice(("insert", "insert", "move", "remove", "match", "match"))
        some = dice.random.sample(sorted(there), min(len(there), dice.random.randint(0, 6)))
        if kind == "insert":
            new = [dice.clause(next_id + i) for i in range(dice.random.choice((0, 1, 1, 7, 60)))]
            next_id += len(new)
            insert(index, new)
            there.update({one.clause_id: one for one in new})
        elif kind == "move":
            moved = [dataclasses.replace(there[key], box=dice.box()) for key in some]
            move(index, moved)
            there.update({one.clause_id: one for one in moved})
        elif kind == "remove":
            index.remove(ids(some))
            for key in some:
                del there[key]
        count = dice.random.choice((0, 1, 8))
        objects = [dice.area_object(dice.random.randint(0, 60)) for _ in range(count)]
        found = matched(index, objects)
        assert found == expected(there, objects)
        matches += sum(map(len, found))
        assert len(index) == len(there)
        if step % 7 == 0:
            index.check()
    assert matches > 0, "a run without a match proves nothing"


@pytest.mark.parametrize("seed", range(examples(1)))
def test_the_workload_drifts(index, seed):
    """Words and places wander while clauses come and go: structures that follow rebuild themselves."""
    dice = BoxDice(100 + seed)
    there = {}
    matches = 0
    for step in range(30):
        first_word, east_m = step * 2, 3.0 * step
        new = []
        for i in range(60):
            one = dice.clause(1_000 * step + i, 5)
            box = Box(
                one.box.x1_m + east_m, one.box.y1_m, one.box.x2_m + east_m, one.box.y2_m
            )  # wanders off
            new.append(Clause(one.clause_id, box, frozenset(word + first_word for word in one.required)))
        insert(index, new)
        there.update({one.clause_id: one for one in new})
        old = sorted(there)[: max(0, len(there) - 400)]
        index.remove(ids(old))
        for key in old:
            del there[key]
        objects = []
        for i in range(10):
            one = dice.area_object(i)
            words = frozenset(word + first_word for word in dice.words(5, 5))
            x_m, y_m = one.x_m + east_m, one.y_m
            objects.append(point(i, x_m, y_m, words))
        found = matched(index, objects)
        assert found == expected(there, objects)
        matches += sum(map(len, found))
        if step % 10 == 0:
            index.check()
    index.check()
    assert matches > 0, "a run without a match proves nothing"


@pytest.mark.parametrize("seed", range(examples(1)))
def test_many_keywords(index, seed):
    """Up to 16 required keywords, up to 64 an object, which share prefixes."""
    dice = BoxDice(200 + seed)
    there = {}
    for key in range(300):
        stem = range(dice.random.randint(0, 14))
        words = frozenset(stem) | dice.words(2, 40)
        there[key] = Clause(key, dice.box(), words)
    insert(index, list(there.values()))
    index.check()
    objects = [
        point(i, dice.coordinate(), dice.coordinate(), set(range(12)) | dice.words(50, 64))
        for i in range(40)
    ]
    assert matched(index, objects) == expected(there, objects)
    index.remove(ids(range(0, 300, 2)))
    index.check()
    kept = {key: one for key, one in there.items() if key % 2}
    assert matched(index, objects) == expected(kept, objects)


def test_many_alike(index):
    """Nothing can part clauses that are all the same."""
    there = {key: Clause(key, Box(0.0, 0.0, 1.0, 1.0), frozenset({1, 2})) for key in range(700)}
    insert(index, list(there.values()))
    objects = [point(1, 1.0, 1.0, {1, 2, 3}), point(2, 1.0, 1.5, {1, 2}), point(3, 0.5, 0.5, {1, 3})]
    assert matched(index, objects) == [list(range(700)), [], []]
    index.check()
    index.remove(ids(range(1, 700)))
    assert matched(index, objects) == [[0], [], []]
    index.check()


def test_edges_belong_to_a_box(index):
    insert(index, [Clause(1, Box(0.0, 0.0, 2.0, 1.0), frozenset({1}))])
    corners = [(0.0, 0.0), (2.0, 0.0), (2.0, 1.0), (0.0, 1.0), (1.0, 0.0), (2.0, 0.5)]
    less, more, most = np.nextafter(0.0, -1.0), np.nextafter(2.0, 3.0), np.nextafter(1.0, 2.0)
    outside = [(less, 0.0), (more, 1.0), (1.0, most)]
    objects = [point(i, float(x_m), float(y_m), {1}) for i, (x_m, y_m) in enumerate(corners + outside)]
    assert matched(index, objects) == [[1]] * 6 + [[]] * 3


def test_boxes_that_are_equal_in_float32(index):
    """Far from the origin: rounding to float32 would move edges by metres."""
    x_m = 16_777_217.0
    there = {key: Clause(key, Box(x_m + key, 0.0, x_m + key, 1.0), frozenset({1})) for key in range(50)}
    insert(index, list(there.values()))
    objects = [point(key, x_m + key, 0.5, {1, 2}) for key in range(50)]
    assert matched(index, objects) == [[key] for key in range(50)]


def test_unused_keywords(index):
    objects = [point(1, 0.0, 0.0, {5, 1_000_000}), point(2, 0.0, 0.0, {7})]
    assert matched(index, objects) == [[], []]
    insert(index, [Clause(1, Box(-1.0, -1.0, 1.0, 1.0), frozenset({1_000_000}))])
    assert matched(index, objects) == [[1], []]
    insert(index, [Clause(2, Box(-1.0, -1.0, 1.0, 1.0), frozenset({5, 1_000_000, 2_000_000}))])
    insert(index, [Clause(3, Box(-1.0, -1.0, 1.0, 1.0), frozenset({5, 1_000_000}))])
    assert matched(index, objects) == [[1, 3], []]
    index.check()


def test_an_area_is_found_once(index):
    """However many parts of the plane it and the clause share."""
    dice = BoxDice(3)
    crowd = {key: dice.clause(key, 4) for key in range(2, 500)}
    crowd[1] = Clause(1, Box(-30.0, -30.0, 30.0, 30.0), frozenset({1, 2}))
    insert(index, list(crowd.values()))
    objects = [
        AreaObject(1, 0.0, 0.0, Box(-20.0, -20.0, 20.0, 20.0), frozenset(range(6))),
        AreaObject(2, 30.0, 30.0, Box(30.0, 30.0, 35.0, 35.0), frozenset({1, 2})),
        AreaObject(3, 35.0, 35.0, Box(30.5, 30.5, 35.0, 35.0), frozenset({1, 2})),
    ]
    found = matched(index, objects)
    assert found == expected(crowd, objects)
    assert 1 in found[0]


def test_nothing_there(index):
    assert matched(index, []) == []
    assert matched(index, [point(1, 0.0, 0.0, {1})]) == [[]]
    insert(index, [])
    index.remove(ids([]))
    move(index, [])
    index.check()


def test_a_refused_batch_changes_nothing(index):
    dice = BoxDice(2)
    there = {key: dice.clause(key) for key in range(10)}
    insert(index, list(there.values()))
    with pytest.raises(KeyError, match="id 3"):
        insert(index, [dice.clause(100), dice.clause(3)])
    with pytest.raises(KeyError, match="id 100"):
        insert(index, [dice.clause(100), dice.clause(100)])
    with pytest.raises(KeyError, match="id 99"):
        index.remove(ids([1, 99]))
    with pytest.raises(KeyError, match="id 1"):
        index.remove(ids([1, 1]))
    with pytest.raises(KeyError, match="id 99"):
        move(index, [dice.clause(1), dice.clause(99)])
    with pytest.raises(KeyError, match="id 1"):
        move(index, [dice.clause(1), dice.clause(1)])
    good = Box(0.0, 0.0, 1.0, 1.0)
    for box in (Box(1.0, 0.0, 0.0, 1.0), Box(0.0, 0.0, 1.0, float("inf")), Box(float("nan"), 0, 1, 1)):
        with pytest.raises(ValueError, match="the box of clause 101 is"):
            insert(index, [dice.clause(100), Clause(101, box, frozenset({1}))])
        with pytest.raises(ValueError, match="the box of clause 2 is"):
            move(index, [Clause(1, good, frozenset({1})), Clause(2, box, frozenset({1}))])
    with pytest.raises(ValueError, match="clause 100 requires no keyword"):
        index.insert(ids([100]), boxes_of([good]), keyword_lists([frozenset()]))
    assert len(index) == len(there)
    index.check()
    objects = [dice.area_object(i) for i in range(50)]
    assert matched(index, objects) == expected(there, objects)


def test_candidates_are_counted(index):
    insert(index, [Clause(key, Box(0.0, 0.0, 1.0, 1.0), frozenset({1})) for key in range(5)])
    before = index.candidate_count
    assert matched(index, [point(1, 0.5, 0.5, {1})]) == [[0, 1, 2, 3, 4]]
    assert index.candidate_count >= before + 5


def test_memory_is_reported(index):
    before = index.memory_bytes()
    insert(index, [Clause(key, Box(0.0, 0.0, 1.0, 1.0), frozenset({key})) for key in range(5_000)])
    assert index.memory_bytes() >= before + 5_000 * 16
