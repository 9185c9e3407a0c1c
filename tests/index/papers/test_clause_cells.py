"""What is particular to the IQ-Tree and the RQ-Tree for clauses: keys, cells by cost, and how they go."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from index.contracts import InconsistentIndexError
from index.published.clause_cells import placing_kernels
from index.published.clause_cells.trees import ENTER, PASS, VERIFY
from index.published.clause_cells.update_kernels import home_of
from index.published.clause_cells.workload_kernels import LEVELS, SEEN_TOTAL, frequency_of, share_at
from index.published.inverted_quad import InvertedQuad
from index.published.quad_inverted import QuadInverted
from index.square import Square
from index.tables import float32_kernels
from index.tables.quad_kernels import GROUP_END, GROUP_FREE_COUNT, NO_NODE
from tests.index.boxes import AreaObject, Box, BoxDice, Clause, expected, insert, matched, move
from tests.index.brute import ids
from tests.support.leaves import compiled

SQUARE = Square(0.0, 0.0, 100.0)
BOTH = pytest.mark.parametrize("make", [QuadInverted, InvertedQuad])


def point(x_m, y_m, keywords, key=1):
    return AreaObject(key, x_m, y_m, Box(x_m, y_m, x_m, y_m), frozenset(keywords))


def scattered(count, keywords, side_m=1.0, seed=3, first_id=0):
    chance = np.random.default_rng(seed)
    places = chance.uniform(-100.0, 100.0 - side_m, (count, 2)).tolist()
    return [
        Clause(first_id + i, Box(x_m, y_m, x_m + side_m, y_m + side_m), frozenset(keywords))
        for i, (x_m, y_m) in enumerate(places)
    ]


def homes(index, clause_id):
    """Cells where a clause is entered, as (depth, x_min, y_min)."""
    cells, slot = index._arrays(), int(index._table.slots(ids([clause_id]))[0])
    found = [home_of(cells, slot, step) for step in range(index._table.rows["home_count"][slot])]
    return [tuple(cells.cells[cell][["depth", "x_min", "y_min"]].tolist()) for cell in found]


def key(index, clause_id):
    return int(index._table.rows["word"][index._table.slots(ids([clause_id]))[0]])


@BOTH
def test_a_clause_is_looked_at_for_its_least_frequent_keyword_only(make):
    index = make(SQUARE)
    crowd = [Clause(i, Box(-9, -9, 9, 9), frozenset({1})) for i in range(20)]
    insert(index, [*crowd, Clause(50, Box(-9, -9, 9, 9), frozenset({1, 2}))])
    assert key(index, 50) == 2
    assert matched(index, [point(0, 0, {2, 3})]) == [[]]
    assert index.candidate_count == 1
    assert len(matched(index, [point(0, 0, {1})])[0]) == 20
    assert index.candidate_count == 21
    insert(index, [Clause(i, Box(-9, -9, 9, 9), frozenset({2})) for i in range(100, 130)])
    assert key(index, 50) == 2
    move(index, [Clause(50, Box(-8, -9, 9, 9), frozenset())])
    assert key(index, 50) == 1
    index.check()


@BOTH
def test_clauses_of_one_keyword_are_distinguished_by_place(make):
    index = make(SQUARE)
    crowd = scattered(2_000, {1, 2})
    insert(index, crowd)
    there = {one.clause_id: one for one in crowd}
    objects = [point(one.box.x1_m, one.box.y1_m, {1, 2, 3}) for one in crowd[:200]]
    assert matched(index, objects) == expected(there, objects)
    assert index.candidate_count < 200 * 20
    assert min(depth for one in crowd for depth, _, _ in homes(index, one.clause_id)) >= 3
    index.check()


@BOTH
def test_a_box_across_a_border_is_in_several_cells(make):
    index = make(SQUARE)
    insert(index, scattered(500, {1}))
    insert(index, [Clause(1_000, Box(-0.5, -0.5, 0.5, 0.5), frozenset({1}))])
    found = homes(index, 1_000)
    assert len(found) == 4
    assert min(depth for depth, _, _ in found) >= 4
    corners = [point(x_m, y_m, {1}) for x_m in (-0.5, 0.0, 0.5) for y_m in (-0.5, 0.0, 0.5)]
    assert all(1_000 in one for one in matched(index, corners))
    whole = AreaObject(1, 0, 0, Box(-50.0, -50.0, 50.0, 50.0), frozenset({1, 9}))
    assert matched(index, [whole])[0].count(1_000) == 1
    assert matched(index, [point(0.6, 0.0, {1})])[0].count(1_000) == 0


@BOTH
def test_frequently_updated_clauses_stay_in_large_cells(make):
    crowd = scattered(300, {1})
    often, seldom = make(SQUARE, 10.0), make(SQUARE, 1e6)
    for index in (often, seldom):
        insert(index, crowd)
    assert all(len(homes(often, i)) == 1 for i in range(300))
    assert max(homes(often, i)[0][0] for i in range(300)) <= 2
    assert sum(len(homes(seldom, i)) for i in range(300)) > 400


@BOTH
def test_rare_keywords_stay_at_the_root(make):
    index = make(SQUARE, 1_000.0)
    insert(index, scattered(2_000, {1}))
    insert(index, [Clause(5_000, Box(3.0, 3.0, 3.5, 3.5), frozenset({1, 2}))])
    assert homes(index, 5_000) == [(0, -np.inf, -np.inf)]


@BOTH
def test_cells_are_small_where_objects_are(make):
    """All objects are in the east: a clause in the west may stay in a large cell."""
    index = make(SQUARE, 3_000.0)
    insert(index, [Clause(1, Box(0, 0, 1, 1), frozenset({1}))])
    chance = np.random.default_rng(8)
    for x_m, y_m in chance.uniform(0.0, 100.0, (300, 2)).tolist():
        matched(index, [point(x_m, y_m - 50.0, {1})])
    west, east = Box(-60.0, -60.0, -59.0, -59.0), Box(60.0, -40.0, 61.0, -39.0)
    insert(index, [Clause(2, west, frozenset({1})), Clause(3, east, frozenset({1}))])
    assert max(depth for depth, _, _ in homes(index, 2)) + 2 < min(
        depth for depth, _, _ in homes(index, 3)
    )
    index.check()


def cost(cells, box, rate, place, deepest):
    """Least cost of a box below a cell, by trying everything; `place` is (depth, column, row)."""
    depth, column, row = place
    size = 200.0 / (1 << depth)
    x_m, y_m = -100.0 + column * size, -100.0 + row * size
    if not (box.x1_m < x_m + size and box.x2_m >= x_m and box.y1_m < y_m + size and box.y2_m >= y_m):
        return None
    here = rate * compiled(share_at)(cells, depth, column, row) + ENTER
    if depth == deepest:
        return here
    children = [(depth + 1, 2 * column + i, 2 * row + j) for i in (0, 1) for j in (0, 1)]
    below = [cost(cells, box, rate, child, deepest) for child in children]
    return min(here, sum(one + PASS for one in below if one is not None))


@BOTH
@pytest.mark.parametrize("lifetime", [100.0, 1_000.0])
def test_the_cells_of_a_clause_are_the_cheapest_that_cover_it(make, lifetime):
    index = make(SQUARE, lifetime)
    dice = BoxDice(4)
    clauses = []
    for i in range(60):
        x_m, y_m = dice.random.uniform(-99, 60), dice.random.uniform(-99, 60)
        side_m = dice.random.choice((0.0, 3.0, 30.0))
        clauses.append(Clause(i, Box(x_m, y_m, x_m + side_m, y_m + side_m), frozenset({1})))
    insert(index, clauses)
    several = 0
    for one in clauses:
        move(index, [one])
        cells = index._arrays()
        rate = lifetime * VERIFY * frequency_of(cells, 1)
        slot = int(index._table.slots(ids([one.clause_id]))[0])
        end, count = compiled(placing_kernels.choose)(cells, slot, 1)
        assert count == len(homes(index, one.clause_id))
        drafts = cells.drafts[:end]
        deepest = int(drafts["depth"].max())
        assert deepest < LEVELS + 3, "everything below is too much to try"
        chosen = drafts[(drafts["is_met"] == 1) & (drafts["first_child"] == NO_NODE)]
        passed = (drafts["is_met"] == 1).sum() - 1
        assert sorted(homes(index, one.clause_id)) == sorted(chosen[["depth", "x_min", "y_min"]].tolist())
        total = chosen["here"].sum() + PASS * passed
        assert total == pytest.approx(cost(cells, one.box, rate, (0, 0, 0), deepest))
        several += count > 1
    assert several > 0 or lifetime == 100.0


@BOTH
def test_nothing_is_left_of_clauses_that_are_gone(make):
    index = make(SQUARE, 1e6)
    sizes = []
    for turn in range(4):
        insert(index, scattered(400, {1, 2, 3 + turn}, side_m=5.0, seed=turn))
        assert index._arrays().meta[GROUP_END] > 100
        sizes.append(index.memory_bytes())
        index.remove(ids(range(400)))
        index.check()
        cells = index._arrays()
        used = cells.meta[GROUP_END] - 4 * cells.meta[GROUP_FREE_COUNT]
        assert used == 1
        assert cells.entries.ends[0] == sum(
            chain_length(cells.entries, size_class) << (size_class + 2) for size_class in range(20)
        )
    assert sizes[3] <= 1.6 * sizes[0]


def chain_length(runs, size_class):
    count, start = 0, int(runs.free[size_class])
    while start >= 0:
        count, start = count + 1, int(runs.records[start]["slot"])
    return count


@BOTH
def test_the_root_follows_the_clauses(make):
    index = make()
    there = {}
    for step in range(6):
        east_m = 10_000.0 * step
        new = scattered(200, {1}, seed=step, first_id=1_000 * step)
        new = [
            dataclasses.replace(
                one,
                box=dataclasses.replace(one.box, x1_m=one.box.x1_m + east_m, x2_m=one.box.x2_m + east_m),
            )
            for one in new
        ]
        insert(index, new)
        index.remove(ids(there))
        there = {one.clause_id: one for one in new}
        objects = [point(one.box.x1_m, one.box.y1_m, {1}) for one in new[:50]]
        before = index.candidate_count
        assert matched(index, objects) == expected(there, objects)
        index.check()
    assert index.candidate_count - before < 50 * 40, "the root lies where the clauses were"


@BOTH
def test_far_outside_a_given_square(make):
    index = make(SQUARE, 1e6)
    there = {i: Clause(i, Box(10.0**i, 0.0, 10.0**i + 5.0, 1.0), frozenset({1})) for i in range(300)}
    insert(index, list(there.values()))
    objects = [point(10.0**i + 1.0, 0.5, {1}, i) for i in range(300)]
    assert matched(index, objects) == expected(there, objects)
    index.check()
    insert(index, [Clause(999, Box(-1e308, -1e308, 1e308, 1e308), frozenset({1}))])
    assert all(999 in one for one in matched(index, objects))
    index.check()


def test_float32_is_rounded_outwards():
    lower, upper = compiled(float32_kernels.lower), compiled(float32_kernels.upper)
    for value in (0.1, -0.1, 0.0, 1.0, 16_777_217.0, -16_777_217.0, 1e-50, -1e-50, 1e300, -1e300):
        low, high = lower(value), upper(value)
        assert low <= value <= high
        assert np.isinf(low) or float(np.float32(low)) == low
        assert np.isinf(high) or float(np.float32(high)) == high
    assert lower(1.0) == upper(1.0) == 1.0


@BOTH
def test_a_lifetime_is_positive(make):
    with pytest.raises(ValueError, match="lifetime is 0"):
        make(SQUARE, 0.0)


def spoil_entry_box(cells):
    cells.entries.records["x1_m"][cells.lists[first_list(cells)]["start"]] = 1e6


def spoil_entry_slot(cells):
    start = cells.lists[first_list(cells)]["start"]
    cells.entries.records["slot"][start] += 1


def first_list(cells):
    live = np.flatnonzero(cells.lists["count"] > 0)
    return int(live[0])


def spoil_count(cells):
    cells.cells["count"][np.flatnonzero(cells.cells["own_count"] > 0)[0]] += 1


def spoil_border(cells):
    inner = np.flatnonzero(cells.cells["first_child"] > 0)[-1]
    cells.cells["x_max"][cells.cells["first_child"][inner]] += 1.0


def spoil_home(cells):
    several = np.flatnonzero(cells.clauses["home_count"] > 1)[0]
    first = int(cells.clauses["home"][several])
    cells.homes.records["slot"][first] = cells.homes.records["slot"][first + 1]


def spoil_key(cells):
    cells.clauses["word"][0] = 77


def spoil_word(cells):
    cells.words["clause_count"][0] += 1


def spoil_pool(cells):
    cells.meta[GROUP_FREE_COUNT] += 1


def spoil_seen(cells):
    cells.seen[-1] += 1


def spoil_seen_total(cells):
    cells.meta[SEEN_TOTAL] += 1


@BOTH
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (spoil_entry_box, "smaller than its clause"),
        (spoil_entry_slot, "does not match its clauses"),
        (spoil_count, "wrong count of entries"),
        (spoil_border, "is not a quarter|do not cover"),
        (spoil_home, "twice in a cell"),
        (spoil_key, "wrong count of clauses"),
        (spoil_word, "wrong count of clauses"),
        (spoil_pool, "wrong count"),
        (spoil_seen, "not the sum"),
        (spoil_seen_total, "the workload has a wrong count"),
    ],
)
def test_damage_is_found(make, spoil, message):
    index = make(SQUARE)
    insert(index, scattered(300, {1}, side_m=4.0))
    index.check()
    spoil(index._arrays())
    with pytest.raises(InconsistentIndexError, match=message):
        index.check()
