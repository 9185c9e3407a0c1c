"""An object index of posting lists alone: the baseline of the suite retrieve.

Operations: insert and remove O(keywords) an object, amortised; best O(postings of the subscription's
keywords) a subscription; within O(postings of the rarest keyword) a row.

Plan: one list of objects for each keyword. `best` counts, over the lists of all its keywords, the
keywords that each object has in common with the subscription, and keeps the objects of least exact length
in a bounded heap. There are no bounds and no spatial structure. The capacity of lists is reused when they
grow again, and never released.
"""

from __future__ import annotations

import numpy as np

from bench.peers import inverted_file_kernels as kernels
from bench.peers.inverted_file_kernels import LIST_DTYPE, File
from index.batches import (
    Boxes,
    Floats,
    InterestBatch,
    Ints,
    KeywordIds,
    KeywordLists,
    Matches,
    ObjectBatch,
    Ranking,
)
from index.contracts import InconsistentIndexError
from index.naive.kernels import Rows
from index.naive.layout import OBJECT_DTYPE
from index.tables import SlotTable
from index.tables.buckets.rankings import Answers, queries_of, validate
from index.tables.id_map import IdMap
from index.tables.matches import box_queries, collected
from index.tables.slots import Slots

_ROOM_MIN = 4


class InvertedFile:
    """See `index.contracts.ObjectIndex`."""

    def __init__(self) -> None:
        self._table = SlotTable(OBJECT_DTYPE, with_places=True)
        self._numbers = IdMap()
        self._lists: Rows = np.zeros(0, dtype=LIST_DTYPE)
        self._postings: Slots = np.zeros(_ROOM_MIN, dtype=np.int32)
        self._end = 0
        self._common = np.zeros(0, dtype=np.float64)
        self._touched: Slots = np.zeros(0, dtype=np.int32)

    def __len__(self) -> int:
        return len(self._table)

    def insert(self, objects: ObjectBatch) -> None:
        """Add objects."""
        validate(objects)
        columns = {"x_m": objects.x_m, "y_m": objects.y_m, "norm2": objects.norms()}
        slots = self._table.append(objects.ids, objects.keywords, columns)
        self._reserve(objects.keywords.ids)
        kernels.enter(self._file(), slots)
        room = len(self._table.rows)
        if room > len(self._common):
            self._common = np.zeros(room, dtype=np.float64)
            self._touched = np.zeros(room, dtype=np.int32)

    def remove(self, ids: Ints) -> None:
        """Remove objects."""
        slots = self._table.take(ids)
        kernels.leave(self._file(), slots)
        self._table.discard(slots)

    def best(
        self,
        interests: InterestBatch,
        x_m: Floats,
        y_m: Floats,
        count: Ints,
        bound_m: Floats,
        first_id: Ints | None = None,
    ) -> Ranking:
        """Return for each interest at its position the `count` objects of least (length, id)."""
        answers = Answers(np.minimum(count, len(self)), 0)
        kernels.best(
            self._file(),
            queries_of(interests, x_m, y_m, bound_m, first_id),
            answers.arrays,
            self._common,
            self._touched,
        )
        return answers.ranking()

    def within(self, required: KeywordLists, boxes: Boxes) -> Matches:
        """Return for each row the objects in its box that have all its keywords."""
        arrays = (self._file(), box_queries(required, boxes))
        return collected(
            len(boxes), lambda row, offsets, found: kernels.within(*arrays, row, offsets, found)
        )

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        own = (self._lists, self._postings, self._common, self._touched)
        numbers = self._numbers.keys.nbytes + self._numbers.values.nbytes
        return sum(array.nbytes for array in own) + numbers + self._table.memory_bytes()

    def check(self) -> None:
        """Verify that each list has the objects that have its keyword, at their places."""
        self._table.check()
        self._numbers.check()
        total = 0
        for slot in self._table.used().tolist():
            start = int(self._table.rows["keyword_start"][slot])
            words = self._table.keywords(slot)
            numbers = self._numbers.find(words.astype(np.int64))
            places = self._table.places[start : start + len(words)]
            held = self._postings[self._lists["start"][numbers] + places]
            if (held != slot).any() or (places >= self._lists["count"][numbers]).any():
                raise InconsistentIndexError(f"slot {slot} is not in the lists of its keywords")
            total += len(words)
        if total != int(self._lists["count"].sum()):
            raise InconsistentIndexError("the lists have a wrong count of postings")
        if (self._lists["count"] > self._lists["room"]).any() or self._common.any():
            raise InconsistentIndexError("a list has too many postings, or a stale count")

    def _file(self) -> File:
        return File(
            self._numbers.keys,
            self._numbers.values,
            self._lists,
            self._postings,
            self._table.rows,
            self._table.pool,
            self._table.places,
        )

    def _reserve(self, words: KeywordIds) -> None:
        """Reserve capacity in the lists of these keywords for as many more postings."""
        keywords, more = np.unique(words.astype(np.int64), return_counts=True)
        new = keywords[~self._numbers.present(keywords)]
        known = len(self._lists)
        self._numbers.insert(new, np.arange(known, known + len(new), dtype=np.int32))
        self._lists = np.concatenate([self._lists, np.zeros(len(new), dtype=LIST_DTYPE)])
        numbers = self._numbers.find(keywords)
        needed = self._lists["count"][numbers] + more
        is_short = needed > self._lists["room"][numbers]
        rooms = np.maximum(2 * needed[is_short], _ROOM_MIN)
        if self._end + int(rooms.sum()) > len(self._postings):
            self._widen_postings(int(rooms.sum()))
        self._end = kernels.widen(
            self._lists, self._postings, numbers[is_short].astype(np.int64), rooms, self._end
        )

    def _widen_postings(self, more: int) -> None:
        """Allocate space behind the lists, and pack the lists."""
        kept = int(self._lists["room"].sum())
        packed = np.zeros(2 * (kept + more), dtype=np.int32)
        self._end = kernels.pack(self._lists, self._postings, packed)
        self._postings = packed
