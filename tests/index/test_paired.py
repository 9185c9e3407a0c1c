"""What is particular to pairs: strips are what differs, each point once; nothing else is asked for."""

from __future__ import annotations

import numpy as np

from index.naive import NaiveClauseIndex, NaiveObjectIndex
from index.paired import PairedIndex
from index.paired import difference_kernels as kernels
from tests.index.boxes import AreaObject, Box, Clause
from tests.index.brute import Dice
from tests.index.movers import FOR_EVER, Movers

NOWHERE = (np.inf, np.inf, -np.inf, -np.inf)
EVERYWHERE = (-np.inf, -np.inf, np.inf, np.inf)


def strips_of(old, new, same=EVERYWHERE, beyond_m=(0.0, 0.0, 0.0, 0.0)):
    """Strips of one clause, of what entered and of what left."""
    changes = kernels.Changes(*(np.array([one]) for one in (old, new, same)), np.array(beyond_m))
    strips = np.empty((4, kernels.STRIPS_MAX))
    owners = np.empty(kernels.STRIPS_MAX, dtype=np.int64)
    count = kernels.cut(changes, strips, owners)
    found = [tuple(edges) for edges in strips[:, :count].T.tolist()]
    return tuple(
        [one for one, owner in zip(found, owners, strict=False) if owner == kind] for kind in (0, 1)
    )


def has(box, x_m, y_m):
    return box[0] <= x_m <= box[2] and box[1] <= y_m <= box[3]


def random_box(dice, least=0):
    x_m, y_m = dice.random.randint(-4, 4), dice.random.randint(-4, 4)
    width, height = dice.random.randint(least, 5), dice.random.randint(least, 5)
    return (float(x_m), float(y_m), float(x_m + width), float(y_m + height))


def beside(values):
    """Coordinates, and their neighbours among float64."""
    found = {one for value in values for one in (np.nextafter(value, -9), value, np.nextafter(value, 9))}
    return sorted(map(float, found))


def test_strips_have_each_point_that_differs_once_and_nothing_else():
    dice = Dice(3)
    kinds = set()
    for _ in range(300):
        old = random_box(dice)
        by_m = dice.random.choices((-1.0, 0.0, 1.0), k=4)
        new = random_box(dice, 3) if dice.random.random() < 0.3 else tuple(np.add(old, by_m))
        if new[0] > new[2] or new[1] > new[3]:
            continue
        same = EVERYWHERE if dice.random.random() < 0.5 else random_box(dice, -1)
        entered, left = strips_of(old, new, same)
        edges = [*old, *new, *(edge for edge in same if np.isfinite(edge))]
        for x_m in beside(edges):
            for y_m in beside(edges):
                in_old, in_new, in_same = (has(box, x_m, y_m) for box in (old, new, same))
                is_entered = in_new and not (in_old and in_same)
                assert sum(has(one, x_m, y_m) for one in entered) == is_entered
                is_left = in_old and not in_new
                assert sum(has(one, x_m, y_m) for one in left) == is_left
        kinds.add((len(entered), len(left)))
    assert {(1, 0), (0, 1), (1, 1), (2, 2), (4, 0), (0, 4)} <= kinds


def test_a_new_clause_searches_its_box():
    assert strips_of(NOWHERE, (1.0, 2.0, 3.0, 4.0)) == ([(1.0, 2.0, 3.0, 4.0)], [])


def test_boxes_are_larger_by_the_reach_of_areas():
    """An area reaches 5 m east and 1 m north of its point, which is west and south of what it meets."""
    entered, left = strips_of((0.0, 0.0, 1.0, 1.0), (0.0, 0.0, 2.0, 1.0), beyond_m=(0.0, 0.0, 5.0, 1.0))
    assert any(has(one, -5.0, -1.0) for one in entered)
    assert not any(has(one, 0.5, 0.5) for one in entered)
    assert not any(has(one, 0.5, 0.5) for one in left)
    assert any(has(one, -5.0, 0.5) for one in left), "it may meet the old box alone"


def test_an_area_that_touches_a_box_is_found_where_its_reach_is_rounded():
    """1.0 less 680.12 is not the edge, by a bit: 0.64 - -679.48 is rounded."""
    for x_m, edge_m in ((0.64, -679.48), (0.29, -512.33), (0.71, -901.17), (0.07, -333.91)):
        world = Movers(PairedIndex(NaiveClauseIndex(), NaiveObjectIndex()))
        world.publish([AreaObject(1, x_m, 0.0, Box(edge_m, -1.0, 1.0, 1.0), frozenset({1}))], [FOR_EVER])
        world.insert([Clause(1, Box(edge_m - 20.0, -1.0, edge_m, 1.0), frozenset({1}))])
        assert world.change_count == 1


def test_objects_in_both_boxes_are_not_visited():
    index = PairedIndex(NaiveClauseIndex(), NaiveObjectIndex())
    world = Movers(index)
    places = [(x_m / 4, y_m / 4) for x_m in range(40) for y_m in range(40)]
    world.publish(
        [
            AreaObject(key, x_m, y_m, Box(x_m, y_m, x_m, y_m), frozenset({1}))
            for key, (x_m, y_m) in enumerate(places)
        ],
        [FOR_EVER] * len(places),
    )
    world.insert([Clause(1, Box(0.1, 0.1, 8.1, 8.1), frozenset({1}))])
    before, sent = index.candidate_count, world.change_count
    world.move({1: Box(0.6, 0.1, 8.6, 8.1)})
    assert index.candidate_count - before == world.change_count - sent == 2 * 2 * 32
    before = index.candidate_count
    world.move({1: Box(0.6, 0.1, 8.6, 8.1)})
    assert index.candidate_count == before


def test_a_large_area_makes_searches_larger_while_it_is_there_and_not_for_ever():
    index = PairedIndex(NaiveClauseIndex(), NaiveObjectIndex())
    world = Movers(index)

    def square(key, x_m, half_m):
        return AreaObject(key, x_m, 0.0, Box(x_m - half_m, -half_m, x_m + half_m, half_m), frozenset({1}))

    def looked_at():
        before = index.candidate_count
        world.move({1: Box(0.0, -1.0, 2.0, 1.0)})
        world.move({1: Box(0.0, -1.0, 1.0, 1.0)})
        return index.candidate_count - before

    world.insert([Clause(1, Box(0.0, -1.0, 1.0, 1.0), frozenset({1}))])
    world.publish([square(key, 10.0 * key, 0.1) for key in range(100)], [FOR_EVER] * 100)
    small = looked_at()
    world.publish([square(1_000, 0.0, 5_000.0)], [FOR_EVER])
    assert looked_at() > small + 50
    world.retract([1_000])
    for key in range(100):  # others come and go
        world.retract([key])
        world.publish([square(100 + key, 10.0 * key, 0.1)], [FOR_EVER])
    assert looked_at() == small
    index.check()
