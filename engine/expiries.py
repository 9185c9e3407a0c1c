"""Queue objects by expiry.

Push and pop O(log n) each. An object that is removed earlier stays in the queue until it is due, or until
more than half of the queue are such objects.
"""

from __future__ import annotations

import numpy as np

from engine import expiry_kernels as kernels
from index.batches import Ints
from index.tables.growth import longer
from index.tables.id_map import IdMap

_ROOM_MIN = 64
_GONE_MIN = 1_024
"""As many objects that are gone may always stay in the queue."""

ALL = 1 << 62
"""More than any number of objects."""


class Expiries:
    """A queue of object ids by expiry."""

    def __init__(self) -> None:
        self._times: Ints = np.zeros(_ROOM_MIN, dtype=np.int64)
        self._ids: Ints = np.zeros(_ROOM_MIN, dtype=np.int64)
        self._size = 0

    def push(self, times_ms: Ints, ids: Ints) -> None:
        """Add objects."""
        needed = self._size + len(ids)
        self._times = longer(self._times, needed)
        self._ids = longer(self._ids, needed)
        self._size = kernels.push_all(self._times, self._ids, self._size, times_ms, ids)

    def drop_gone(self, there: IdMap) -> None:
        """Drop the objects that are gone, if they are most of the queue. O(log n) amortised for each.

        Parameters
        ----------
        there
            The ids of all other objects of the queue.
        """
        if self._size <= 2 * len(there) + _GONE_MIN:
            return
        is_there = there.present(self._ids[: self._size])
        # In the order of the heap, so that ties remain in order as far as possible.
        times_ms, ids = self._times[: self._size][is_there], self._ids[: self._size][is_there]
        self._size = kernels.push_all(self._times, self._ids, 0, times_ms, ids)

    def next_ms(self) -> int | None:
        """Return the time when the next object is due; None if there is none."""
        return int(self._times[0]) if self._size else None

    def pop_due(self, now_ms: int, count_max: int = ALL) -> Ints:
        """Pop the ids whose expiry is not after `now_ms`, earliest first, at most `count_max`."""
        parts = []
        while count_max and self._size and self._times[0] <= now_ms:
            due = np.empty(min(self._size, 4096, count_max), dtype=np.int64)
            self._size, count = kernels.pop_due(self._times, self._ids, self._size, now_ms, due)
            count_max -= count
            parts.append(due[:count])
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        return self._times.nbytes + self._ids.nbytes
