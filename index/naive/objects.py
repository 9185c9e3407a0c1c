"""The naive object index: a table, scanned for every query.

Operations: insert and remove O(1) a row amortised, best O(objects) a subscription.
"""

from __future__ import annotations

import numpy as np

from index.batches import (
    Boxes,
    Floats,
    InterestBatch,
    Ints,
    KeywordLists,
    Matches,
    ObjectBatch,
    Ranking,
)
from index.naive import kernels
from index.naive.layout import OBJECT_DTYPE
from index.tables import SlotTable
from index.tables.buckets.rankings import Answers, queries_of

_MATCHES_GUESS = 64


class NaiveObjectIndex:
    """See `index.contracts.ObjectIndex`."""

    def __init__(self) -> None:
        self._table = SlotTable(OBJECT_DTYPE)

    def __len__(self) -> int:
        return len(self._table)

    def insert(self, objects: ObjectBatch) -> None:
        """Add objects. O(1) each, amortised."""
        columns = {"x_m": objects.x_m, "y_m": objects.y_m, "norm2": objects.norms()}
        self._table.append(objects.ids, objects.keywords, columns)

    def remove(self, ids: Ints) -> None:
        """Remove objects. O(1) each, amortised."""
        self._table.remove(ids)

    def best(
        self,
        interests: InterestBatch,
        x_m: Floats,
        y_m: Floats,
        count: Ints,
        bound_m: Floats,
        first_id: Ints | None = None,
    ) -> Ranking:
        """Rank every object for every interest."""
        rows = self._table.rows[: self._table.end]
        answers = Answers(np.minimum(count, len(self._table)), 0)
        queries = queries_of(interests, x_m, y_m, bound_m, first_id)
        kernels.best(rows, self._table.pool, queries, answers.arrays)
        return answers.ranking()

    def within(self, required: KeywordLists, boxes: Boxes) -> Matches:
        """Test every object against every row."""
        offsets = np.zeros(len(boxes) + 1, dtype=np.int64)
        found = np.empty(_MATCHES_GUESS, dtype=np.int64)
        while True:
            total = kernels.within(
                self._table.rows[: self._table.end],
                self._table.pool,
                required.offsets,
                required.ids,
                boxes.x1_m,
                boxes.y1_m,
                boxes.x2_m,
                boxes.y2_m,
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
