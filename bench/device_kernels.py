"""Devices in a benchmark: the test (*) of `safe_region.anchored`, for all of them at once.

What the engine says a device holds is what the device holds, so the engine's own arrays are read.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from index.batches import Floats
from index.tables.selection_kernels import offer
from safe_region.jit import kernel
from safe_region.scoring_kernels import length
from server.engine.layout import Rows

_STRICT = 1.0 - 1e-12  # safe_region.anchored.REACH_SLACK


@kernel
def must_report(
    objects: Rows,
    subscriptions: Rows,
    holdings: Rows,
    slots: npt.NDArray[np.int32],
    x_m: Floats,
    y_m: Floats,
    is_leaving: npt.NDArray[np.bool_],
    k_max: int,
) -> None:
    """Say which devices are where their region does not cover them."""
    lengths = np.empty(k_max)
    ids = np.empty(k_max, dtype=np.int64)
    shares = np.empty(k_max)
    for i in range(slots.shape[0]):
        row = subscriptions[slots[i]]
        is_leaving[i] = False
        if math.isinf(row["reach_m"]):
            continue
        k = row["k"]
        if row["buffer_count"] < k:
            is_leaving[i] = True
            continue
        size = 0
        start = row["buffer_start"]
        for place in range(start, start + row["buffer_count"]):
            item = objects[holdings[place]["object"]]
            here = length(x_m[i] - item["x_m"], y_m[i] - item["y_m"], holdings[place]["r_m"])
            size = offer(lengths[:k], ids[:k], shares[:k], size, here, item["id"], 0.0)
        moved = length(x_m[i] - row["x_m"], y_m[i] - row["y_m"], 0.0)
        worst = lengths[0]
        is_leaving[i] = not (moved == 0.0 or worst + moved < row["reach_m"] * _STRICT)
