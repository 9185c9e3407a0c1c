"""Dense tables: ids to slots, growth by doubling, removal by swapping the last row in.

Operations: insert and remove O(1) a row amortised, plus moving one row. Rows stay contiguous, so a
kernel may scan `rows[: len(table)]`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from index.batches import Ints, KeywordIds, KeywordLists
from index.contracts import InconsistentIndexError

_CAPACITY_MIN = 16


def require_new(ids: Ints, present: dict[int, int]) -> None:
    """Raise KeyError if an id is present or occurs twice."""
    seen: set[int] = set()
    for value in ids.tolist():
        if value in present or value in seen:
            raise KeyError(f"id {value} is already in the index")
        seen.add(value)


def require_present(ids: Ints, present: dict[int, int]) -> None:
    """Raise KeyError if an id is absent or occurs twice."""
    seen: set[int] = set()
    for value in ids.tolist():
        if value not in present or value in seen:
            raise KeyError(f"id {value} is not in the index")
        seen.add(value)


class SlotTable:
    """Rows of one structured dtype with a field `id`, each with a list of keyword ids.

    The dtype must have the fields `id` (int64), `keyword_start` (int64) and `keyword_count` (int32);
    the lists lie in one pool, which is compacted when more than half of it is garbage.

    Parameters
    ----------
    dtype
        The structured dtype of a row.
    """

    def __init__(self, dtype: np.dtype[np.void]) -> None:
        self.rows: npt.NDArray[np.void] = np.zeros(_CAPACITY_MIN, dtype=dtype)
        self.pool: KeywordIds = np.zeros(_CAPACITY_MIN, dtype=np.int32)
        self.slot_of: dict[int, int] = {}
        self._pool_end = 0
        self._pool_garbage = 0

    def __len__(self) -> int:
        return len(self.slot_of)

    def append(self, ids: Ints, keywords: KeywordLists, columns: dict[str, npt.NDArray[Any]]) -> None:
        """Add rows. Raises KeyError as `require_new` does, before anything changes."""
        require_new(ids, self.slot_of)
        start = len(self)
        count = len(ids)
        self._reserve(start + count, self._pool_end + len(keywords.ids))
        rows = self.rows[start : start + count]
        rows["id"] = ids
        for name, values in columns.items():
            rows[name] = values
        rows["keyword_start"] = self._pool_end + keywords.offsets[:-1]
        rows["keyword_count"] = np.diff(keywords.offsets)
        self.pool[self._pool_end : self._pool_end + len(keywords.ids)] = keywords.ids
        self._pool_end += len(keywords.ids)
        self.slot_of.update(zip(ids.tolist(), range(start, start + count), strict=True))

    def remove(self, ids: Ints) -> None:
        """Remove rows. Raises KeyError as `require_present` does, before anything changes."""
        require_present(ids, self.slot_of)
        for value in ids.tolist():
            slot = self.slot_of.pop(value)
            last = len(self.slot_of)
            self._pool_garbage += int(self.rows[slot]["keyword_count"])
            if slot != last:
                self.rows[slot] = self.rows[last]
                self.slot_of[int(self.rows[slot]["id"])] = slot
        if self._pool_garbage * 2 > self._pool_end:
            self._compact()

    def slots(self, ids: Ints) -> Ints:
        """Slots of ids. Raises KeyError if one is absent, or occurs twice."""
        require_present(ids, self.slot_of)
        return np.array([self.slot_of[value] for value in ids.tolist()], dtype=np.int64)

    def check(self) -> None:
        """Verify that ids, slots and keyword lists agree."""
        used = 0
        for value, slot in self.slot_of.items():
            row = self.rows[slot]
            if slot >= len(self) or int(row["id"]) != value:
                raise InconsistentIndexError(f"id {value} is not in its slot {slot}")
            start = int(row["keyword_start"])
            words = self.pool[start : start + int(row["keyword_count"])]
            if len(words) != int(row["keyword_count"]) or start + len(words) > self._pool_end:
                raise InconsistentIndexError(f"keywords of id {value} lie outside the pool")
            if len(words) == 0 or (np.diff(words) <= 0).any():
                raise InconsistentIndexError(f"keywords of id {value} are not strictly increasing")
            used += len(words)
        if used + self._pool_garbage != self._pool_end:
            raise InconsistentIndexError("the keyword pool has lost count of its garbage")

    def _reserve(self, row_count: int, pool_count: int) -> None:
        if row_count > len(self.rows):
            rows = np.zeros(max(row_count, 2 * len(self.rows)), dtype=self.rows.dtype)
            rows[: len(self)] = self.rows[: len(self)]
            self.rows = rows
        if pool_count > len(self.pool):
            pool = np.zeros(max(pool_count, 2 * len(self.pool)), dtype=np.int32)
            pool[: self._pool_end] = self.pool[: self._pool_end]
            self.pool = pool

    def _compact(self) -> None:
        rows = self.rows[: len(self)]
        lists = [
            self.pool[start : start + count]
            for start, count in zip(
                rows["keyword_start"].tolist(), rows["keyword_count"].tolist(), strict=True
            )
        ]
        packed = KeywordLists.of(lists)
        rows["keyword_start"] = packed.offsets[:-1]
        self._pool_end = len(packed.ids)
        self._pool_garbage = 0
        self.pool = np.zeros(max(_CAPACITY_MIN, 2 * self._pool_end), dtype=np.int32)
        self.pool[: self._pool_end] = packed.ids
