"""A clause index in plain Python: a dict from (rarest keyword, cell) to clauses.

Operations: insert, move and remove O(cells of the box), and a scan of their lists; match O(clauses of the
object's keywords in its cell) an object.

Plan: a uniform grid. A clause is in the list of its rarest keyword in each cell that its box meets, as a
tuple of box, keywords and id; a match looks up each of its keywords in the cell of the object. Keys are
one number, which is faster than a tuple. A clause of very many cells is in one list for its keyword.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from bench.datasets import keyword_sets
from bench.peers.dict_lists import DictLists
from index.batches import Boxes, Ints, KeywordLists, Matches, ObjectBatch
from index.tables.clauses import columns_of, validate_boxes, validate_clauses

Box = tuple[float, float, float, float]
Entry = tuple[float, float, float, float, frozenset[int], int]
"""x1_m, y1_m, x2_m, y2_m, required keywords, id."""

LINES = 1 << 16
"""Columns, and rows, of the grid: coordinates beyond it are in the outermost ones."""
_HALF = LINES // 2
CELLS_MAX = 1024
"""A box that meets more cells than this is in the list for everywhere."""
EVERYWHERE = LINES * LINES
WORD_STEP = 2 * EVERYWHERE
"""Keys are keyword * WORD_STEP + cell."""
SIDES_OF_BOX = 3.0
"""A cell is this many times as wide as the median side of boxes: the fastest factor of 0.5 to 8."""


def cell_of_boxes(boxes: Boxes) -> float:
    """Return the width of cells for these boxes."""
    sides = np.concatenate([boxes.x2_m - boxes.x1_m, boxes.y2_m - boxes.y1_m])
    middle_m = float(np.median(sides)) if len(sides) else 0.0
    return SIDES_OF_BOX * middle_m if middle_m > 0.0 else 1.0


class ClauseDict(DictLists[Entry, Entry]):
    """See `index.contracts.ClauseIndex`.

    Parameters
    ----------
    cell_m
        Width of cells; by default it is chosen by the first clauses.
    """

    def __init__(self, cell_m: float | None = None) -> None:
        super().__init__()
        self._cell_m = cell_m
        self._rarest: dict[int, int] = {}
        self._wide_count = 0
        self._word_counts: Counter[int] = Counter()

    def insert(self, ids: Ints, boxes: Boxes, required: KeywordLists) -> None:
        """Add clauses."""
        validate_clauses(ids, boxes, required)
        self.require_new(ids)
        if self._cell_m is None and len(ids):
            self._cell_m = cell_of_boxes(boxes)
        words = [frozenset(row.tolist()) for row in keyword_sets(required)]
        for row in words:
            self._word_counts.update(row)
        for one, box, row in zip(ids.tolist(), _rows(boxes), words, strict=True):
            self._rarest[one] = min(row, key=lambda word: (self._word_counts[word], word))
            self.enter(one, (*box, row, one))

    def move(self, ids: Ints, boxes: Boxes) -> None:
        """Replace the boxes of clauses."""
        validate_boxes(ids, boxes)
        self.require_known(ids)
        for one, box in zip(ids.tolist(), _rows(boxes), strict=True):
            self.enter(one, (*box, self.leave(one)[4], one))

    def remove(self, ids: Ints) -> None:
        """Remove clauses."""
        self.require_known(ids)
        for one in ids.tolist():
            words = self.leave(one)[4]
            del self._rarest[one]
            self._word_counts.subtract(words)

    def match(self, objects: ObjectBatch) -> Matches:
        """Find the clauses that each object matches."""
        offsets = [0]
        found: list[int] = []
        words = objects.keywords.ids.tolist()
        ends = objects.keywords.offsets.tolist()
        lists = [words[start:end] for start, end in pairwise(ends)]
        if objects.boxes is None:
            for x_m, y_m, row in zip(objects.x_m.tolist(), objects.y_m.tolist(), lists, strict=True):
                found.extend(self._at(x_m, y_m, row))
                offsets.append(len(found))
        else:
            for box, row in zip(_rows(objects.boxes), lists, strict=True):
                found.extend(self._about(box, row))
                offsets.append(len(found))
        return Matches(np.array(offsets, dtype=np.int64), np.array(found, dtype=np.int64))

    def memory_bytes(self) -> int:
        """Return the size of the dictionaries, of the lists, and of their contents."""
        size = super().memory_bytes() + sys.getsizeof(self._rarest)
        size += sum(sys.getsizeof(key) for key in self._lists)
        number = sys.getsizeof(1.0)
        for entry in self._entries.values():
            size += sys.getsizeof(entry) + sys.getsizeof(entry[4]) + 5 * number
        return size

    def _at(self, x_m: float, y_m: float, words: list[int]) -> list[int]:
        found = []
        wanted = frozenset(words)
        lists = self._lists
        cell_m = self._cell_m or 1.0
        column, row = math.floor(x_m / cell_m) + _HALF, math.floor(y_m / cell_m) + _HALF
        if not (0 <= column < LINES and 0 <= row < LINES):
            column, row = _line(x_m, cell_m), _line(y_m, cell_m)
        cell = column * LINES + row
        keys = [word * WORD_STEP + cell for word in words]
        if self._wide_count:
            keys += [word * WORD_STEP + EVERYWHERE for word in words]
        for key in keys:
            if key in lists:
                entries = lists[key]
                self.candidate_count += len(entries)
                for x1_m, y1_m, x2_m, y2_m, required, one in entries:
                    if x1_m <= x_m <= x2_m and y1_m <= y_m <= y2_m and required <= wanted:
                        found.append(one)
        return found

    def _about(self, box: Box, words: list[int]) -> set[int]:
        found = set()
        wanted = frozenset(words)
        for word in words:
            for key in self._all_keys(word, box):
                entries = self._lists.get(key, ())
                self.candidate_count += len(entries)
                for x1_m, y1_m, x2_m, y2_m, required, one in entries:
                    if (
                        x1_m <= box[2]
                        and box[0] <= x2_m
                        and y1_m <= box[3]
                        and box[1] <= y2_m
                        and required <= wanted
                    ):
                        found.add(one)
        return found

    def _all_keys(self, word: int, box: Box) -> Iterator[int]:
        """Yield the keys of lists that may contain clauses whose boxes meet a box."""
        cells = _cells(box, self._cell_m or 1.0)
        key = word * WORD_STEP
        yield key + EVERYWHERE
        if len(cells[0]) * len(cells[1]) > len(self._lists):
            yield from [
                one
                for one in self._lists
                if key <= one < key + EVERYWHERE and _is_among(one - key, cells)
            ]
        else:
            yield from (key + column * LINES + row for column in cells[0] for row in cells[1])

    def keys_of(self, one: int) -> list[int]:
        """Return the keys of a clause: its rarest keyword in each cell, or everywhere."""
        columns, rows = _cells(self._entries[one][:4], self._cell_m or 1.0)
        key = self._rarest[one] * WORD_STEP
        if len(columns) * len(rows) > CELLS_MAX:
            return [key + EVERYWHERE]
        return [key + column * LINES + row for column in columns for row in rows]

    def item_of(self, one: int) -> Entry:
        """Return the entry itself: a match reads no other dict."""
        return self._entries[one]

    def enter(self, one: int, entry: Entry) -> None:
        """Add a clause."""
        super().enter(one, entry)
        self._wide_count += self._is_wide(one)

    def leave(self, one: int) -> Entry:
        """Remove a clause and return it."""
        self._wide_count -= self._is_wide(one)
        return super().leave(one)

    def _is_wide(self, one: int) -> bool:
        return self.keys_of(one)[0] % WORD_STEP == EVERYWHERE


def _line(x_m: float, cell_m: float) -> int:
    """Return the column, or row, of a coordinate."""
    return min(max(math.floor(min(max(x_m / cell_m, -LINES), LINES)) + LINES // 2, 0), LINES - 1)


def _cells(box: Box, cell_m: float) -> tuple[range, range]:
    """Return the columns and rows of the cells that a box meets."""
    return (
        range(_line(box[0], cell_m), _line(box[2], cell_m) + 1),
        range(_line(box[1], cell_m), _line(box[3], cell_m) + 1),
    )


def _is_among(cell: int, cells: tuple[range, range]) -> bool:
    return cell // LINES in cells[0] and cell % LINES in cells[1]


def _rows(boxes: Boxes) -> Iterator[Box]:
    x1_m, y1_m, x2_m, y2_m = (column.tolist() for column in columns_of(boxes).values())
    return zip(x1_m, y1_m, x2_m, y2_m, strict=True)
