"""Devices in a benchmark: the test (*) of `safe_region.regions.anchored`, for all of them at once.

The devices hold the objects that the engine has for them, so the engine's own arrays are read.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from engine.top_k.choice_kernels import STRICT
from engine.top_k.layout import Rows
from index.batches import Floats, Ints
from index.tables.selection_kernels import offer
from safe_region.jit import kernel
from safe_region.scoring.kernels import length

AT_ANCHOR_M = 1e-9
"""What a device at its anchor has left at least: it need not report, however far its objects are."""

NOBODY = -1
"""Id in place of an object if there is none."""


@kernel
def spares(
    objects: Rows,
    subscriptions: Rows,
    holdings: Rows,
    slots: npt.NDArray[np.int32],
    x_m: Floats,
    y_m: Floats,
    spares_m: Floats,
    k_max: int,
) -> None:
    """Write what each device has left of its test; its region covers the positions above 0."""
    lengths = np.empty(k_max)
    ids = np.empty(k_max, dtype=np.int64)
    shares = np.empty(k_max)
    for i in range(slots.shape[0]):
        row = subscriptions[slots[i]]
        spares_m[i] = math.inf
        if math.isinf(row["reach_m"]):
            continue
        k = row["k"]
        if row["buffer_count"] < k:
            spares_m[i] = 0.0
            continue
        size = 0
        start = row["buffer_start"]
        for place in range(start, start + row["buffer_count"]):
            item = objects[holdings[place]["object"]]
            here = length(x_m[i] - item["x_m"], y_m[i] - item["y_m"], holdings[place]["r_m"])
            size = offer(lengths[:k], ids[:k], shares[:k], size, here, item["id"], 0.0)
        moved = length(x_m[i] - row["x_m"], y_m[i] - row["y_m"], 0.0)
        spares_m[i] = row["reach_m"] * STRICT - (lengths[0] + moved)
        if moved == 0.0:
            spares_m[i] = max(spares_m[i], AT_ANCHOR_M)


@kernel
def best_held(
    objects: Rows,
    subscriptions: Rows,
    holdings: Rows,
    slots: npt.NDArray[np.int32],
    x_m: Floats,
    y_m: Floats,
    starts: Ints,
    best: Ints,
) -> None:
    """Write the ids of the k best objects that each device holds, increasing.

    Those of device i are in `best[starts[i] : starts[i + 1]]`, which has capacity for k; if there are
    fewer, the rest is NOBODY and comes first.
    """
    room = 0
    for i in range(slots.shape[0]):
        room = max(room, starts[i + 1] - starts[i])
    lengths = np.empty(room)
    shares = np.empty(room)
    for i in range(slots.shape[0]):
        row = subscriptions[slots[i]]
        ids = best[starts[i] : starts[i + 1]]
        k = ids.shape[0]
        size = 0
        first = row["buffer_start"]
        for place in range(first, first + row["buffer_count"]):
            item = objects[holdings[place]["object"]]
            here = length(x_m[i] - item["x_m"], y_m[i] - item["y_m"], holdings[place]["r_m"])
            size = offer(lengths[:k], ids, shares[:k], size, here, item["id"], 0.0)
        ids[size:] = NOBODY
        ids.sort()


@kernel
def compare_sets(
    starts: Ints, before: Ints, after: Ints, entered: npt.NDArray[np.int32], left: npt.NDArray[np.int32]
) -> None:
    """Count the objects that entered and left each set; both are as `best_held` writes them."""
    for i in range(starts.shape[0] - 1):
        here, there = starts[i], starts[i]
        end = starts[i + 1]
        entered[i] = 0
        left[i] = 0
        while here < end or there < end:
            if there == end or (here < end and before[here] < after[there]):
                left[i] += before[here] != NOBODY
                here += 1
            elif here == end or after[there] < before[here]:
                entered[i] += after[there] != NOBODY
                there += 1
            else:
                here += 1
                there += 1
