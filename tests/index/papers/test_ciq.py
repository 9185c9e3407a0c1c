"""What is particular to CIQ: cells that cover the plane, and what is needed in each."""

from __future__ import annotations

import math

import numpy as np
import pytest

from index.contracts import InconsistentIndexError
from index.published.ciq import Ciq
from index.published.ciq.cover_kernels import covering_cell, text_bound
from index.published.ciq.layout import LIST_COUNT, ROOT, SUBSCRIPTION_DTYPE
from index.square import Square
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
from tests.support.leaves import compiled

SQUARE = Square(0.0, 0.0, 1_000.0)


def scattered(count, words=(1, 2), reach_m=200.0, weight_m=300.0, seed=1):
    chance = np.random.default_rng(seed)
    interest = Interest(weight_m, 3, frozenset(words))
    places = chance.uniform(-900.0, 900.0, (count, 2)).tolist()
    return [Anchored(i, x_m, y_m, 0.0, reach_m, 0, interest) for i, (x_m, y_m) in enumerate(places)]


@pytest.mark.parametrize("levels", [1, 2, 4])
def test_covering_cells_part_the_plane(levels):
    index = Ciq(SQUARE, levels)
    insert(index, scattered(20))
    cells = index._cells
    for home in index._table.rows["cell"][:20].tolist():
        cover = [
            compiled(covering_cell)(index._cover(), home, number) for number in range(1 + 3 * levels)
        ]
        assert len(set(cover)) == len(cover)
        # As large together as the plane, and none of them within another.
        assert sum(4.0 ** -int(cells["depth"][cell]) for cell in cover) == 1.0
        for cell in cover:
            above = int(cells["parent"][cell])
            while above != ROOT:
                assert above not in cover
                above = int(cells["parent"][above])


def test_a_subscription_has_a_list_for_each_keyword_in_each_of_its_cells():
    index = Ciq(SQUARE, levels=3)
    insert(index, scattered(1, words=(1, 2, 5)))
    assert index._meta[LIST_COUNT] == 3 * 10
    index.remove(ids([0]))
    index.check()
    assert index._meta[LIST_COUNT] == 0


@pytest.mark.parametrize("similarity", [1, 2, 3])
@pytest.mark.parametrize("radius_m", [0.0, 7.0])
@pytest.mark.parametrize("weight_m", [0.0, 1e-300, 25.0])
@pytest.mark.parametrize("reach_m", [-math.inf, -1.0, 0.0, 12.0, 60.0, math.inf])
def test_the_bound_rules_out_nothing_that_matches(similarity, radius_m, weight_m, reach_m):
    row = np.zeros(1, dtype=SUBSCRIPTION_DTYPE)
    row["radius_m"], row["weight_m"], row["reach_m"] = radius_m, weight_m, reach_m
    for away_m in (0.0, 3.0, 12.0, 19.0, 30.0, 500.0):
        bound = compiled(text_bound)(row[0], away_m)
        for mine, theirs, common in ((1, 1, 1), (2, 3, 2), (4, 4, 1), (3, 9, 1)):
            words = frozenset(range(mine))
            item = Object(5, away_m, 0.0, frozenset(range(mine - common, mine - common + theirs)))
            one = Anchored(1, 0.0, 0.0, radius_m, reach_m, 9, Interest(weight_m, similarity, words))
            if one.is_matched_by(item):
                assert common / math.sqrt(mine * theirs) >= bound


def test_more_levels_leave_fewer_candidates():
    subscriptions = scattered(500)
    item = Object(1, 10.0, 10.0, frozenset({1, 2, 3}))
    counts = []
    for levels in (1, 2, 3, 4):
        index = Ciq(SQUARE, levels)
        insert(index, subscriptions)
        assert matched(index, item) == expected(subscriptions, item) != []
        counts.append(index.candidate_count)
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] < counts[0] < 500 / 2
    assert counts[-1] >= len(expected(subscriptions, item))


@pytest.mark.parametrize("seed", range(examples(3)))
def test_moves_within_a_cell_and_to_another(seed):
    dice = Dice(seed)
    index = Ciq(Square(0.0, 0.0, 8.0), levels=2)
    there = {key: dice.anchored(key) for key in range(120)}
    insert(index, list(there.values()))
    for step in range(20):
        moves = [
            dice.anchored(key, there[key].interest)
            for key in dice.random.choices(sorted(there), k=dice.random.choice((1, 8, 40)))
        ]
        index.move(reach_batch(moves))
        there.update({one.subscription_id: one for one in moves})
        index.check()
        item = dice.object(step)
        assert matched(index, item) == expected(there.values(), item)


def test_slots_that_are_used_again_keep_lists_in_order():
    index = Ciq(SQUARE)
    subscriptions = scattered(200)
    insert(index, subscriptions)
    index.remove(ids(range(0, 200, 3)))
    index.check()
    insert(index, [one for one in subscriptions if one.subscription_id % 3 == 0])
    index.check()
    item = Object(1, 10.0, 10.0, frozenset({1, 2}))
    assert matched(index, item) == expected(subscriptions, item)


def test_without_a_square_the_index_finds_one():
    index = Ciq()
    far = [
        Anchored(one.subscription_id, one.x_m + 5e6, one.y_m, 0.0, one.reach_m, 0, one.interest)
        for one in scattered(300)
    ]
    insert(index, far[:5])
    insert(index, far[5:])
    index.check()
    assert len(np.unique(index._table.rows["cell"][:300])) > 15
    item = Object(1, 5e6, 10.0, frozenset({1, 2}))
    assert matched(index, item) == expected(far, item) != []


def test_no_levels_make_no_index():
    with pytest.raises(ValueError, match="must be positive"):
        Ciq(SQUARE, levels=0)


DAMAGES = {
    "bound": lambda index: index._bounds.__setitem__(3, 0.9),
    "cell": lambda index: index._table.rows["cell"].__setitem__(3, 5),
    "slot": lambda index: index._postings.records["slot"].__setitem__(0, 199),
    "weight": lambda index: index._postings.records["weight"].__setitem__(0, 0.1),
    "count": lambda index: index._lists["count"].__setitem__(0, 1),
    "lists": lambda index: index._meta.__setitem__(LIST_COUNT, 1),
    "room": lambda index: index._lists["size_class"].__setitem__(0, 9),
    "key": lambda index: index._lists["key"].__setitem__(0, 9),
    "use": lambda index: index._table.uses.__setitem__(1, 1),
    "reach": lambda index: index._table.rows["reach_m"].__setitem__(3, 1.0),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_check_notices_damage(damage):
    index = Ciq(SQUARE)
    insert(index, scattered(100))
    index.check()
    DAMAGES[damage](index)
    with pytest.raises(InconsistentIndexError):
        index.check()
