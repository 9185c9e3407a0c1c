"""Allocate buffers: spans of holdings, which are freed by size.

Operations: take and give back O(1) a span, fit O(its holdings).
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
        self.ends = np.zeros(1, dtype=np.int64)
        self._free: Slots = np.full(16, NO_HOLDING, dtype=np.int32)  # first free span by size

    @property
    def end(self) -> int:
        """Return the number of the first holding of the unused rest."""
        return int(self.ends[0])

    def take(self, subscriptions: Rows, slots: Slots, rooms: Slots) -> None:
        """Allocate at least `rooms` holdings for each subscription, which has none yet."""
        if len(slots):
            steps = self._reserve(rooms)
            kernels.take(subscriptions, self.holdings, self._free, slots, steps, self.ends)

    def fit(self, objects: Rows, subscriptions: Rows, slots: Slots, rooms: Slots) -> None:
        """Resize buffers to at least `rooms` holdings each, if they have less or more than twice that."""
        now = subscriptions["buffer_room"][slots]
        others = (now < rooms) | (
            (now > 2 * (rooms + ROOM_STEP)) & (subscriptions["buffer_count"][slots] <= rooms)
        )
        if others.any():
            steps = self._reserve(rooms[others])
            kernels.relocate(
                objects, subscriptions, self.holdings, self._free, slots[others], steps, self.ends
            )

    def _reserve(self, rooms: Slots) -> Slots:
        """Return sizes of spans, and extend the holdings by the capacity for all of them."""
        steps: Slots = -(-rooms // ROOM_STEP)
        if int(steps.max()) >= len(self._free):
            self._free = np.concatenate(
                [self._free, np.full(int(steps.max()) + 1, NO_HOLDING, dtype=np.int32)]
            )
        self.holdings = longer(self.holdings, self.end + int(steps.sum()) * ROOM_STEP)
        return steps

    def give_back(self, subscriptions: Rows, slots: Slots) -> None:
        """Free the spans of subscriptions with empty buffers."""
        kernels.give_back(subscriptions, self.holdings, self._free, slots)

    def free_count(self) -> int:
        """Count the holdings in free spans. O(spans)."""
        total = 0
        for step, head in enumerate(self._free.tolist()):
            place = head
            while place != NO_HOLDING:
                total += step * ROOM_STEP
                place = int(self.holdings["next"][place])
        return total

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        return self.holdings.nbytes + self._free.nbytes
