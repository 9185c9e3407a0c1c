"""Stretches of one int32 array, given out by length and reused by length.

Take and give back O(1) a stretch, growth by doubling.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from index.batches import Ints
from index.tables import stretch_kernels as kernels

Values = npt.NDArray[np.int32]

_ROOM_MIN = 64
_NOTHING = -1


class Stretches:
    """Room for lists whose length does not change."""

    def __init__(self) -> None:
        self.values: Values = np.zeros(_ROOM_MIN, dtype=np.int32)
        self.end = 0
        self._free: Values = np.full(_ROOM_MIN, _NOTHING, dtype=np.int32)  # first free one by length

    def take(self, counts: Ints) -> Values:
        """Return the start of a stretch of each length."""
        longest = int(counts.max(initial=0))
        if longest >= len(self._free):
            self._free = np.concatenate([self._free, np.full(longest + 1, _NOTHING, dtype=np.int32)])
        needed = self.end + int(counts.sum())
        if needed > len(self.values):
            grown = np.zeros(max(needed, 2 * len(self.values)), dtype=np.int32)
            grown[: self.end] = self.values[: self.end]
            self.values = grown
        starts = np.empty(len(counts), dtype=np.int32)
        self.end = kernels.take(self.values, self._free, counts, starts, self.end)
        return starts

    def give_back(self, starts: Values, counts: Ints) -> None:
        """Take stretches back."""
        kernels.give_back(self.values, self._free, starts, counts)

    def memory_bytes(self) -> int:
        """Size of all arrays."""
        return self.values.nbytes + self._free.nbytes
