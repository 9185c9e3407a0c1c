"""Queue objects by expiry.

Push and pop O(log n) each. An object that is removed earlier stays in the queue until it is due.
"""

from __future__ import annotations

import numpy as np

from engine import expiry_kernels as kernels
from index.batches import Ints
from index.tables.growth import longer

_ROOM_MIN = 64

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
