"""Stretches of holdings, in sizes of whole steps; free ones are chained by size."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.top_k.chain_kernels import move_holding
from engine.top_k.layout import NO_HOLDING, Rows
from safe_region.jit import kernel, leaf

Slots = npt.NDArray[np.int32]

ROOM_STEP = 4
"""Sizes are multiples of this, so that stretches given back fit others."""


@leaf
def _take_stretch(holdings: Rows, free: Slots, step: int, end: int) -> tuple[int, int]:
    """Return the start of a stretch, and the end of what is used."""
    start = int(free[step])
    if start == NO_HOLDING:
        return end, end + step * ROOM_STEP
    free[step] = holdings[start]["next"]
    return start, end


@leaf
def _release_stretch(holdings: Rows, free: Slots, start: int, room: int) -> None:
    holdings[start]["next"] = free[room // ROOM_STEP]
    free[room // ROOM_STEP] = start


@kernel
def take(subscriptions: Rows, holdings: Rows, free: Slots, slots: Slots, steps: Slots, end: int) -> int:
    """Give each subscription a stretch, a free one of its size or a new one; return the new end."""
    for i in range(slots.shape[0]):
        start, end = _take_stretch(holdings, free, int(steps[i]), end)
        subscriptions[slots[i]]["buffer_start"] = start
        subscriptions[slots[i]]["buffer_count"] = 0
        subscriptions[slots[i]]["buffer_room"] = steps[i] * ROOM_STEP
    return end


@kernel
def give_back(subscriptions: Rows, holdings: Rows, free: Slots, slots: Slots) -> None:
    """Chain the stretches of these subscriptions as free."""
    for i in range(slots.shape[0]):
        row = subscriptions[slots[i]]
        _release_stretch(holdings, free, int(row["buffer_start"]), int(row["buffer_room"]))
        subscriptions[slots[i]]["buffer_room"] = 0


@kernel
def relocate(
    objects: Rows,
    subscriptions: Rows,
    holdings: Rows,
    free: Slots,
    slots: Slots,
    steps: Slots,
    end: int,
) -> int:
    """Move buffers to stretches of other sizes; return the new end."""
    for i in range(slots.shape[0]):
        row = subscriptions[slots[i]]
        before = int(row["buffer_start"])
        start, end = _take_stretch(holdings, free, int(steps[i]), end)
        for j in range(row["buffer_count"]):
            move_holding(objects, holdings, before + j, start + j)
        _release_stretch(holdings, free, before, int(row["buffer_room"]))
        row["buffer_start"] = start
        row["buffer_room"] = steps[i] * ROOM_STEP
    return end
