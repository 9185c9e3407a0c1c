"""Room for buffers: spans of holdings, given back by size.

Operations: take and give back O(1) a stretch, fit O(its holdings).
"""

from __future__ import annotations

import numpy as np

from engine.top_k import room_kernels as kernels
from engine.top_k.layout import HOLDING_DTYPE, NO_HOLDING, Rows
from engine.top_k.room_kernels import ROOM_STEP, Slots
from index.tables.growth import longer

_HOLDINGS_MIN = 64


class Buffers:
    """The holdings of all subscriptions."""

    def __init__(self) -> None:
        self.holdings: Rows = np.zeros(_HOLDINGS_MIN, dtype=HOLDING_DTYPE)
        self._ends = np.zeros(1, dtype=np.int64)
        self._free: Slots = np.full(16, NO_HOLDING, dtype=np.int32)  # first free stretch by size

    @property
    def end(self) -> int:
        """Every holding from here on is unused."""
        return int(self._ends[0])

    def take(self, subscriptions: Rows, slots: Slots, rooms: Slots) -> None:
        """Give subscriptions that have none room for at least so many holdings each."""
        if len(slots):
            steps = self._reserve(rooms)
            kernels.take(subscriptions, self.holdings, self._free, slots, steps, self._ends)

    def fit(self, objects: Rows, subscriptions: Rows, slots: Slots, rooms: Slots) -> None:
        """Make room for at least so many holdings each, where there is less or more than twice that."""
        now = subscriptions["buffer_room"][slots]
        others = (now < rooms) | (
            (now > 2 * (rooms + ROOM_STEP)) & (subscriptions["buffer_count"][slots] <= rooms)
        )
        if others.any():
            steps = self._reserve(rooms[others])
            kernels.relocate(
                objects, subscriptions, self.holdings, self._free, slots[others], steps, self._ends
            )

    def _reserve(self, rooms: Slots) -> Slots:
        """Return sizes of stretches, for all of which there is room then."""
        steps: Slots = -(-rooms // ROOM_STEP)
        if int(steps.max()) >= len(self._free):
            self._free = np.concatenate(
                [self._free, np.full(int(steps.max()) + 1, NO_HOLDING, dtype=np.int32)]
            )
        self.holdings = longer(self.holdings, self.end + int(steps.sum()) * ROOM_STEP)
        return steps

    def give_back(self, subscriptions: Rows, slots: Slots) -> None:
        """Take the room of subscriptions whose buffers are empty."""
        kernels.give_back(subscriptions, self.holdings, self._free, slots)

    def free_count(self) -> int:
        """Count the holdings in free stretches. O(stretches)."""
        total = 0
        for step, head in enumerate(self._free.tolist()):
            place = head
            while place != NO_HOLDING:
                total += step * ROOM_STEP
                place = int(self.holdings["next"][place])
        return total

    def memory_bytes(self) -> int:
        """Size of all arrays."""
        return self.holdings.nbytes + self._free.nbytes
