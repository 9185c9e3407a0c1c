"""What is particular to posting lists by keyword and place: sweeping, grids, quadtrees, and damage."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from index.batches import Boxes, ObjectBatch
from index.contracts import InconsistentIndexError
from index.naive import NaiveMovingIndex
from index.paired import PairedIndex
from index.published.grid_files import KkClauses, KkObjects, SsClauses, SsObjects
from index.published.inverted_quad import InvertedQuad
from index.published.postings import layout, objects
from index.published.postings.list_kernels import list_at
from index.published.postings.place_kernels import Span
from index.published.postings.word_kernels import word_of
from index.published.quad_files import IqObjects, RqObjects, cell_kernels
from index.published.quad_inverted import QuadInverted
from index.square import Square
from tests.index.boxes import (
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
from tests.index.brute import Object, ids, keyword_lists, object_batch
from tests.index.movers import FOR_EVER, rows_of
from tests.support.amounts import seeds
from tests.support.leaves import compiled

SQUARE = Square(0.0, 0.0, 100.0)
HALVES = {
    "iq": lambda: IqObjects(SQUARE, 5),
    "rq": lambda: RqObjects(SQUARE, 3),
    "ss": lambda: SsObjects(SQUARE, 6),
    "kk": lambda: KkObjects(SQUARE, 6),
}
PAIRS = {
    "iq": lambda: PairedIndex(QuadInverted(SQUARE), IqObjects(SQUARE, 40)),
    "rq": lambda: PairedIndex(InvertedQuad(SQUARE), RqObjects(SQUARE, 8)),
    "ss": lambda: PairedIndex(SsClauses(SQUARE, 9), SsObjects(SQUARE, 12)),
    "kk": lambda: PairedIndex(KkClauses(SQUARE, 9), KkObjects(SQUARE, 12)),
}
ANY_HALF = pytest.mark.parametrize("make", HALVES.values(), ids=HALVES)
GRIDS = pytest.mark.parametrize("make", [SsClauses, KkClauses])


def files(index):
    return index._arrays.now()


def meta(index, which):
    return int(files(index).meta[which])


def scattered(count, seed=1, first=0, keywords=(1, 2)):
    chance = np.random.default_rng(seed)
    places = chance.uniform(-100.0, 100.0, (count, 2)).tolist()
    return [Object(first + i, x_m, y_m, frozenset(keywords)) for i, (x_m, y_m) in enumerate(places)]


def ask(index, required, box):
    found = index.within(keyword_lists([frozenset(required)]), boxes_of([box]))
    return sorted(found.ids.tolist())


EVERYWHERE = Box(-1e308, -1e308, 1e308, 1e308)


# -- all four against the naive index ------------------------------------------------------------------


class Drifting:
    """Batches of floats: ranges that drift, jump, cover everything and nothing; objects that expire."""

    def __init__(self, seed):
        self.chance = np.random.default_rng(seed)
        self.boxes = {}
        self.live = set()
        self.next_id = 0

    def words(self, count, most):
        frequent = self.chance.zipf(1.6, (count, most)).clip(1, 30)
        return keyword_lists([frozenset(row[: self.chance.integers(1, most + 1)]) for row in frequent])

    def places(self, count):
        hubs = self.chance.choice([-70.0, 0.0, 55.0, 250.0], (2, count), p=[0.3, 0.3, 0.35, 0.05])
        return hubs + self.chance.normal(0.0, 12.0, (2, count))

    def about(self, count):
        middle, half = self.places(count), self.chance.choice([0.0, 1.0, 9.0, 400.0], count)
        return np.stack([*(middle - half), *(middle + half)], axis=1)

    def clauses(self, count):
        some = np.arange(self.next_id, self.next_id + count)
        self.next_id += count
        boxes = self.about(count)
        self.boxes.update(zip(some.tolist(), boxes, strict=True))
        return some, Boxes(*boxes.T.copy()), self.words(count, 3)

    def moved(self, count):
        some = self.chance.choice(sorted(self.boxes), count, replace=False)
        old = np.array([self.boxes[key] for key in some.tolist()])
        step = self.chance.normal(0.0, 3.0, (count, 2))
        wander = old + np.concatenate([step, step], axis=1)
        boxes = np.where(self.chance.random((count, 1)) < 0.7, wander, self.about(count))
        self.boxes.update(zip(some.tolist(), boxes, strict=True))
        return some, Boxes(*boxes.T.copy())

    def objects(self, count, now_ms):
        some = np.arange(self.next_id, self.next_id + count)
        self.next_id += count
        x_m, y_m = self.places(count)
        boxes = None
        if self.chance.random() < 0.3:
            reach = self.chance.exponential(2.0, (4, count))
            boxes = Boxes(x_m - reach[0], y_m - reach[1], x_m + reach[2], y_m + reach[3])
        expiry_ms = now_ms + self.chance.choice([0, 1, 3, FOR_EVER], count, p=[0.05, 0.3, 0.3, 0.35])
        self.live.update(some[expiry_ms > FOR_EVER // 2].tolist())
        return ObjectBatch(some, x_m.copy(), y_m.copy(), self.words(count, 6), boxes), expiry_ms

    def gone(self, count):
        some = self.chance.choice(sorted(self.live), min(count, len(self.live)), replace=False)
        self.live -= set(some.tolist())
        return some.astype(np.int64)


def same_of_all(indexes, ask_one):
    """Have all indexes do the same; return how much they told, the same."""
    results = [[rows_of(one) for one in ask_one(index)] for index in indexes]
    for other in results[1:]:
        assert other == results[0]
    return sum(len(row) for rows in results[0] for row in rows)


@pytest.mark.parametrize("part", seeds(2), ids=lambda part: f"seed {part.start}")
def test_all_find_the_matches_of_the_naive_index(part):
    for seed in part:
        world = Drifting(seed)
        indexes = [NaiveMovingIndex(), *(make() for make in PAIRS.values())]
        sent = 0
        for now_ms in range(1, 13):
            for index in indexes:
                index.pass_time(now_ms)
            batch, expiry_ms = world.objects(150, now_ms)
            sent += same_of_all(indexes, lambda one, b=batch, e=expiry_ms: [one.publish(b, e)])
            new = world.clauses(40)
            sent += same_of_all(indexes, lambda one, new=new: [one.insert(*new)])
            moved = world.moved(40)
            sent += same_of_all(indexes, lambda one, moved=moved: one.move(*moved))
            gone = world.gone(20)
            sent += same_of_all(indexes, lambda one, gone=gone: [one.retract(gone)])
            away = np.array(sorted(world.boxes))[::7][:10]
            for index in indexes:
                index.remove(away)
            for key in away.tolist():
                del world.boxes[key]
        for index in indexes:
            index.check()
        assert sent > 1_000


# -- objects that are gone -----------------------------------------------------------------------------


@pytest.fixture
def small_sweeps(monkeypatch):
    """A few entries a call, so that much happens before all lists have been swept."""
    monkeypatch.setattr(objects, "_SWEEP", 20)
    monkeypatch.setattr(objects, "_SWEEP_EACH", 1)


@ANY_HALF
@pytest.mark.usefixtures("small_sweeps")
def test_objects_come_while_others_are_swept(make):
    index, dice = make(), BoxDice(5)
    there = {}
    sweeps = 0
    for number in range(60):
        new = [dice.object(1_000 * number + i) for i in range(dice.random.choice((0, 1, 12)))]
        index.insert(object_batch(new))
        there.update({one.object_id: one for one in new})
        gone = dice.random.sample(sorted(there), min(len(there), dice.random.randint(0, 9)))
        index.remove(ids(gone))
        for key in gone:
            del there[key]
        sweeps += bool(index._sweeping)
        words, box = dice.words(2), dice.box()
        assert ask(index, words, box) == sorted(
            one.object_id
            for one in there.values()
            if words <= one.keywords
            and box.x1_m <= one.x_m <= box.x2_m
            and box.y1_m <= one.y_m <= box.y2_m
        )
        index.check()
    assert sweeps > 10


@ANY_HALF
def test_nothing_is_left_of_objects_that_are_gone(make):
    index = make()
    sizes = []
    for turn in range(4):
        index.insert(object_batch(scattered(400, turn, keywords=(1, 2, 3 + turn))))
        sizes.append(index.memory_bytes())
        assert meta(index, layout.ENTRY_COUNT) >= 1_200
        index.remove(ids(range(400)))
        for _ in range(40):
            index.insert(object_batch([]))
        index.check()
        assert len(index) == 0
        used = (layout.ENTRY_COUNT, layout.LIST_COUNT, layout.WORD_COUNT)
        assert [meta(index, one) for one in used] == [0, 0, 0]
        assert len(index._table.used()) == 0
    assert sizes[3] <= 1.6 * sizes[0]


@ANY_HALF
def test_at_most_a_third_of_the_objects_in_lists_are_gone(make):
    index = make()
    index.insert(object_batch(scattered(2_000)))
    for number in range(40):
        index.remove(ids(range(100 * number, 100 * number + 100)))
        index.insert(object_batch(scattered(100, 9 + number, first=2_000 + 100 * number)))
        gone = int(files(index).is_gone.sum())
        assert gone <= (len(index) + gone) * 0.37
    index.check()


# -- grids ---------------------------------------------------------------------------------------------


def test_a_list_has_a_grid_while_it_is_worth_it():
    index = KkClauses(SQUARE, 8)
    clauses = [
        Clause(i, Box(20.0 * i - 95.0, 0.0, 20.0 * i - 95.0, 0.0), frozenset({1})) for i in range(9)
    ]
    insert(index, clauses[:8])
    assert files(index).words[word_of(files(index), 1)]["directory"] == layout.NO_DIRECTORY
    assert matched(index, [point(1, -95.0, 0.0, {1})]) == [[0]]
    assert index.candidate_count == 8
    insert(index, clauses[8:])
    assert files(index).words[word_of(files(index), 1)]["directory"] != layout.NO_DIRECTORY
    assert matched(index, [point(1, -95.0, 0.0, {1})]) == [[0]]
    assert index.candidate_count == 8 + 1
    index.check()
    index.remove(ids(range(1, 9)))
    assert matched(index, [point(1, -95.0, 0.0, {1})]) == [[0]]
    index.remove(ids([0]))
    index.check()
    insert(index, clauses[:1])
    assert files(index).words[word_of(files(index), 1)]["directory"] == layout.NO_DIRECTORY


@GRIDS
def test_a_clause_is_in_all_cells_that_its_box_meets(make):
    index = make(SQUARE, 10)
    crowd = [Clause(i, Box(1.0, 1.0, 1.0, 1.0), frozenset({1})) for i in range(13)]
    insert(index, [*crowd, Clause(50, Box(-21.0, -1.0, 19.0, 0.0), frozenset({1}))])
    assert meta(index, layout.ENTRY_COUNT) == 13 + 3 * 2
    index.check()


@GRIDS
def test_an_entry_that_stays_in_a_cell_is_rewritten_there(make):
    index = make(SQUARE, 10)
    crowd = [Clause(i, Box(1.0, 1.0, 1.0, 1.0), frozenset({1})) for i in range(20)]
    insert(index, crowd)
    word, cell = word_of(files(index), 1), 55
    row = files(index).lists[list_at(files(index), word, cell)]
    before = files(index).entries.records["slot"][row["start"] : row["start"] + 20].tolist()
    move(index, [Clause(4, Box(2.0, 2.0, 3.0, 3.0), frozenset())])
    after = files(index).entries.records["slot"][row["start"] : row["start"] + 20].tolist()
    assert after == before
    assert matched(index, [point(1, 2.5, 2.5, {1})]) == [[4]]
    move(index, [Clause(4, Box(2.0, 2.0, 31.0, 3.0), frozenset())])
    assert matched(index, [point(1, 30.5, 2.5, {1}), point(2, 1.0, 1.0, {1})]) == [
        [4],
        [i for i in range(20) if i != 4],
    ]
    index.check()


@GRIDS
def test_a_clause_that_moves_gets_the_least_frequent_keyword(make):
    index = make(SQUARE, 6)
    insert(index, [Clause(1, Box(-9.0, -9.0, 50.0, 50.0), frozenset({1, 2}))])
    insert(index, [Clause(i, Box(0.0, 0.0, 1.0, 1.0), frozenset({1})) for i in range(10, 30)])
    there = {i: Clause(i, Box(0.0, 0.0, 1.0, 1.0), frozenset({2})) for i in range(100, 150)}
    insert(index, list(there.values()))
    slot = int(index._table.slots(ids([1]))[0])
    move(index, [Clause(1, Box(-9.0, -9.0, 51.0, 50.0), frozenset())])
    assert index._table.rows["word"][slot] == word_of(files(index), 1)
    index.check()


@GRIDS
def test_far_outside_the_square(make):
    index = make(SQUARE, 10)
    there = {i: Clause(i, Box(10.0**i, 0.0, 10.0**i + 5.0, 1.0), frozenset({1})) for i in range(300)}
    insert(index, list(there.values()))
    insert(index, [Clause(999, EVERYWHERE, frozenset({1}))])
    there[999] = Clause(999, EVERYWHERE, frozenset({1}))
    places = [point(i, 10.0**i + 1.0, 0.5, {1}) for i in range(0, 300, 7)]
    assert matched(index, places) == expected(there, places)
    index.check()


@ANY_HALF
def test_objects_far_outside_the_square(make):
    index = make()
    index.insert(object_batch([Object(i, 10.0**i, -(10.0**i), frozenset({1, i})) for i in range(2, 300)]))
    assert ask(index, {1}, EVERYWHERE) == list(range(2, 300))
    assert ask(index, {1}, Box(1e7, -1e9, 1e9, 0.0)) == [7, 8, 9]
    index.check()


def test_a_grid_has_cells():
    with pytest.raises(ValueError, match="side is 0"):
        SsObjects(SQUARE, 0)
    with pytest.raises(ValueError, match="long 0"):
        RqObjects(SQUARE, 0)


# -- quadtrees -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [IqObjects, RqObjects])
def test_an_object_is_in_few_cells(make):
    """About log4(objects / long) + 1 for each keyword; and in each cell from the root down."""
    index = make(SQUARE, 50)
    index.insert(object_batch(scattered(3_000)))
    assert 3 <= meta(index, layout.ENTRY_COUNT) / (2 * 3_000) <= 6
    index.check()


def test_cells_of_rare_keywords_are_partitioned_in_the_one_tree_only():
    """IQ+ parts cells whatever the keywords; RQ+ has a tree for each."""
    rare = [
        dataclasses.replace(one, keywords=frozenset({1, 100 + i})) for i, one in enumerate(scattered(500))
    ]
    one_tree, many_trees = IqObjects(SQUARE, 20), RqObjects(SQUARE, 20)
    for index in (one_tree, many_trees):
        index.insert(object_batch(rare))
        word = word_of(files(index), 100)
        assert files(index).words[word]["count"] == 1
    root = int(files(many_trees).words[word_of(files(many_trees), 100)]["list"])
    assert files(many_trees).lists[root]["first_child"] == layout.NO_LIST
    cells = range(meta(one_tree, layout.CELL_END))
    word = word_of(files(one_tree), 100)
    assert sum(list_at(files(one_tree), word, cell) != layout.NO_LIST for cell in cells) >= 3


@pytest.mark.parametrize("make", [IqObjects, RqObjects])
def test_the_smallest_cells_are_not_parted(make):
    index = make(SQUARE, 2)
    index.insert(object_batch([Object(i, 3.0, 3.0, frozenset({1})) for i in range(40)]))
    assert meta(index, layout.ENTRY_COUNT) <= 40 * (cell_kernels.DEEP + 2)
    assert ask(index, {1}, Box(3.0, 3.0, 3.0, 3.0)) == list(range(40))
    index.check()


def test_a_walk_continues_if_that_costs_less():
    """Whole cells are looked through where they are; of large lists only the part that is needed."""
    is_worth_parting = compiled(cell_kernels.is_worth_parting)
    whole, half = cell_kernels.SIDE - 1, cell_kernels.SIDE // 2
    everywhere, dot, east = Span(0, 0, whole, whole), Span(9, 9, 9, 9), Span(half, 0, whole, whole)
    assert not is_worth_parting(1_000_000, everywhere, 0, 0, 0)
    assert is_worth_parting(cell_kernels.PASS + 1, dot, 0, 0, 0)
    assert not is_worth_parting(cell_kernels.PASS, dot, 0, 0, 0)
    assert is_worth_parting(4 * cell_kernels.PASS + 1, east, 0, 0, 0)
    assert not is_worth_parting(4 * cell_kernels.PASS, east, 0, 0, 0)
    assert not is_worth_parting(1_000_000, east, 1, 1, 0)


# -- damage --------------------------------------------------------------------------------------------


def filled_list(arrays):
    return int(np.flatnonzero(arrays.lists["count"] > 0)[0])


def spoil_slot(arrays):
    start = arrays.lists[filled_list(arrays)]["start"]
    arrays.entries.records["slot"][start] += 1


def spoil_place(arrays):
    place = arrays.lists[filled_list(arrays)]["start"]
    arrays.entries.records["x_m"][place] += 1.0


def spoil_signature(arrays):
    place = arrays.lists[filled_list(arrays)]["start"]
    arrays.entries.records["signature"][place] ^= 1


def spoil_count(arrays):
    arrays.meta[layout.ENTRY_COUNT] += 1


def spoil_word(arrays):
    arrays.words["count"][0] += 1


def spoil_gone(arrays):
    arrays.is_gone[3] = 1


def spoil_lists(arrays):
    arrays.meta[layout.LIST_COUNT] += 1


def spoil_directories(arrays):
    arrays.meta[layout.DIRECTORY_END] += 1


@ANY_HALF
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (spoil_slot, "has wrong entries"),
        (spoil_place, "another position than its object"),
        (spoil_signature, "another signature"),
        (spoil_count, "wrong count of entries"),
        (spoil_word, "wrong count of rows"),
        (spoil_gone, "marks of removed rows"),
        (spoil_lists, "wrong count"),
        (spoil_directories, "wrong count"),
    ],
)
def test_damage_to_objects_is_found(make, spoil, message):
    index = make()
    index.insert(object_batch(scattered(60)))
    index.check()
    spoil(files(index))
    with pytest.raises(InconsistentIndexError, match=message):
        index.check()


def test_a_cell_that_should_have_been_parted_is_found():
    index = IqObjects(SQUARE, 30)
    index.insert(object_batch(scattered(60)))
    files(index).meta[layout.LONG] = 3
    with pytest.raises(InconsistentIndexError, match="should have been partitioned"):
        index.check()


def spoil_box(arrays):
    arrays.entries.records["x1_m"][arrays.lists[filled_list(arrays)]["start"]] = 1e6


def spoil_key(arrays):
    arrays.words["keyword"][arrays.rows["word"][0]] = 77


def spoil_key_count(arrays):
    arrays.words["key_count"][arrays.rows["word"][0]] += 1


def spoil_cell(arrays):
    arrays.rows["x2_m"][0] = 99.0


@GRIDS
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (spoil_slot, "has wrong entries"),
        (spoil_box, "smaller than its clause"),
        (spoil_key, "wrong count of rows"),
        (spoil_key_count, "wrong count of clauses"),
        (spoil_cell, "missing in cells that it intersects|has wrong entries"),
        (spoil_count, "wrong count of entries"),
        (spoil_lists, "wrong count"),
    ],
)
def test_damage_to_clauses_is_found(make, spoil, message):
    index = make(SQUARE, 6)
    chance = np.random.default_rng(3)
    places = chance.uniform(-90.0, 0.0, (60, 2)).tolist()
    insert(
        index,
        [
            Clause(i, Box(x_m, y_m, x_m + 20.0, y_m), frozenset({1, 2}))
            for i, (x_m, y_m) in enumerate(places)
        ],
    )
    index.check()
    spoil(files(index))
    with pytest.raises(InconsistentIndexError, match=message):
        index.check()
