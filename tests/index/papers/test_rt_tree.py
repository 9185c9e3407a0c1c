"""What is special about R^t-trees; that they are exact, the contract of clause indexes says."""

from __future__ import annotations

import numpy as np
import pytest

from index.contracts import InconsistentIndexError
from index.published.rt_tree import KINDS, RtTree
from index.published.rt_tree.layout import COUNTED, FANOUT, FLAT, KIND, LEAF_DEPTH
from index.published.rt_tree.orders import ORDERS
from tests.index.boxes import AreaObject, Box, BoxDice, Clause, expected, insert, matched, move
from tests.index.brute import ids

TREES = [name for name in KINDS if name != "keyword-first"]
PUBLISHED = ("rt-tree", "rt-plus-tree", "rt-plus-plus-tree")
EVERYWHERE = Box(-50.0, -50.0, 50.0, 50.0)


def item(box, *keywords):
    return AreaObject(1, box.x1_m, box.y1_m, box, frozenset(keywords))


def crowd(count, seed=4):
    """Clauses on a plane without much overlap, with keywords that few share."""
    chance = np.random.default_rng(seed)
    found = []
    for number in range(count):
        x_m, y_m = chance.uniform(-30.0, 30.0, 2).tolist()
        words = chance.choice(40, int(chance.integers(1, 5)), replace=False, p=FREQUENCY).tolist()
        found.append(Clause(number, Box(x_m, y_m, x_m + 1.0, y_m + 1.0), frozenset(words)))
    return found


FREQUENCY = 1.0 / np.arange(1, 41)
FREQUENCY /= FREQUENCY.sum()


def grown(name, clauses, order="local"):
    """A tree into which clauses came one by one."""
    index = RtTree(name, None, order)
    for start in range(0, len(clauses), 40):
        insert(index, clauses[start : start + 40])
    return index


@pytest.mark.parametrize("order", ORDERS)
def test_rt_plus_visits_nothing_that_rt_does_not(order):
    """Lemma 2; R^t++ visits a node where some clause has met a token at each level."""
    clauses = crowd(1_500)
    trees = [grown(name, clauses, order) for name in PUBLISHED]
    for tree in trees[1:]:
        assert (tree._tree.nodes["x1_m"] == trees[0]._tree.nodes["x1_m"]).all(), "not the same R-tree"
        assert (tree._tree.children == trees[0]._tree.children).all()
    chance = np.random.default_rng(1)
    fewer = 0
    for _ in range(60):
        x_m, y_m = chance.uniform(-30.0, 30.0, 2).tolist()
        side = float(chance.choice([0.0, 3.0, 20.0]))
        words = chance.choice(40, int(chance.integers(1, 7)), replace=False, p=FREQUENCY).tolist()
        one = item(Box(x_m, y_m, x_m + side, y_m + side), *words)
        found = [matched(tree, [one]) for tree in trees]
        assert found[0] == found[1] == found[2]
        nodes = [set(tree.visited().tolist()) for tree in trees]
        assert nodes[1] <= nodes[0]
        assert nodes[2] <= nodes[0]
        fewer += len(nodes[0]) - len(nodes[1])
    assert fewer > 0


def test_rt_plus_plus_verifies_no_text():
    clauses = crowd(800)
    index = grown("rt-plus-plus-tree", clauses)
    dice = BoxDice(3)
    objects = [dice.area_object(number) for number in range(40)]
    found = matched(index, objects)
    assert found == expected({one.clause_id: one for one in clauses}, objects)
    index._table.pool[:] = -7
    assert matched(index, objects) == found


@pytest.mark.parametrize("name", TREES)
def test_entries_behind_a_disjoint_entry_are_found(name):
    """Line 3 of Figure 5 as printed returns at the first such entry."""
    corners = [(-40.0, -40.0), (40.0, -40.0), (-40.0, 40.0), (40.0, 40.0)]
    clauses = [
        Clause(40 * i + j, Box(x, y, x + 1.0, y + 1.0), frozenset({1, 2}))
        for i, (x, y) in enumerate(corners)
        for j in range(40)
    ]
    for index in (RtTree(name), grown(name, clauses)):
        if not len(index):
            insert(index, clauses)
        assert index._tree.meta[LEAF_DEPTH] > 0
        for i, (x, y) in enumerate(corners):
            (found,) = matched(index, [item(Box(x, y, x, y), 1, 2)])
            assert found == list(range(40 * i, 40 * i + 40))


def test_each_entry_has_its_own_flag():
    """With one flag for all entries, as printed, what comes after an entry that goes on is visited."""
    left = [Clause(i, Box(-30.0, 0.0, -29.0, 1.0), frozenset({1, 2, 3})) for i in range(FANOUT * 30)]
    right = [
        Clause(5_000 + i, Box(29.0, 0.0, 30.0, 1.0), frozenset({4, 5, 6})) for i in range(FANOUT * 30)
    ]
    for clauses in (left + right, right + left):
        index = RtTree("rt-plus-plus-tree", None, "idf")
        insert(index, clauses)
        assert index._tree.meta[LEAF_DEPTH] >= 2
        assert matched(index, [item(EVERYWHERE, 1, 2)]) == [[]]
        nodes = index._tree.nodes[index.visited()]
        inner = nodes[nodes["live"] < len(index)]
        assert len(inner) > 0
        assert (inner["x1_m"] < 0.0).all(), "a node was visited below which nothing shares a keyword"


@pytest.mark.parametrize("name", TREES)
def test_boxes_that_cross_meet(name):
    """No vertex of one lies in the other."""
    index = RtTree(name)
    insert(index, [Clause(1, Box(-9.0, -1.0, 9.0, 1.0), frozenset({1}))])
    assert matched(index, [item(Box(-1.0, -9.0, 1.0, 9.0), 1)]) == [[1]]


@pytest.mark.parametrize("name", TREES)
def test_tokens_move_down_when_the_root_is_parted(name):
    """By one clause at a time through two roots more, and down to nothing."""
    clauses = crowd(FANOUT * FANOUT)
    index = RtTree(name)
    depths = set()
    for start in range(0, len(clauses), 25):
        insert(index, clauses[start : start + 25])
        depth = int(index._tree.meta[LEAF_DEPTH])
        if depth not in depths:
            index.check()
        depths.add(depth)
    assert depths == {0, 1, 2}
    index.check()
    there = {one.clause_id: one for one in clauses}
    everything = [item(EVERYWHERE, *range(40)), item(EVERYWHERE, 0, 1, 2), item(EVERYWHERE, 39)]
    assert matched(index, everything) == expected(there, everything)
    move(index, [Clause(one.clause_id, Box(0.0, 0.0, 1.0, 1.0), one.required) for one in clauses[:300]])
    index.check()
    index.remove(ids(there))
    index.check()
    assert matched(index, everything) == [[], [], []]


def test_orders():
    """Keyword 1 is rare in the east and frequent in the west, 2 the other way about; 3 is rare."""
    west, east = Box(-30.0, 0.0, -29.0, 1.0), Box(29.0, 0.0, 30.0, 1.0)
    words = [(west, {1})] * 30 + [(east, {2})] * 20 + [(west, {1, 2, 3}), (east, {1, 2, 3})]
    clauses = [Clause(number, box, frozenset(some)) for number, (box, some) in enumerate(words)]
    found = {}
    for order in ORDERS:
        index = RtTree("rt-plus-tree", None, order)
        insert(index, clauses)
        rows = index._table.rows[[50, 51]]
        pool, places = index._table.pool, index._table.places
        spans = [slice(start, start + 3) for start in rows["keyword_start"]]
        found[order] = [pool[span][places[span]].tolist() for span in spans]
    assert found["df"] == [[1, 2, 3]] * 2
    assert found["idf"] == [[3, 2, 1]] * 2
    assert found["local"] == [[3, 2, 1], [3, 1, 2]]
    assert [sorted(one) for one in found["random"]] == [[1, 2, 3]] * 2
    with pytest.raises(ValueError, match="order is 'rare', must be one of random, df, idf, local"):
        RtTree("rt-plus-tree", None, "rare")


def leaf_of(tree):
    return int(np.flatnonzero((tree.nodes["is_leaf"] == 1) & (tree.nodes["live"] > 0))[0])


def damage_box(tree, _table):
    tree.nodes["x2_m"][leaf_of(tree)] += 1.0


def damage_smaller_box(tree, _table):
    tree.nodes["y1_m"][leaf_of(tree)] += 1.0


def damage_count(tree, _table):
    tree.nodes["live"][leaf_of(tree)] += 1


def damage_leaf(tree, table):
    table.rows["leaf"][int(tree.children[leaf_of(tree), 0])] += 1


def damage_child(tree, _table):
    tree.nodes["count"][leaf_of(tree)] -= 1


def damage_depth(tree, _table):
    tree.meta[LEAF_DEPTH] += 1


def damage_order(_tree, table):
    slot = int(np.argmax(table.rows["keyword_count"]))
    table.places[int(table.rows["keyword_start"][slot])] += 1


def damage_key(tree, _table):
    tree.keys[int((tree.keys >= 0).argmax())] ^= 1 << 50


def damage_value(tree, _table):
    if len(tree.lists) and tree.members.ends[0]:
        number = int(tree.values[int((tree.keys >= 0).argmax())])
        tree.members.records["slot"][int(tree.lists["start"][number])] += 1
    else:
        tree.values[int((tree.keys >= 0).argmax())] += 1


def damage_tokens(tree, _table):
    """What a clause has to meet in a list; where lists have no such numbers, what damages a count."""
    if tree.meta[KIND] in (COUNTED, FLAT):
        tree.members.records["tokens"] += 1
    else:
        damage_value(tree, _table)


DAMAGE = [
    damage_tokens,
    damage_box,
    damage_smaller_box,
    damage_count,
    damage_leaf,
    damage_child,
    damage_depth,
    damage_order,
    damage_key,
    damage_value,
]


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", [name for name in TREES if name != "spatial-first"])
def test_check_notices_damage(name, damage):
    index = RtTree(name)
    insert(index, crowd(300))
    index.check()
    damage(index._tree, index._table)
    with pytest.raises(InconsistentIndexError):
        index.check()
