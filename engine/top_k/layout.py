"""Rows of the engine, and the numbers that stand for nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from safe_region.anchored import RegionMode

Rows = npt.NDArray[Any]
Row = Any
"""One row of a table, by reference."""

NO_HOLDING = -1
"""Ends a chain of holdings."""

BY_COST = -1
"""Instead of a fixed b: chosen at each anchor."""

ELLIPSE = int(RegionMode.ELLIPSE)
"""A constant for kernels."""

OBJECT_DTYPE = np.dtype(
    [
        ("id", np.int64),
        ("x_m", np.float64),
        ("y_m", np.float64),
        ("expiry_ms", np.int64),
        ("keyword_start", np.int64),  # first keyword id in the pool
        ("keyword_count", np.int32),
        ("first_holding", np.int32),  # chain of the buffers that hold it: the result index
    ],
    align=True,
)

SUBSCRIPTION_DTYPE = np.dtype(
    [
        ("id", np.int64),  # the caller's handle
        ("x_m", np.float64),  # anchor
        ("y_m", np.float64),
        ("reach_m", np.float64),
        ("reach_id", np.int64),
        ("weight_m", np.float64),  # metres per text distance
        ("anchored_ms", np.int64),
        ("keyword_start", np.int64),  # first keyword id in the pool
        ("speed_mps", np.float32),  # NaN while unknown
        ("arrivals", np.float32),  # objects let in, older ones counted less
        ("held_s", np.float32),  # objects held times seconds, likewise
        ("ample_m", np.float32),  # as many as are looked for lay within it of the anchor; maybe infinite
        ("buffer_start", np.int32),  # first holding
        ("buffer_count", np.int32),  # holdings in use
        ("buffer_room", np.int32),  # holdings set aside; 0 while parked
        ("keyword_count", np.int32),
        ("pending_count", np.int32),  # objects that wait for the device's position (ELLIPSE)
        ("k", np.int16),
        ("extra", np.int16),  # b: how many objects beyond k the device is given
        ("base_extra", np.int16),  # what b is without a margin, or BY_COST
        ("similarity", np.int8),
        ("region", np.int8),
        ("is_awake", np.int8),
    ],
    align=True,
)

HOLDING_DTYPE = np.dtype(
    [
        ("r_m", np.float64),  # text share of the object for the subscription
        ("object", np.int32),  # slot of the object
        ("owner", np.int32),  # slot of the subscription
        ("next", np.int32),  # chain of the same object; of free room in a free stretch
        ("previous", np.int32),
    ],
    align=True,
)

CHANGE_DTYPE = np.dtype(
    [
        ("handle", np.int64),
        ("object_id", np.int64),
        ("r_m", np.float64),  # of what is added
        ("is_drop", np.int8),
    ],
    align=True,
)
"""One object that enters or leaves one buffer."""
