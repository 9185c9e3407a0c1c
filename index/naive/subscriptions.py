"""The naive subscription index: a table, scanned for every object.

Operations: insert, move and remove O(1) a row amortised, match O(subscriptions) an object.
"""

from __future__ import annotations

import numpy as np

from index.batches import InterestBatch, Ints, Matches, ObjectBatch, ReachBatch
from index.naive import kernels
from index.naive.layout import SUBSCRIPTION_DTYPE
from index.tables import SlotTable
from index.tables.keyword_weights import KeywordWeights

_MATCHES_GUESS = 64
"""The capacity for matches at the first attempt; if it is too small, the kernel returns the size it
needs."""


class NaiveSubscriptionIndex:
    """See `index.contracts.SubscriptionIndex`."""

    def __init__(self) -> None:
        self._table = SlotTable(SUBSCRIPTION_DTYPE)
        self._weights = KeywordWeights()

    def __len__(self) -> int:
        return len(self._table)

    def insert(self, reaches: ReachBatch, interests: InterestBatch) -> None:
        """Add subscriptions. O(1) each, amortised."""
        self._table.append(
            reaches.ids,
            interests.keywords,
            {
                "x_m": reaches.x_m,
                "y_m": reaches.y_m,
                "radius_m": reaches.radius_m,
                "reach_m": reaches.reach_m,
                "reach_id": reaches.reach_id,
                "weight_m": interests.weight_m,
                "similarity": interests.similarity,
                "norm2": interests.norms(),
            },
        )
        self._weights.note(interests)

    def move(self, reaches: ReachBatch) -> None:
        """Change anchors and reaches. O(1) each."""
        slots = self._table.slots(reaches.ids)
        rows = self._table.rows
        rows["x_m"][slots] = reaches.x_m
        rows["y_m"][slots] = reaches.y_m
        rows["radius_m"][slots] = reaches.radius_m
        rows["reach_m"][slots] = reaches.reach_m
        rows["reach_id"][slots] = reaches.reach_id

    def remove(self, ids: Ints) -> None:
        """Remove subscriptions. O(1) each, amortised."""
        self._table.remove(ids)

    def match(self, objects: ObjectBatch) -> Matches:
        """Test every subscription against every object."""
        offsets = np.zeros(len(objects) + 1, dtype=np.int64)
        rows = self._table.rows[: self._table.end]
        weighed = np.empty(int(rows["keyword_count"].max(initial=0)))
        found = np.empty(_MATCHES_GUESS, dtype=np.int64)
        while True:
            total = kernels.match(
                rows,
                self._table.pool,
                objects.ids,
                objects.x_m,
                objects.y_m,
                objects.keywords.offsets,
                objects.keywords.ids,
                objects.norms(),
                self._weights.squares,
                weighed,
                offsets,
                found,
            )
            if total <= len(found):
                return Matches(offsets, found[:total])
            found = np.empty(total, dtype=np.int64)

    def observe(self, objects: ObjectBatch) -> None:
        """Do nothing: this index does not adapt to objects."""

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        return self._table.memory_bytes() + self._weights.squares.nbytes

    def check(self) -> None:
        """Verify the table."""
        self._table.check()
