"""The postings of subscriptions: spans as long as their keyword lists, reused by length."""

from __future__ import annotations

import numpy as np

from index.contracts import InconsistentIndexError
from index.published.sq_tree import posting_kernels as kernels
from index.published.sq_tree.layout import NOTHING, POSTING_DTYPE, Rows, Slots
from index.tables.growth import longer

_ROOM_MIN = 64


class Postings:
    """The postings of all subscriptions. Take and give back O(1) a span."""

    def __init__(self) -> None:
        self.rows: Rows = np.zeros(_ROOM_MIN, dtype=POSTING_DTYPE)
        self._ends = np.zeros(1, dtype=np.int64)  # every row from here on is unused
        self._free: Slots = np.full(_ROOM_MIN, NOTHING, dtype=np.int32)  # first free span by length

    def take(self, subscriptions: Rows, slots: Slots) -> None:
        """Allocate a span to each subscription."""
        counts = subscriptions["keyword_count"][slots]
        longest = int(counts.max(initial=0))
        if longest >= len(self._free):
            self._free = np.concatenate([self._free, np.full(longest + 1, NOTHING, dtype=np.int32)])
        self.rows = longer(self.rows, int(self._ends[0]) + int(counts.sum()))
        kernels.take(subscriptions, self.rows, self._free, slots, self._ends)

    def give_back(self, subscriptions: Rows, slots: Slots) -> None:
        """Free the spans of subscriptions that are in no chain."""
        kernels.give_back(subscriptions, self.rows, self._free, slots)

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        return self.rows.nbytes + self._free.nbytes

    def check(self, subscriptions: Rows, used: Slots) -> None:
        """Verify that used and free spans together are all of them."""
        total = int(subscriptions["keyword_count"][used].sum())
        for count, head in enumerate(self._free.tolist()):
            place = head
            while place != NOTHING:
                total += count
                place = int(self.rows["next"][place])
        if total != self._ends[0]:
            raise InconsistentIndexError("the postings have a wrong count of room")
