"""The validated input of an object index, and arrays for its output."""

from __future__ import annotations

import numpy as np

from index.batches import Floats, InterestBatch, Ints, ObjectBatch, Ranking, all_first_ids
from index.tables.buckets.question_kernels import Answered, Queries
from index.tables.heap_kernels import Heap

_KEYWORDS_MAX = int(np.iinfo(np.int16).max)


def validate(objects: ObjectBatch) -> None:
    """Reject objects that entries cannot represent.

    Raises
    ------
    ValueError
        If an object has no or too many keywords, a negative keyword, or no finite position.
    """
    if len(objects) == 0:
        return
    counts = np.diff(objects.keywords.offsets)
    if counts.min() < 1 or counts.max() > _KEYWORDS_MAX:
        raise ValueError(f"an object has 1 to {_KEYWORDS_MAX} keywords")
    if objects.keywords.ids.min() < 0:
        raise ValueError("a keyword is negative")
    if not (np.isfinite(objects.x_m).all() and np.isfinite(objects.y_m).all()):
        raise ValueError("a position is not finite")


def queries_of(
    interests: InterestBatch, x_m: Floats, y_m: Floats, bound_m: Floats, first_id: Ints | None
) -> Queries:
    """Return the contiguous arrays of a batch of queries: kernels are compiled for each layout."""
    keywords = interests.keywords
    columns = (interests.weight_m, interests.similarity, keywords.offsets, keywords.ids)
    first_ids = all_first_ids(first_id, len(interests))
    places = np.ascontiguousarray(x_m), np.ascontiguousarray(y_m)
    return Queries(*columns, *places, bound_m, interests.all_squares(), first_ids)


class Answers:
    """Arrays for the ranking of a batch, and the scratch of its searches.

    Parameters
    ----------
    room
        The maximum number of objects for each interest.
    node_count
        The maximum number of nodes pending in one search.
    """

    def __init__(self, room: Ints, node_count: int) -> None:
        self._starts: Ints = np.zeros(len(room) + 1, dtype=np.int64)
        np.cumsum(room, out=self._starts[1:])
        self._sizes: Ints = np.zeros(len(room), dtype=np.int64)
        total = int(self._starts[-1])
        self._ids: Ints = np.empty(total, dtype=np.int64)
        self._length_m: Floats = np.empty(total, dtype=np.float64)
        self._r_m: Floats = np.empty(total, dtype=np.float64)
        self.arrays = Answered(self._starts, self._sizes, self._ids, self._length_m, self._r_m)
        """The arrays that a kernel fills."""
        self.frontier = Heap(
            np.empty(node_count + 1, dtype=np.float64), np.empty(node_count + 1, dtype=np.int32)
        )

    def ranking(self) -> Ranking:
        """Return the filled part, without the gaps."""
        offsets = np.zeros_like(self._starts)
        np.cumsum(self._sizes, out=offsets[1:])
        if offsets[-1] == self._starts[-1]:
            return Ranking(offsets, self._ids, self._length_m, self._r_m)
        ends = np.repeat(self._starts[:-1] + self._sizes, np.diff(self._starts))
        is_used = np.arange(self._starts[-1]) < ends
        return Ranking(offsets, self._ids[is_used], self._length_m[is_used], self._r_m[is_used])
