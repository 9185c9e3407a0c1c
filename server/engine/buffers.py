"""Room for buffers: stretches of holdings, given back by size.

Operations: take and give back O(1) a stretch, fit O(its holdings); growth by doubling.
"""

from __future__ import annotations

import numpy as np

from server.engine import room_kernels as kernels
from server.engine.buffer_kernels import carry_over
from server.engine.layout import HOLDING_DTYPE, NO_HOLDING, Rows
from server.engine.room_kernels import ROOM_STEP, Slots

_HOLDINGS_MIN = 64


class Buffers:
    """The holdings of all subscriptions."""

    def __init__(self) -> None:
        self.holdings: Rows = np.zeros(_HOLDINGS_MIN, dtype=HOLDING_DTYPE)
        self.end = 0
        """Every holding from here on is unused."""
        self._free: Slots = np.full(16, NO_HOLDING, dtype=np.int32)  # first free stretch by size

    def take(self, subscriptions: Rows, slots: Slots, rooms: Slots) -> None:
        """Give subscriptions that have none room for at least so many holdings each."""
        if not len(slots):
            return
        steps = -(-rooms // ROOM_STEP)
        if int(steps.max()) >= len(self._free):
            self._free = np.concatenate(
                [self._free, np.full(int(steps.max()) + 1, NO_HOLDING, dtype=np.int32)]
            )
        needed = self.end + int(steps.sum()) * ROOM_STEP
        if needed > len(self.holdings):
            grown = np.zeros(max(needed, 2 * len(self.holdings)), dtype=HOLDING_DTYPE)
            grown[: self.end] = self.holdings[: self.end]
            self.holdings = grown
        self.end = kernels.take(subscriptions, self.holdings, self._free, slots, steps, self.end)

    def fit(self, objects: Rows, subscriptions: Rows, slots: Slots, rooms: Slots) -> None:
        """Give buffers that need more room, or less than half of theirs, another stretch."""
        needed = np.maximum(rooms, subscriptions["buffer_count"][slots])
        room = subscriptions["buffer_room"][slots]
        unfit = (room < needed) | (room // 2 > needed + ROOM_STEP)
        if not unfit.any():
            return
        slots = slots[unfit]
        starts = subscriptions["buffer_start"][slots]
        counts = subscriptions["buffer_count"][slots]
        self.take(subscriptions, slots, needed[unfit])
        carry_over(objects, subscriptions, self.holdings, slots, starts, counts)
        kernels.free_stretches(self.holdings, self._free, starts, room[unfit])

    def give_back(self, subscriptions: Rows, slots: Slots) -> None:
        """Take the room of subscriptions whose buffers are empty."""
        starts, rooms = subscriptions["buffer_start"][slots], subscriptions["buffer_room"][slots]
        kernels.free_stretches(self.holdings, self._free, starts, rooms)
        subscriptions["buffer_room"][slots] = 0

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
