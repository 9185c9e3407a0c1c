"""A clause index with a geometry library: shapely's STRtree of the boxes, then the keywords.

Operations: insert, move and remove O(1) a clause, but the tree, which is immutable, is rebuilt before the
next match, O(n log n); match O(boxes hit) an object.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import shapely

from bench.datasets import keyword_sets
from bench.peers.box_tree import BoxTree
from index.batches import Boxes, Ints, KeywordLists, Matches, ObjectBatch
from index.contracts import InconsistentIndexError
from index.tables.clauses import columns_of, validate_boxes, validate_clauses
from index.tables.slots import Slots

_CHUNK = 256
"""Objects in a query of the tree."""
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


class ClauseStrtree(BoxTree):
    """See `index.contracts.ClauseIndex`."""

    def __init__(self) -> None:
        super().__init__(_ROW_DTYPE)
        self._required: dict[int, frozenset[int]] = {}
        self._ids: dict[int, int] = {}

    def boxes(self, used: Slots) -> tuple[Slots, Boxes]:
        """Return all rows with their boxes."""
        rows = self.table.rows[used]
        return used, Boxes(*(rows[name] for name in ("x1_m", "y1_m", "x2_m", "y2_m")))

    def insert(self, ids: Ints, boxes: Boxes, required: KeywordLists) -> None:
        """Add clauses."""
        validate_clauses(ids, boxes, required)
        slots = self.table.append(ids, required, columns_of(boxes))
        for i, slot in enumerate(slots.tolist()):
            self._required[slot] = frozenset(required.row(i).tolist())
            self._ids[slot] = int(ids[i])
        self.is_stale = True

    def move(self, ids: Ints, boxes: Boxes) -> None:
        """Replace the boxes of clauses."""
        validate_boxes(ids, boxes)
        slots = self.table.distinct_slots(ids)
        for name, values in columns_of(boxes).items():
            self.table.rows[name][slots] = values
        self.is_stale = True

    def remove(self, ids: Ints) -> None:
        """Remove clauses."""
        for slot in self.table.remove(ids).tolist():
            del self._required[slot], self._ids[slot]
        self.is_stale = True

    def match(self, objects: ObjectBatch) -> Matches:
        """Find the clauses that each object matches."""
        tree = self.tree()
        boxes = objects.extents()
        words = [frozenset(row.tolist()) for row in keyword_sets(objects.keywords)]
        found: list[int] = []
        offsets = [0]
        for start in range(0, len(objects), _CHUNK):
            some = slice(start, start + _CHUNK)
            shapes = shapely.box(boxes.x1_m[some], boxes.y1_m[some], boxes.x2_m[some], boxes.y2_m[some])
            rows, hits = tree.query(shapes)
            ends = np.searchsorted(rows, np.arange(len(shapes) + 1)).tolist()
            slots = self.boxed[hits].tolist()
            for i, (begin, end) in enumerate(pairwise(ends)):
                found.extend(self._verified(slots[begin:end], words[start + i]))
                offsets.append(len(found))
        return Matches(np.array(offsets, dtype=np.int64), np.array(found, dtype=np.int64))

    def check(self) -> None:
        """Verify the table, the tree and the keywords."""
        super().check()
        if self._required.keys() != set(self.table.used().tolist()):
            raise InconsistentIndexError("the keywords do not match the clauses")

    def _verified(self, slots: list[int], words: frozenset[int]) -> Iterator[int]:
        """Yield the clauses whose required keywords are all in `words`.

        The tree has tested the boxes, in float64.
        """
        self.candidate_count += len(slots)
        return (self._ids[slot] for slot in slots if self._required[slot] <= words)
