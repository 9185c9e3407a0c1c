"""A clause index of what a geometry library offers: shapely's STRtree of the boxes, then the keywords.

Operations: insert, move and remove O(1) a clause, but the tree, which cannot be changed, is built anew
before the next match, O(n log n); match O(boxes hit) an object.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import shapely

from bench.datasets import keyword_sets
from index.batches import Boxes, Ints, KeywordLists, Matches, ObjectBatch
from index.contracts import InconsistentIndexError
from index.tables import SlotTable
from index.tables.clauses import columns_of, validate_boxes, validate_clauses
from index.tables.slots import Slots

_PORTION = 256
"""Objects that the tree is asked for at a time."""
_BOX_BYTES = 500
"""Of a box and its place in the tree: what a process grew by for each of a million."""

_ROW_DTYPE = np.dtype(
    [
        ("id", np.int64),
        ("x1_m", np.float64),
        ("y1_m", np.float64),
        ("x2_m", np.float64),
        ("y2_m", np.float64),
        ("keyword_start", np.int64),
        ("keyword_count", np.int32),
    ],
    align=True,
)


class StrtreeIndex:
    """See `index.contracts.ClauseIndex`."""

    def __init__(self) -> None:
        self.candidate_count = 0
        self._table = SlotTable(_ROW_DTYPE)
        self._required: dict[int, frozenset[int]] = {}
        self._ids: dict[int, int] = {}
        self._slots: Slots = np.empty(0, dtype=np.int32)
        self._tree: Any = shapely.STRtree([])
        self._is_stale = False

    def __len__(self) -> int:
        return len(self._table)

    def insert(self, ids: Ints, boxes: Boxes, required: KeywordLists) -> None:
        """Add clauses."""
        validate_clauses(ids, boxes, required)
        slots = self._table.append(ids, required, columns_of(boxes))
        for i, slot in enumerate(slots.tolist()):
            self._required[slot] = frozenset(required.row(i).tolist())
            self._ids[slot] = int(ids[i])
        self._is_stale = True

    def move(self, ids: Ints, boxes: Boxes) -> None:
        """Give clauses new boxes."""
        validate_boxes(ids, boxes)
        slots = self._table.distinct_slots(ids)
        for name, values in columns_of(boxes).items():
            self._table.rows[name][slots] = values
        self._is_stale = True

    def remove(self, ids: Ints) -> None:
        """Remove clauses."""
        for slot in self._table.remove(ids).tolist():
            del self._required[slot], self._ids[slot]
        self._is_stale = True

    def match(self, objects: ObjectBatch) -> Matches:
        """Find which clauses each object matches."""
        if self._is_stale:
            self._build()
        boxes = objects.extents()
        words = [frozenset(row.tolist()) for row in keyword_sets(objects.keywords)]
        found: list[int] = []
        offsets = [0]
        for start in range(0, len(objects), _PORTION):
            some = slice(start, start + _PORTION)
            shapes = shapely.box(boxes.x1_m[some], boxes.y1_m[some], boxes.x2_m[some], boxes.y2_m[some])
            rows, hits = self._tree.query(shapes)
            ends = np.searchsorted(rows, np.arange(len(shapes) + 1)).tolist()
            slots = self._slots[hits].tolist()
            for i, (begin, end) in enumerate(pairwise(ends)):
                found.extend(self._verified(slots[begin:end], words[start + i]))
                offsets.append(len(found))
        return Matches(np.array(offsets, dtype=np.int64), np.array(found, dtype=np.int64))

    def memory_bytes(self) -> int:
        """Size of the arrays, and about that of the boxes and keyword sets."""
        return self._table.memory_bytes() + _BOX_BYTES * len(self._slots)

    def check(self) -> None:
        """Verify the table, and that every clause is in the tree."""
        self._table.check()
        if not self._is_stale and not np.array_equal(self._slots, self._table.used()):
            raise InconsistentIndexError("the tree does not hold the clauses")
        if self._required.keys() != set(self._table.used().tolist()):
            raise InconsistentIndexError("the keywords are not those of the clauses")

    def _build(self) -> None:
        self._slots = self._table.used()
        rows = self._table.rows[self._slots]
        self._tree = shapely.STRtree(shapely.box(rows["x1_m"], rows["y1_m"], rows["x2_m"], rows["y2_m"]))
        self._is_stale = False

    def _verified(self, slots: list[int], words: frozenset[int]) -> Iterator[int]:
        """Keep those all of whose keywords are there; the tree has tested the boxes, in float64."""
        self.candidate_count += len(slots)
        return (self._ids[slot] for slot in slots if self._required[slot] <= words)
