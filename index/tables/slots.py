"""Tables of rows with a keyword list each: ids to slots, slots reused.

Operations: insert and remove O(1) a row amortised. A row keeps its slot while it lives, so structures may
refer to slots; a kernel that scans `rows[: table.end]` skips the holes (`keyword_count == 0`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from index.batches import Ints, KeywordIds, KeywordLists
from index.contracts import InconsistentIndexError
from index.tables import slot_kernels as kernels
from index.tables.growth import longer
from index.tables.id_map import IdMap

Slots = npt.NDArray[np.int32]

_CAPACITY_MIN = 16


class SlotTable:
    """Rows of one structured dtype with a field `id`, each with a list of keyword ids.

    The dtype must have the fields `id` (int64), `keyword_start` (int64) and `keyword_count` (int32); the
    lists lie in one pool, which is compacted when more than half of it is garbage.

    Parameters
    ----------
    dtype
        The structured dtype of a row.
    with_places
        Whether `places` is kept: a number beside each keyword of the pool, for structures that hold an
        entry for each (row, keyword) and must find it again.
    """

    def __init__(self, dtype: np.dtype[np.void], *, with_places: bool = False) -> None:
        self.rows: npt.NDArray[np.void] = np.zeros(_CAPACITY_MIN, dtype=dtype)
        self.pool: KeywordIds = np.zeros(_CAPACITY_MIN, dtype=np.int32)
        self.places: Slots = np.zeros(_CAPACITY_MIN if with_places else 0, dtype=np.int32)
        self.end = 0
        """Every slot from here on is unused."""
        self.ids = IdMap()
        self._free: Slots = np.zeros(_CAPACITY_MIN, dtype=np.int32)  # a stack of holes
        self._free_count = 0
        self._pool_end = 0
        self._pool_garbage = 0

    def __len__(self) -> int:
        return len(self.ids)

    def append(self, ids: Ints, keywords: KeywordLists, columns: dict[str, npt.NDArray[Any]]) -> Slots:
        """Add rows; return their slots.

        Raises
        ------
        KeyError
            If an id is already present, or twice in the batch. Nothing is added.
        """
        count = len(ids)
        reused = min(count, self._free_count)
        holes = self._free[self._free_count - reused : self._free_count][::-1]
        added = np.arange(self.end, self.end + count - reused, dtype=np.int32)
        slots = np.concatenate([holes, added])
        self.ids.insert(ids, slots)
        self._free_count -= reused
        self._reserve(self.end + len(added), self._pool_end + len(keywords.ids))
        self.end += len(added)
        rows = self.rows
        rows["id"][slots] = ids
        for name, values in columns.items():
            rows[name][slots] = values
        rows["keyword_start"][slots] = self._pool_end + keywords.offsets[:-1]
        rows["keyword_count"][slots] = np.diff(keywords.offsets)
        self.pool[self._pool_end : self._pool_end + len(keywords.ids)] = keywords.ids
        self._pool_end += len(keywords.ids)
        return slots

    def remove(self, ids: Ints) -> Slots:
        """Remove rows; return their former slots.

        These are holes now; their contents are unchanged except for the keyword count.

        Raises
        ------
        KeyError
            If an id is absent, or twice in the batch. Nothing is removed.
        """
        slots = self.take(ids)
        self.discard(slots)
        return slots

    def take(self, ids: Ints) -> Slots:
        """Remove ids; return their slots, whose rows stay unchanged until `discard`, which must follow.

        Raises
        ------
        KeyError
            If an id is absent, or twice in the batch. Nothing is removed.
        """
        return self.ids.remove(ids)

    def discard(self, slots: Slots) -> None:
        """Make holes of the slots that `take` returned."""
        self._pool_garbage += int(self.rows["keyword_count"][slots].sum())
        self.rows["keyword_count"][slots] = 0
        while self._free_count + len(slots) > len(self._free):
            self._free = np.concatenate([self._free, np.zeros_like(self._free)])
        self._free[self._free_count : self._free_count + len(slots)] = slots
        self._free_count += len(slots)
        if self._pool_garbage * 2 > self._pool_end:
            self._compact()

    def slots(self, ids: Ints) -> Slots:
        """Return the slots of ids. Raises KeyError if one is absent."""
        return self.ids.find(ids)

    def distinct_slots(self, ids: Ints) -> Slots:
        """Return the slots of ids. Raises KeyError if one is absent, or twice in the batch."""
        slots = self.ids.find(ids)
        if len(np.unique(slots)) != len(slots):
            twice, counts = np.unique(ids, return_counts=True)
            raise KeyError(f"id {twice[counts > 1][0]} is in the batch twice")
        return slots

    def used(self) -> Slots:
        """Return the slots in use, increasing. O(slots)."""
        found: Slots = np.flatnonzero(self.rows["keyword_count"][: self.end]).astype(np.int32)
        return found

    def keywords(self, slot: int) -> KeywordIds:
        """Return the keyword ids of one row."""
        start = int(self.rows["keyword_start"][slot])
        return self.pool[start : start + int(self.rows["keyword_count"][slot])]

    def keyword_lists(self, slots: Slots) -> KeywordLists:
        """Return the keyword ids of many rows. O(keywords)."""
        counts = self.rows["keyword_count"][slots].astype(np.int64)
        offsets = np.zeros(len(slots) + 1, dtype=np.int64)
        np.cumsum(counts, out=offsets[1:])
        places = np.repeat(self.rows["keyword_start"][slots] - offsets[:-1], counts)
        return KeywordLists(offsets, self.pool[places + np.arange(offsets[-1])])

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        arrays = (self.rows, self.pool, self.places, self._free, self.ids.keys, self.ids.values)
        return sum(array.nbytes for array in arrays)

    def check(self, taken: Slots | None = None) -> None:
        """Verify that ids, slots, holes and keyword lists agree.

        Parameters
        ----------
        taken
            Slots that `take` has returned, and that have not been passed to `discard` yet.
        """
        self.ids.check()
        used = self.used()
        kept = used if taken is None else np.setdiff1d(used, taken, assume_unique=True)
        if len(kept) != len(self) or len(used) + self._free_count != self.end:
            raise InconsistentIndexError("the table has a wrong count of rows")
        wrong = kept[self.ids.numbers(self.rows["id"][kept]) != kept]
        if len(wrong):
            raise InconsistentIndexError(f"id {self.rows['id'][wrong[0]]} is not in its slot {wrong[0]}")
        starts = self.rows["keyword_start"][used].astype(np.int64)
        counts = self.rows["keyword_count"][used].astype(np.int64)
        wrong = used[(starts < 0) | (starts + counts > self._pool_end)]
        if len(wrong):
            raise InconsistentIndexError(f"keywords of slot {wrong[0]} lie outside the pool")
        lists, owners = self.keyword_lists(used), np.repeat(used, counts)
        wrong = owners[1:][(owners[1:] == owners[:-1]) & (np.diff(lists.ids) <= 0)]
        if len(wrong):
            raise InconsistentIndexError(f"keywords of slot {wrong[0]} are not strictly increasing")
        if len(lists.ids) + self._pool_garbage != self._pool_end:
            raise InconsistentIndexError("the keyword pool has a wrong count of garbage")

    def _reserve(self, row_count: int, pool_count: int) -> None:
        self.rows = longer(self.rows, row_count)
        self.pool = longer(self.pool, pool_count)
        if len(self.places) > 0:
            self.places = longer(self.places, len(self.pool))

    def _compact(self) -> None:
        kept = self._pool_end - self._pool_garbage
        pool = np.zeros(max(_CAPACITY_MIN, kept), dtype=np.int32)
        places = np.zeros(len(pool) if len(self.places) > 0 else 0, dtype=np.int32)
        # All rows: a column of a single row is contiguous, which is another type, not compiled for.
        starts, counts = self.rows["keyword_start"], self.rows["keyword_count"]
        self._pool_end = kernels.compact(starts, counts, self.pool, self.places, pool, places)
        self._pool_garbage = 0
        self.pool, self.places = pool, places
