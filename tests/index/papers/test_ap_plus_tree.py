"""What is particular to the AP+-Tree: its lists, rebuilding in slices, the limit on copies, its costs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from index.batches import Boxes
from index.contracts import InconsistentIndexError
from index.published.ap_plus_tree import ApPlusTree
from index.published.ap_plus_tree.layout import (
    CARRIES,
    CARRY_MARK,
    DEAD_TOTAL,
    ITEM_TOTAL,
    KEPT,
    LISTS,
    WAITING,
)
from index.published.ap_tree import ApTree
from index.published.ap_tree.layout import JOB_NEW, KEYWORDS, LEAF, NODE_END, NOTHING, ROOT, SPACE
from tests.index.boxes import Box, Clause, area_batch, point
from tests.index.brute import ids, keyword_lists
from tests.index.movers import FOR_EVER, MoverDice, Movers, crowd_of_objects, step
from tests.support.amounts import examples


def is_rebuilding(index):
    return index._arrays.meta[JOB_NEW] != NOTHING


def is_carrying(index):
    return bool(index._lists.state[CARRIES])


def kinds(index):
    return index._arrays.nodes["kind"][: int(index._arrays.meta[NODE_END])]


def counts(index, which):
    return index._cargo.now().counts[which : LISTS * int(index._arrays.meta[NODE_END]) : LISTS]


def crowded(dice, world, clauses=200, objects=120, vocabulary=None):
    world.insert([dice.clause(key, vocabulary) for key in range(clauses)])
    for key, one in enumerate(crowd_of_objects(3, objects, vocabulary or 9)):
        world.publish([dataclasses.replace(one, object_id=1_000 + key)], [FOR_EVER])


@pytest.mark.usefixtures("tiny_slices")
@pytest.mark.parametrize("seed", range(examples(3)))
def test_nothing_gets_lost_while_a_tree_is_rebuilt(seed):
    dice = MoverDice(300 + seed)
    drift_max = (0.001, 1e-6)[seed % 2]
    copies_max = (100, 4)[seed % 2]
    index = ApPlusTree(leaf_max=4, fanout=9, drift_max=drift_max, copies_max=copies_max)
    world = Movers(index)
    vocabulary = (None, 8, 40)[seed % 3]
    crowded(dice, world, vocabulary=vocabulary)
    rebuilt, carried = 0, 0
    for number in range(1, 150):
        if not is_rebuilding(index) and number % 10 == 0:
            index.begin_rebuild()
        rebuilt += is_rebuilding(index)
        for _ in range(number % 12):
            index.maintain()
        carried += is_carrying(index)
        step(dice, world, number, most=3, words=vocabulary)
        if number % 8 == 0:
            world.verify()
    assert rebuilt > 20
    assert carried > 3
    while index.maintain():
        pass
    world.verify()


@pytest.mark.usefixtures("tiny_slices")
def test_every_slice_leaves_lists_that_are_right():
    index = ApPlusTree(leaf_max=4, fanout=9)
    dice, world = MoverDice(7), Movers(index)
    crowded(dice, world)
    while index.maintain():
        pass
    index.begin_rebuild()
    steps, carried, busy = 0, 0, True
    while busy:
        busy = index.maintain()
        steps += 1
        carried += is_carrying(index)
        if steps % 64 == 0 or (is_carrying(index) and carried % 12 == 0):
            index.check()
    assert carried > 10
    world.verify()
    world.move({key: Box(-40.0, -40.0, 40.0, 40.0) for key in range(200)})


def last_cut(index):
    """The child of the root's last cut."""
    root = index._arrays.nodes[int(index._arrays.meta[ROOT])]
    assert root["kind"] == KEYWORDS
    return int(index._arrays.parts["child"][int(root["start"]) + int(root["count"]) - 1])


@pytest.mark.usefixtures("tiny_slices")
@pytest.mark.parametrize("is_known", [False, True])
def test_a_cut_above_is_extended_while_objects_are_carried(is_known):
    """Objects that hit a cut by another keyword since go on elsewhere in their codes: carried anew."""
    index = ApPlusTree(leaf_max=4, fanout=2)
    dice, world = MoverDice(5), Movers(index)
    everywhere = Box(-40.0, -40.0, 40.0, 40.0)
    world.insert([Clause(key, dice.box(), frozenset({key % 3, 3 + key % 5})) for key in range(30)])
    there = frozenset({50, 51, 52, 53}) if is_known else frozenset({3, 4, 5})
    world.insert([Clause(100 + key, dice.box(), there | {60 + key % 7}) for key in range(60)])
    index.rebuild()
    objects = [
        dataclasses.replace(one, keywords=one.keywords | there | {60, 61, 200 + one.object_id % 5})
        for one in crowd_of_objects(3, 60)
    ]
    world.publish(objects, [FOR_EVER] * 60)
    index._rebuilds._begin(last_cut(index))
    while not is_carrying(index):
        assert index.maintain()
    index.maintain()
    mark = index._lists.state[CARRY_MARK]
    world.insert([Clause(1_000 + i, everywhere, frozenset({200 + i})) for i in range(5)])
    assert index._lists.state[CARRY_MARK] > mark, "it was started again"
    world.verify()
    while index.maintain():
        world.verify()
    world.insert([Clause(2_000 + i, everywhere, frozenset({60, 200 + i})) for i in range(5)])
    world.verify()
    world.move(dict.fromkeys(range(100, 160), everywhere))


def test_objects_go_where_clauses_are():
    """Leaves hold them, and k-nodes those that wait for other keywords."""
    index = ApPlusTree(leaf_max=10, fanout=9)
    dice, world = MoverDice(1), Movers(index)
    crowded(dice, world)
    is_leaf = kinds(index) == LEAF
    assert counts(index, KEPT)[is_leaf].sum() > 0
    assert counts(index, KEPT)[~is_leaf].sum() == 0
    assert counts(index, WAITING)[is_leaf].sum() == 0
    assert counts(index, WAITING)[~is_leaf].sum() > 0


def test_the_limit_on_copies():
    index = ApPlusTree(leaf_max=3, fanout=4, copies_max=5)
    dice, world = MoverDice(2), Movers(index)
    crowded(dice, world, clauses=400)
    rows = index._objects.table.rows
    assert rows["stops"].max() > 0
    free = ApPlusTree(leaf_max=3, fanout=4, copies_max=10_000)
    crowded(MoverDice(2), Movers(free), clauses=400)
    assert free._lists.state[ITEM_TOTAL] > 2 * index._lists.state[ITEM_TOTAL]
    world.verify()
    world.move({key: dice.moved(world.clauses[key].box) for key in range(400)})
    world.insert([Clause(10_000, Box(-40.0, -40.0, 40.0, 40.0), frozenset({1}))])
    world.verify()


def test_expired_objects_are_swept():
    index = ApPlusTree(leaf_max=5)
    dice, world = MoverDice(3), Movers(index)
    world.insert([dice.clause(key) for key in range(100)])
    world.publish(crowd_of_objects(4, 3_000), [5] * 3_000)
    items = int(index._lists.state[ITEM_TOTAL])
    assert items >= 3_000
    world.pass_time(5)
    for now_ms in range(6, 400):
        world.pass_time(now_ms)
    assert index._lists.state[ITEM_TOTAL] < 0.3 * items
    assert index._lists.state[DEAD_TOTAL] <= index._lists.state[ITEM_TOTAL]
    world.verify()


def moved_clauses(index, stride):
    """Clauses whose ranges move so far each time, and objects."""
    chance = np.random.default_rng(5)
    world = Movers(index)
    clauses = []
    for key in range(600):
        x_m, y_m = chance.uniform(0, 100, 2).tolist()
        words = frozenset(chance.integers(0, 30, 2).tolist())
        clauses.append(Clause(key, Box(x_m, y_m, x_m + 2, y_m + 2), words))
    world.insert(clauses)
    for number in range(6):
        boxes = {}
        for key, one in world.clauses.items():
            dx, dy = (stride * (1 if key % 2 else -1) * (1 if number % 2 else -1), 0.0)
            boxes[key] = Box(one.box.x1_m + dx, one.box.y1_m + dy, one.box.x2_m + dx, one.box.y2_m + dy)
        world.move(boxes)
        world.publish([point(10 * number, 50.0, 50.0, {1, 2})], [FOR_EVER])
    index.rebuild()
    world.verify()
    return int((kinds(index) == SPACE).sum())


def test_where_clauses_move_fast_space_is_divided_less():
    assert moved_clauses(ApPlusTree(leaf_max=10), 0.0) > moved_clauses(ApPlusTree(leaf_max=10), 30.0)


def test_objects_of_before_the_first_move_did_not_come_with_moves():
    """A tenth of the objects come at each step, when half of the clauses have moved."""
    index = ApPlusTree(leaf_max=10)
    world = Movers(index)
    world.insert([Clause(key, Box(key, 0.0, key + 1.0, 1.0), frozenset({1})) for key in range(20)])
    world.publish([point(number, number, 0.5, {1}) for number in range(100)], [FOR_EVER] * 100)
    for number in range(1, 4):
        come = range(1_000 * number, 1_000 * number + 10)
        world.publish([point(key, 5.0, 0.5, {1}) for key in come], [FOR_EVER] * 10)
        world.move({key: Box(key, 0.5 * number, key + 1.0, 1.0 + number) for key in range(10)})
        moved_for_each_object = 0.0 if number == 1 else 0.5 / 10
        assert index._arrays.motions.pace[0] == pytest.approx(moved_for_each_object)


@pytest.mark.parametrize("drift_max", [1e-9, np.inf])
def test_the_time_of_rebuilds_is_counted(drift_max):
    """That leaves which are full are parted is a part of what comes."""
    index = ApPlusTree(leaf_max=4, drift_max=drift_max, change_share=0.01)
    world = Movers(index)
    corners = np.random.default_rng(8).uniform(0, 100, (400, 2)).tolist()
    world.insert(
        [Clause(i, Box(x, y, x + 2, y + 2), frozenset({i % 9})) for i, (x, y) in enumerate(corners)]
    )
    assert len(kinds(index)) > 50
    assert (index.rebuild_count > 0) == (index.rebuild_s > 0.0) == np.isfinite(drift_max)
    took_s = index.rebuild_s
    index.begin_rebuild()
    while index.maintain():
        pass
    assert index.rebuild_s > took_s
    world.verify()


def test_an_ap_tree_follows_motion_on_request():
    found = []
    for follows_motion in (False, True):
        index = ApTree(leaf_max=10, follows_motion=follows_motion)
        chance = np.random.default_rng(6)
        lower = chance.uniform(0, 100, (2, 600))
        words = keyword_lists([frozenset(chance.integers(0, 30, 2).tolist()) for _ in range(600)])
        index.insert(ids(range(600)), Boxes(*lower, *(lower + 2)), words)
        for number in range(6):
            there = lower + np.array([[30.0 * (number % 2)], [0.0]])
            index.move(ids(range(600)), Boxes(*there, *(there + 2)))
            index.match(object_of(50.0))
        index.rebuild()
        index.check()
        end = int(index._arrays.meta[NODE_END])
        found.append(int((index._arrays.nodes["kind"][:end] == SPACE).sum()))
    assert found[1] < found[0]


def object_of(x_m):
    return area_batch([point(1, x_m, x_m, {1, 2})])


# -- check -----------------------------------------------------------------------------------------


def full_list(lists, which):
    return int(np.flatnonzero(lists.counts[which::LISTS] > 1)[0]) * LISTS + which


def break_count(lists):
    lists.counts[full_list(lists, KEPT)] -= 1


def break_begin(lists):
    lists.items["begin"][(lists.heads[full_list(lists, KEPT)] - 1) * 8] += 1


def break_box(lists):
    lists.items["x1_m"][(lists.heads[full_list(lists, KEPT)] - 1) * 8] += 5.0


def break_signature(lists):
    lists.items["signature"][(lists.heads[full_list(lists, WAITING)] - 1) * 8] ^= 1


def break_slot(lists):
    first = (lists.heads[full_list(lists, WAITING)] - 1) * 8
    lists.items[first] = lists.items[first + 1]


def break_generation(lists):
    lists.objects["generation"][0] += 1


def break_copies(lists):
    lists.objects["copies"][0] += 1


def break_stops(lists):
    lists.objects["stops"][0] += 1


def break_chain(lists):
    lists.heads[full_list(lists, WAITING)] = 0


def break_total(lists):
    lists.state[ITEM_TOTAL] += 1


def break_place(lists):
    one, other = full_list(lists, KEPT), full_list(lists, WAITING)
    for column in (lists.heads, lists.counts):
        column[one], column[other] = column[other], column[one]


@pytest.mark.parametrize(
    "damage",
    [
        break_count,
        break_begin,
        break_box,
        break_signature,
        break_slot,
        break_generation,
        break_copies,
        break_stops,
        break_chain,
        break_total,
        break_place,
    ],
)
def test_check_finds_damage(damage):
    index = ApPlusTree(leaf_max=10, fanout=9)
    dice, world = MoverDice(4), Movers(index)
    crowded(dice, world)
    index.check()
    damage(index._cargo.now())
    with pytest.raises(InconsistentIndexError):
        index.check()
