"""The naive clause index: a table, scanned for every object.

Operations: insert, move and remove O(1) a row amortised, match O(clauses) an object.
"""

from __future__ import annotations

import numpy as np

from index.batches import Boxes, Ints, KeywordLists, Matches, ObjectBatch
from index.naive import kernels
from index.naive.layout import CLAUSE_DTYPE
from index.tables import SlotTable
from index.tables.clauses import columns_of, validate_boxes, validate_clauses
from index.tables.slots import Slots

_MATCHES_GUESS = 64
"""The capacity for matches at the first attempt; if it is too small, the kernel returns the size it
needs."""


class NaiveClauseIndex:
    """See `index.contracts.ClauseIndex`."""

    def __init__(self) -> None:
        self._table = SlotTable(CLAUSE_DTYPE)
        self.candidate_count = 0

    def __len__(self) -> int:
        return len(self._table)

    def insert(self, ids: Ints, boxes: Boxes, required: KeywordLists) -> None:
        """Add clauses. O(1) each, amortised."""
        validate_clauses(ids, boxes, required)
        self._table.append(ids, required, columns_of(boxes))

    def validate_move(self, ids: Ints, boxes: Boxes) -> Slots:
        """Verify the arguments of `move`; return the slots. Raises as `move` does."""
        validate_boxes(ids, boxes)
        return self._table.distinct_slots(ids)

    def of(self, ids: Ints) -> tuple[Boxes, KeywordLists]:
        """Return the boxes and the required keywords of clauses."""
        slots = self._table.slots(ids)
        boxes = Boxes(*(self._table.rows[name][slots] for name in ("x1_m", "y1_m", "x2_m", "y2_m")))
        return boxes, self._table.keyword_lists(slots)

    def move(self, ids: Ints, boxes: Boxes) -> None:
        """Change the boxes of clauses. O(1) each."""
        slots = self.validate_move(ids, boxes)
        for name, values in columns_of(boxes).items():
            self._table.rows[name][slots] = values

    def remove(self, ids: Ints) -> None:
        """Remove clauses. O(1) each, amortised."""
        self._table.remove(ids)

    def match(self, objects: ObjectBatch) -> Matches:
        """Test every clause against every object."""
        self.candidate_count += len(objects) * len(self)
        extents = objects.extents()
        offsets = np.zeros(len(objects) + 1, dtype=np.int64)
        found = np.empty(_MATCHES_GUESS, dtype=np.int64)
        while True:
            total = kernels.match_clauses(
                self._table.rows[: self._table.end],
                self._table.pool,
                extents.x1_m,
                extents.y1_m,
                extents.x2_m,
                extents.y2_m,
                objects.keywords.offsets,
                objects.keywords.ids,
                offsets,
                found,
            )
            if total <= len(found):
                return Matches(offsets, found[:total])
            found = np.empty(total, dtype=np.int64)

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        return self._table.memory_bytes()

    def check(self) -> None:
        """Verify the table."""
        self._table.check()
