"""What is particular to the inverted grid: how lists are parted, and what becomes of the parts."""

from __future__ import annotations

import numpy as np
import pytest

from index.batches import Boxes, KeywordLists, ObjectBatch
from index.contracts import InconsistentIndexError
from index.inverted_grid import InvertedGrid
from index.inverted_grid.layout import LEAF, NO_NODE, NODE_END, PLACE, WORD
from index.naive import NaiveClauseIndex
from index.square import Square
from index.tables.free_kernels import NOTHING
from tests.index.brute import ids
from tests.support.amounts import examples

SIDE_M = 1_000.0


def keyword_rows(chance, sizes, vocabulary):
    """Draw different words for each row, the first ones often."""
    rows = []
    for size in sizes:
        row = set()
        while len(row) < size:
            row.add(int(vocabulary * chance.random() ** 3))
        rows.append(sorted(row))
    return KeywordLists.of(rows)


def boxes_about(chance, count, most_m):
    x_m, y_m = chance.normal(0.0, SIDE_M / 4, (2, count))
    half_x, half_y = chance.random((2, count)) ** 3 * most_m / 2
    return Boxes(x_m - half_x, y_m - half_y, x_m + half_x, y_m + half_y)


def draw_clauses(chance, count, *, vocabulary=12, most_m=SIDE_M / 5, first_id=1, sizes=(1, 5)):
    words = keyword_rows(chance, chance.integers(*sizes, count), vocabulary)
    return (
        np.arange(first_id, first_id + count, dtype=np.int64),
        boxes_about(chance, count, most_m),
        words,
    )


def draw_objects(chance, count, *, vocabulary=12, areas=False):
    boxes = boxes_about(chance, count, SIDE_M / 2)
    words = keyword_rows(chance, chance.integers(1, 9, count), vocabulary)
    x_m, y_m = (boxes.x1_m + boxes.x2_m) / 2, (boxes.y1_m + boxes.y2_m) / 2
    return ObjectBatch(ids(range(count)), x_m, y_m, words, boxes if areas else None)


def rows_of(matches, count):
    return [sorted(matches.row(i).tolist()) for i in range(count)]


def assert_same(index, naive, chance, vocabulary=12):
    index.check()
    assert len(index) == len(naive)
    for areas in (False, True):
        objects = draw_objects(chance, 40, vocabulary=vocabulary, areas=areas)
        found = rows_of(index.match(objects), len(objects))
        assert found == rows_of(naive.match(objects), len(objects))
    return sum(map(len, found))


def kinds_of(index):
    """How many nodes of each kind are in use, and how many keep something."""
    grid = index._grid
    free = set()
    for size_class, head in enumerate(grid.free_nodes.tolist()):
        first = head
        while first != NOTHING:
            free.update(range(first, first + (1 << size_class)))
            first = int(grid.nodes[first]["first"])
    used = grid.nodes[[node for node in range(grid.meta[NODE_END]) if node not in free]]
    counts = {kind: int((used["kind"] == kind).sum()) for kind in (LEAF, PLACE, WORD)}
    return counts, int(((used["kind"] != LEAF) & (used["kept"] != NO_NODE)).sum())


def both(clauses, square=None):
    index, naive = InvertedGrid(square), NaiveClauseIndex()
    index.insert(*clauses)
    naive.insert(*clauses)
    return index, naive


@pytest.mark.parametrize("seed", range(examples(3)))
@pytest.mark.parametrize("square", [None, Square(0.0, 0.0, SIDE_M), Square(300.0, 0.0, 20.0)])
def test_lists_are_parted_by_place(seed, square):
    chance = np.random.default_rng([1, seed])
    index, naive = both(draw_clauses(chance, 1_500, most_m=3 * SIDE_M), square)
    kinds, kept = kinds_of(index)
    assert kinds[PLACE] > 0
    assert kept > 0
    assert assert_same(index, naive, chance) > 0


@pytest.mark.parametrize("seed", range(examples(3)))
def test_lists_are_parted_by_the_next_keyword(seed):
    """Where every box covers everything, nothing else tells clauses apart."""
    chance = np.random.default_rng([2, seed])
    numbers, _, words = draw_clauses(chance, 6_000, vocabulary=60)
    wide = np.full(len(numbers), SIDE_M)
    index, naive = both((numbers, Boxes(-wide, -wide, wide, wide), words))
    kinds, kept = kinds_of(index)
    assert kinds[WORD] > 0
    assert kept > 0
    assert assert_same(index, naive, chance, vocabulary=60) > 0
    gone = chance.permutation(numbers)[:5_000]
    index.remove(gone)
    naive.remove(gone)
    assert_same(index, naive, chance, vocabulary=60)


@pytest.mark.parametrize("seed", range(examples(3)))
def test_one_by_one_is_as_at_once(seed):
    chance = np.random.default_rng([3, seed])
    clauses = draw_clauses(chance, 700)
    index, naive = InvertedGrid(), NaiveClauseIndex()
    naive.insert(*clauses)
    numbers, boxes, words = clauses
    for i in range(len(numbers)):
        rows = np.arange(i, i + 1)
        index.insert(numbers[rows], boxes.part(rows), KeywordLists.of([words.row(i)]))
    assert kinds_of(index)[0][PLACE] > 0
    assert assert_same(index, naive, chance) > 0


@pytest.mark.parametrize("seed", range(examples(3)))
def test_shrunk_nodes_are_merged(seed):
    chance = np.random.default_rng([4, seed])
    clauses = draw_clauses(chance, 2_000)
    index, naive = both(clauses)
    order = chance.permutation(clauses[0])
    for gone in np.array_split(order[:-20], 12):
        index.remove(gone)
        naive.remove(gone)
        assert_same(index, naive, chance)
    kinds, _ = kinds_of(index)
    assert kinds[PLACE] + kinds[WORD] == 0
    index.remove(order[-20:])
    index.check()
    assert kinds_of(index)[0] == {LEAF: 0, PLACE: 0, WORD: 0}


@pytest.mark.parametrize("seed", range(examples(3)))
def test_everything_moves(seed):
    chance = np.random.default_rng([5, seed])
    clauses = draw_clauses(chance, 1_200)
    index, naive = both(clauses)
    for _ in range(6):
        moved = chance.permutation(clauses[0])[:500]
        boxes = boxes_about(chance, len(moved), SIDE_M / 3)
        index.move(moved, boxes)
        naive.move(moved, boxes)
        assert assert_same(index, naive, chance) > 0


def test_few_entries_are_looked_at():
    """A sixteenth of the clauses that have one of an object's keywords, though words are few."""
    chance = np.random.default_rng(6)
    index, _ = both(draw_clauses(chance, 20_000, vocabulary=30, most_m=SIDE_M / 50))
    objects = draw_objects(chance, 200, vocabulary=30)
    found = index.match(objects)
    assert index.scanned_count / len(objects) < 20_000 / 16
    assert index.candidate_count < 1.5 * len(found.ids) + 10


def test_memory_a_clause():
    chance = np.random.default_rng(7)
    index, _ = both(draw_clauses(chance, 20_000, vocabulary=300, most_m=SIDE_M / 10))
    assert index.memory_bytes() / len(index) < 400


def test_an_object_that_meets_very_many_clauses():
    """More than scratch lists have room for at first."""
    count = 5_000
    at = np.zeros(count)
    words = KeywordLists.of([[1]] * count)
    index = InvertedGrid()
    index.insert(ids(range(count)), Boxes(at - 1, at - 1, at + 1, at + 1), words)
    objects = ObjectBatch(ids(range(20)), np.zeros(20), np.zeros(20), KeywordLists.of([[1, 2]] * 20))
    found = index.match(objects)
    assert rows_of(found, 20) == [list(range(count))] * 20
    assert index.candidate_count == 20 * count


def test_coordinates_beyond_the_frame():
    boxes = Boxes(
        np.array([1e300, -1e12]), np.array([0.0, 5.0]), np.array([1.7e308, -1e11]), np.array([1.0, 6.0])
    )
    index, naive = both((ids([1, 2]), boxes, KeywordLists.of([[1], [1]])))
    x_m, y_m = np.array([1e301, 1e299, -5e11, -1e13]), np.array([0.5, 0.5, 5.5, 5.5])
    objects = ObjectBatch(ids(range(4)), x_m, y_m, KeywordLists.of([[1]] * 4))
    assert rows_of(index.match(objects), 4) == rows_of(naive.match(objects), 4) == [[1], [], [2], []]


def test_check_finds_damage():
    chance = np.random.default_rng(8)
    clauses = draw_clauses(chance, 400)
    for field, value in (("x", 5), ("signature", 1 << 61), ("slot", 3)):
        index, _ = both(clauses)
        node = next(one for one in index._grid.nodes if one["kind"] == LEAF and one["count"] > 5)
        entry = index._grid.entries.records[int(node["first"]) + 2]
        entry[field] = value
        with pytest.raises(InconsistentIndexError):
            index.check()
