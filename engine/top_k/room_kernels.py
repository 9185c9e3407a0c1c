"""Allocate spans of holdings, in sizes of whole steps; free ones are chained by size."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.top_k.chain_kernels import move_holding
from engine.top_k.layout import Rows
from index.batches import Ints
from index.tables.free_kernels import give_back_rows, take_rows
from safe_region.jit import kernel, leaf

Slots = npt.NDArray[np.int32]

ROOM_STEP = 4
"""Sizes are multiples of this, so that freed spans fit other buffers."""


@leaf
def _take_room(holdings: Rows, free: Slots, ends: Ints, step: int) -> int:
    return take_rows(holdings["next"], free, step, ends, 0, step * ROOM_STEP)


@leaf
def _give_back_room(holdings: Rows, free: Slots, start: int, room: int) -> None:
    give_back_rows(holdings["next"], free, room // ROOM_STEP, start)


@kernel
def take(
    subscriptions: Rows, holdings: Rows, free: Slots, slots: Slots, steps: Slots, ends: Ints
) -> None:
    """Allocate a span for each subscription, a free one of its size or a new one."""
    for i in range(slots.shape[0]):
        subscriptions[slots[i]]["buffer_start"] = _take_room(holdings, free, ends, int(steps[i]))
        subscriptions[slots[i]]["buffer_count"] = 0
        subscriptions[slots[i]]["buffer_room"] = steps[i] * ROOM_STEP


@kernel
def give_back(subscriptions: Rows, holdings: Rows, free: Slots, slots: Slots) -> None:
    """Chain the spans of these subscriptions as free."""
    for i in range(slots.shape[0]):
        row = subscriptions[slots[i]]
        _give_back_room(holdings, free, int(row["buffer_start"]), int(row["buffer_room"]))
        subscriptions[slots[i]]["buffer_room"] = 0


@kernel
def relocate(
    objects: Rows,
    subscriptions: Rows,
    holdings: Rows,
    free: Slots,
    slots: Slots,
    steps: Slots,
    ends: Ints,
) -> None:
    """Move buffers to spans of other sizes."""
    for i in range(slots.shape[0]):
        row = subscriptions[slots[i]]
        before = int(row["buffer_start"])
        start = _take_room(holdings, free, ends, int(steps[i]))
        for j in range(row["buffer_count"]):
            move_holding(objects, holdings, before + j, start + j)
        _give_back_room(holdings, free, before, int(row["buffer_room"]))
        row["buffer_start"] = start
        row["buffer_room"] = steps[i] * ROOM_STEP
