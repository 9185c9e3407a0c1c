"""Stretches of holdings, in sizes of whole steps; free ones are chained by size."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from safe_region.jit import kernel
from server.engine.layout import NO_HOLDING, Rows

Slots = npt.NDArray[np.int32]

ROOM_STEP = 4
"""Sizes are multiples of this, so that stretches given back fit others."""


@kernel
def take(subscriptions: Rows, holdings: Rows, free: Slots, slots: Slots, steps: Slots, end: int) -> int:
    """Give each subscription a stretch, a free one of its size or a new one; return the new end."""
    for i in range(slots.shape[0]):
        start = free[steps[i]]
        if start == NO_HOLDING:
            start = end
            end += steps[i] * ROOM_STEP
        else:
            free[steps[i]] = holdings[start]["next"]
        subscriptions[slots[i]]["buffer_start"] = start
        subscriptions[slots[i]]["buffer_count"] = 0
        subscriptions[slots[i]]["buffer_room"] = steps[i] * ROOM_STEP
    return end


@kernel
def free_stretches(holdings: Rows, free: Slots, starts: Slots, rooms: Slots) -> None:
    """Chain stretches as free."""
    for i in range(starts.shape[0]):
        step = rooms[i] // ROOM_STEP
        holdings[starts[i]]["next"] = free[step]
        free[step] = starts[i]
