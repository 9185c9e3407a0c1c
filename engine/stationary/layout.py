"""Rows of stationary subscriptions, and entries of their buffers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[Any]
Row = Any
"""One row of a table, by reference."""
Slots = npt.NDArray[np.int32]

NOTHING = -1
"""Ends a chain of entries."""
NOBODY = np.iinfo(np.int64).max
"""Greater than every object's id."""

ROOM_STEP = 8
"""Stretches of entries have multiples of this, so that those given back fit others."""

SUBSCRIPTION_DTYPE = np.dtype(
    [
        ("id", np.int64),  # the caller's handle
        ("x_m", np.float64),  # where it stands
        ("y_m", np.float64),
        ("reach_m", np.float64),  # theta: everything below it is in the buffer, or dominated
        ("reach_id", np.int64),
        ("weight_m", np.float64),  # metres per text distance
        ("scale_m", np.float64),  # metres by which its scores measure distance: for the policy skyband
        ("keyword_start", np.int64),  # first keyword id in the pool
        ("oldest_left_out", np.int64),  # least id below the reach that is not held; NOBODY if all are
        ("cost", np.float32),  # of a retrieval, in entries looked at, a running mean; NaN while unknown
        ("entry_start", np.int32),  # first entry
        ("entry_count", np.int32),  # entries in use
        ("entry_room", np.int32),  # entries set aside; 0 while parked
        ("keyword_count", np.int32),
        ("k", np.int16),
        ("window", np.int16),  # number of its window
        ("similarity", np.int8),
        ("index", np.int8),  # number of the subscription index that it is in, hence of its weights
        ("is_awake", np.int8),
    ],
    align=True,
)

ENTRY_DTYPE = np.dtype(
    [
        ("length_m", np.float64),
        ("object_id", np.int64),
        ("expiry_ms", np.int64),
        ("object", np.int32),  # slot of the object
        ("owner", np.int32),  # slot of the subscription
        ("next", np.int32),  # chain of the same object; of free room in a free stretch
        ("previous", np.int32),
        ("dominators", np.int16),  # how many in the buffer are better and outlive it
        ("is_result", np.int8),  # whether it is among the k best, which the device holds
    ],
    align=True,
)
"""An object in the buffer of a subscription."""
