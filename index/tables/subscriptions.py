"""A table of top-k subscriptions, with the weights of keywords and the number of their subscriptions.

Operations: O(keywords) a subscription.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from index.batches import Floats, InterestBatch, ObjectBatch, ReachBatch
from index.contracts import InconsistentIndexError
from index.tables.growth import as_long
from index.tables.keyword_weights import KeywordWeights
from index.tables.slots import Slots, SlotTable
from index.tables.vector_kernels import Arrivals
from safe_region.scoring.formulas import Similarity

SUBSCRIPTION_FIELDS: list[tuple[str, type[np.generic]]] = [
    ("id", np.int64),
    ("x_m", np.float64),  # anchor, or centre of the region
    ("y_m", np.float64),
    ("radius_m", np.float64),  # of the region about it; 0 for an anchor
    ("reach_m", np.float64),
    ("reach_id", np.int64),
    ("weight_m", np.float64),  # metres per text distance
    ("norm2", np.float64),  # sum of the keywords' squared weights
    ("keyword_start", np.int64),  # first keyword id in the pool
    ("keyword_count", np.int32),
    ("similarity", np.int8),
]

_REACH_FIELDS = ("x_m", "y_m", "radius_m", "reach_m", "reach_id")


class SubscriptionTable(SlotTable):
    """Rows with `SUBSCRIPTION_FIELDS`, and perhaps more."""

    def __init__(self, dtype: np.dtype[np.void]) -> None:
        super().__init__(dtype)
        self._weights = KeywordWeights()
        self._is_weighted = False
        self.uses: Slots = np.zeros(len(self._weights.squares), dtype=np.int32)
        """The number of subscriptions that have a keyword, by its id."""

    @property
    def squares(self) -> Floats:
        """The squared weight of each keyword, by its id; as long as `uses`."""
        return self._weights.squares

    def add(
        self, reaches: ReachBatch, interests: InterestBatch, columns: dict[str, npt.NDArray[Any]]
    ) -> Slots:
        """Add subscriptions; return their slots. `columns` has the other fields of a row.

        Raises
        ------
        KeyError
            If an id is already present, or twice in the batch. Nothing is added.
        """
        own: dict[str, npt.NDArray[Any]] = {
            "weight_m": interests.weight_m,
            "similarity": interests.similarity,
            "norm2": interests.norms(),
        }
        own |= {name: getattr(reaches, name) for name in _REACH_FIELDS}
        slots = self.append(reaches.ids, interests.keywords, own | columns)
        self._is_weighted |= bool((interests.similarity == Similarity.TFIDF).any())
        self._weights.note(interests)
        self.uses = as_long(self.uses, len(self.squares))
        np.add.at(self.uses, interests.keywords.ids, 1)
        return slots

    def discard(self, slots: Slots) -> None:
        """Make holes of the slots that `take` returned."""
        np.subtract.at(self.uses, self.keyword_lists(slots).ids, 1)
        super().discard(slots)

    def arrivals(self, objects: ObjectBatch) -> Arrivals:
        """Return objects with the sums of squares that vectors need: weights, or keyword counts."""
        words = objects.keywords
        counts = np.diff(words.offsets).astype(np.float64)
        norm2 = objects.norms() if self._is_weighted else counts
        return Arrivals(objects.ids, objects.x_m, objects.y_m, words.offsets, words.ids, norm2)

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        return super().memory_bytes() + self.squares.nbytes + self.uses.nbytes

    def check(self, taken: Slots | None = None) -> None:
        """Verify the table, and the use counts of keywords."""
        super().check(taken)
        words = self.keyword_lists(self.used()).ids
        if not np.array_equal(np.bincount(words, minlength=len(self.uses)), self.uses):
            raise InconsistentIndexError("the table has a wrong count of keywords")
