"""Define the rows of stationary subscriptions, and the entries of their buffers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[Any]
Row = Any
"""One row of a table, by reference."""
Slots = npt.NDArray[np.int32]

NOTHING = -1
"""The end of a chain of entries."""
NOBODY = np.iinfo(np.int64).max
"""Greater than every object's id."""

ROOM_STEP = 8
"""Sizes of spans of entries are multiples of this, so that freed spans fit other subscriptions."""

SUBSCRIPTION_DTYPE = np.dtype(
    [
        ("id", np.int64),  # the caller's handle
        ("x_m", np.float64),  # its fixed place
        ("y_m", np.float64),
        ("reach_m", np.float64),  # theta: every object below it is in the buffer, or dominated
        ("reach_id", np.int64),
        ("weight_m", np.float64),  # metres per text distance
        ("scale_m", np.float64),  # distance scale of its scores: for the policy skyband
        ("keyword_start", np.int64),  # first keyword id in the pool
        ("oldest_left_out", np.int64),  # least id below the reach that is not held; NOBODY if all are
        ("cost", np.float32),  # of a retrieval, in looks at an entry, a running mean; NaN while unknown
        ("entry_start", np.int32),  # first entry
        ("entry_count", np.int32),  # entries in use
        ("entry_room", np.int32),  # allocated entries; 0 while parked
        ("keyword_count", np.int32),
        ("k", np.int16),
        ("window", np.int16),  # number of its window
        ("similarity", np.int8),
        ("index", np.int8),  # number of its subscription index, hence of its weights
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
        ("next", np.int32),  # chain of the same object; in a free span, of free spans
        ("previous", np.int32),
        ("dominators", np.int16),  # number of better objects in the buffer that outlive it
        ("is_result", np.int8),  # whether it is among the k best, which the device holds
    ],
    align=True,
)
"""An object in the buffer of a subscription."""
