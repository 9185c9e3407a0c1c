"""What the contract suite of object indexes does not reach in IQF+."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from index.batches import Boxes
from index.contracts import InconsistentIndexError
from index.iqf_plus import IqfPlusObjectIndex
from index.iqf_plus.tree_kernels import LEAF_MAX
from index.naive import NaiveObjectIndex
from tests.index.brute import Dice, Interest, Object, ids, interest_batch, keyword_lists, object_batch
from tests.support.amounts import named, seeds

INFINITE = float("inf")


def zipf_object(dice, key, most):
    words = {int(60 ** dice.random.random()) - 1 for _ in range(dice.random.randint(1, most))}
    return Object(key, dice.random.gauss(0, 5_000), dice.random.gauss(0, 5_000), frozenset(words))


def same_answers(index, other, dice, count=60):
    interests = [
        Interest(
            dice.random.choice((0.0, 50.0, 2_000.0, 1e5)),
            dice.random.randrange(3),
            zipf_object(dice, 0, 6).keywords,
        )
        for _ in range(count)
    ]
    x_m = np.array([dice.random.gauss(0, 6_000) for _ in range(count)])
    y_m = np.array([dice.random.gauss(0, 6_000) for _ in range(count)])
    wanted = np.array([dice.random.choice((1, 9, 40)) for _ in range(count)], dtype=np.int64)
    bound_m = np.array([dice.random.choice((INFINITE, 3_000.0)) for _ in range(count)])
    queries = (interest_batch(interests), x_m, y_m, wanted, bound_m)
    found, right = index.best(*queries), other.best(*queries)
    assert found.offsets.tolist() == right.offsets.tolist()
    assert found.ids.tolist() == right.ids.tolist()
    assert found.length_m.tolist() == right.length_m.tolist()
    assert found.r_m.tolist() == right.r_m.tolist()


def same_objects(index, other, dice, count=60):
    """Boxes of all sizes; some begin or end exactly where an object lies."""
    words = [zipf_object(dice, 0, 3).keywords for _ in range(count)]
    sides = np.array([dice.random.choice((0.0, 10.0, 900.0, 2e4)) for _ in range(count)])
    rows = other._table.rows[other._table.used()]
    some = rows[[dice.random.randrange(len(rows)) for _ in range(count)]]
    x1_m, y1_m = some["x_m"].copy(), some["y_m"] - sides * dice.random.random()
    boxes = Boxes(x1_m, y1_m, x1_m + sides, y1_m + sides)
    found, right = (one.within(keyword_lists(words), boxes) for one in (index, other))
    assert found.offsets.tolist() == right.offsets.tolist()
    for i in range(count):
        assert sorted(found.row(i).tolist()) == sorted(right.row(i).tolist())
    return len(found.ids)


@pytest.mark.parametrize("most", [5, 12])
@pytest.mark.parametrize("away_m", [0.0, 1e6 + 0.123, 2.0**41, 1e20])
def test_objects_in_a_box(most, away_m):
    """Far out float32 is off by metres; farther out entries are not where their objects are at all."""
    dice = Dice(5)
    index, other = IqfPlusObjectIndex(), NaiveObjectIndex()
    new = [zipf_object(dice, i, most) for i in range(1_500)]
    new = [dataclasses.replace(one, x_m=one.x_m + away_m, y_m=one.y_m - away_m) for one in new]
    for one in (index, other):
        one.insert(object_batch(new))
    assert len(index.long_keywords()) > 5
    assert same_objects(index, other, dice, 200) > 500
    for one in (index, other):
        one.remove(ids(range(1_200)))
    assert same_objects(index, other, dice, 200) > 50


def test_a_negative_keyword_is_nobodys():
    index = IqfPlusObjectIndex()
    index.insert(object_batch([Object(1, 0.0, 0.0, frozenset(range(12)))]))
    everywhere = Boxes(*(np.array([edge]) for edge in (-9.0, -9.0, 9.0, 9.0)))
    assert index.within(keyword_lists([{0}]), everywhere).ids.tolist() == [1]
    assert index.within(keyword_lists([{-1}]), everywhere).ids.tolist() == []


@pytest.mark.parametrize("most", [5, 12])
def test_keywords_become_long_and_cease_to_be(most):
    """Thousands of objects, some of too many keywords for pairs, come and go in batches."""
    dice = Dice(21)
    index, other = IqfPlusObjectIndex(), NaiveObjectIndex()
    there, longest = [], 0
    for step in range(10):
        if step < 5:
            new = [zipf_object(dice, step * 400 + i, most) for i in range(400)]
            for one in (index, other):
                one.insert(object_batch(new))
            there += [one.object_id for one in new]
        dice.random.shuffle(there)
        gone, there = there[: 60 if step < 5 else 330], there[60 if step < 5 else 330 :]
        for one in (index, other):
            one.remove(ids(gone))
        index.check()
        longest = max(longest, len(index.long_keywords()))
        same_answers(index, other, dice)
        same_objects(index, other, dice)
    assert longest > 5
    assert index.long_keywords() == []


def test_a_keyword_is_long_from_one_entry_more_than_long_min():
    index = IqfPlusObjectIndex(40)
    index.insert(object_batch([Object(i, i, 0.0, frozenset({1, 2})) for i in range(40)]))
    assert index.long_keywords() == []
    index.insert(object_batch([Object(40, 0.0, 7.0, frozenset({2}))]))
    assert index.long_keywords() == [2]
    index.insert(object_batch([Object(41, 0.0, 7.0, frozenset({1}))]))
    assert index.long_keywords() == [1, 2]
    index.check()
    index.remove(ids(range(31)))
    assert index.long_keywords() == []
    index.check()


def test_more_objects_at_one_point_than_a_leaf_should_have():
    index, other = IqfPlusObjectIndex(8), NaiveObjectIndex()
    many = [Object(i, 12.25, -3.5, frozenset({1, 2 + i % 3})) for i in range(20 * LEAF_MAX)]
    for one in (index, other):
        one.insert(object_batch(many))
    index.check()
    same_answers(index, other, Dice(22))
    for one in (index, other):
        one.remove(ids(range(0, len(many), 2)))
    index.check()
    same_answers(index, other, Dice(23))


@pytest.mark.parametrize("far_m", [3e7, 1e12, 1e80])
def test_one_place_far_from_all_others(far_m):
    """Its entry is where float32 puts it, or nearer still; nothing is lost by that."""
    dice = Dice(24)
    index, other = IqfPlusObjectIndex(4), NaiveObjectIndex()
    many = [zipf_object(dice, i, 3) for i in range(200)]
    many += [Object(1_000 + i, far_m + i, -far_m / 3, frozenset({0, 1})) for i in range(20)]
    for one in (index, other):
        one.insert(object_batch(many))
    index.check()
    same_answers(index, other, dice)
    for one in (index, other):
        one.remove(ids([one.object_id for one in many[:190]]))
    index.check()
    same_answers(index, other, dice)


BORDERS_M = (0.0, 1.0, 2.0, 1024.0, 2048.0, 2.0**40, 2.0**50, 1e300)
EVERYWHERE = Boxes(*(np.array([edge]) for edge in (-1e301, -1e301, 1e301, 1e301)))


def near_a_border(dice):
    """A border, or a coordinate so near zero that its difference from a centre is rounded."""
    border_m = dice.random.choice(BORDERS_M[: dice.random.choice((1, 5, len(BORDERS_M)))])
    off_m = dice.random.choice((0.0, 0.0, 5e-324, 1e-14, 0.5))
    return dice.random.choice((-1.0, 1.0)) * (border_m + dice.random.choice((-1.0, 1.0)) * off_m)


@pytest.mark.parametrize("seed", seeds(6), ids=named)
def test_places_at_the_borders_of_cells(seed):
    """Every entry is found again, in whatever order the root rose, up to the farthest coordinates."""
    dice = Dice(seed.start)
    index = IqfPlusObjectIndex(1)
    # Zero is a border of the first root's cell.
    there = {0: Object(0, 1024.5, dice.random.choice((1024.5, -1024.0)), frozenset({0, 1}))}
    index.insert(object_batch(list(there.values())))
    for step in range(30):
        first = 1000 * step + 1
        new = {
            key: Object(key, near_a_border(dice), near_a_border(dice), frozenset({0, 1}))
            for key in range(first, first + dice.random.choice((1, 5, 60)))
        }
        index.insert(object_batch(list(new.values())))
        index.check()
        there |= new
        gone = dice.random.sample(sorted(there), dice.random.randint(0, len(there)))
        index.remove(ids(gone))
        index.check()
        there = {key: one for key, one in there.items() if key not in gone}
        found = index.within(keyword_lists([frozenset({0, 1})]), EVERYWHERE)
        assert sorted(found.ids.tolist()) == sorted(there)


@pytest.mark.parametrize("axis", ["x", "y"])
def test_a_tiny_negative_coordinate_is_beyond_a_border_at_zero(axis):
    """The root rises for it, and other objects remain when it is removed."""
    index = IqfPlusObjectIndex(1)
    for key, at_m in ((1, 1024.5), (2, 1030.5), (3, -1e-14), (4, -5.0), (5, -5e-324)):
        x_m, y_m = (at_m, 10.0) if axis == "x" else (10.0, at_m)
        index.insert(object_batch([Object(key, x_m, y_m, frozenset({7}))]))
        index.check()
    index.remove(ids([3, 5]))
    index.check()
    assert sorted(index.within(keyword_lists([{7}]), EVERYWHERE).ids.tolist()) == [1, 2, 4]


@pytest.mark.parametrize("count", [5, 500], ids=["list", "tree"])
def test_the_removal_of_an_object_without_an_entry_fails(count):
    """No entry of another object is removed for it."""
    index = IqfPlusObjectIndex()
    index.insert(object_batch([Object(i, i, 0.0, frozenset({1})) for i in range(count)]))
    records = index._lists.runs.records
    records["slot"][records["slot"] == index._table.slots(ids([3]))] = 1_000
    before = records.copy()
    with pytest.raises(InconsistentIndexError, match="object 3 is not in all of its lists"):
        index.remove(ids([3]))
    assert (index._lists.runs.records == before).all()


def test_no_list_without_a_tree_is_refused():
    with pytest.raises(ValueError, match="long_min is 0, must be at least 1"):
        IqfPlusObjectIndex(0)


def tree_root(index):
    lists = index._lists.lists
    return int(lists["root"][int(lists["tree_count"].argmax())])


def inner_child(index):
    return int(index._lists.nodes["below"][tree_root(index)])


def damage_key(index):
    index._lists.lists["key"][2] += 900


def damage_run_count(index):
    index._lists.lists["run_count"][index._lists.lists["run_count"] > 1] -= 1


def damage_tree_count(index):
    index._lists.lists["tree_count"] += 1


def damage_cell(index):
    index._lists.nodes["x_m"][inner_child(index)] += 1.0


def damage_keyword_min(index):
    index._lists.nodes["keyword_min"][tree_root(index)] = 50


def damage_position(index):
    index._table.rows["x_m"][7] += 5.0


def damage_mark(index):
    index._lists.runs.records["mark"][:40] ^= 1 << 20


def damage_arena(index):
    index._lists.runs.ends[0] += 4


def damage_nodes(index):
    index._lists.meta[0] += 4


def damage_map(index):
    index._lists.values[index._lists.keys == 4] = 0


def damage_slack(index):
    index._lists.slack_m[0] = 0.0


def damage_ripeness(index):
    index._lists.meta[4] = 1


@pytest.mark.parametrize(
    "damage",
    [
        damage_key,
        damage_run_count,
        damage_tree_count,
        damage_cell,
        damage_keyword_min,
        damage_position,
        damage_mark,
        damage_arena,
        damage_nodes,
        damage_map,
        damage_slack,
        damage_ripeness,
    ],
)
def test_check_notices_damage(damage):
    dice = Dice(25)
    index = IqfPlusObjectIndex()
    index.insert(object_batch([zipf_object(dice, i, 5) for i in range(900)]))
    assert len(index.long_keywords()) > 3
    index.check()
    damage(index)
    with pytest.raises(InconsistentIndexError):
        index.check()
