"""Define the rows of top-k subscriptions and of their holdings, and the numbers that stand for none."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.contracts import Rows
from engine.layout import NO_HOLDING
from safe_region.regions.region import RegionMode
from safe_region.scoring.formulas import Similarity

__all__ = [
    "BY_COST",
    "ELLIPSE",
    "HOLDING_DTYPE",
    "NO_HOLDING",
    "NO_PENDING",
    "PENDING_DTYPE",
    "SUBSCRIPTION_DTYPE",
    "TFIDF",
    "Row",
    "Rows",
]

Row = Any
"""One row of a table, by reference."""

BY_COST = -1
"""In place of a fixed b: it is chosen at each anchor."""

NO_PENDING = -1
"""The end of a chain of pending objects."""

ELLIPSE = int(RegionMode.ELLIPSE)
TFIDF = int(Similarity.TFIDF)
"""Constants for kernels."""

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
        ("arrivals", np.float32),  # inserted objects; older ones count less
        ("held_s", np.float32),  # objects held times seconds, likewise
        ("ample_m", np.float32),  # distance from the anchor with enough objects; may be infinite
        ("buffer_start", np.int32),  # first holding
        ("buffer_count", np.int32),  # holdings in use
        ("buffer_room", np.int32),  # allocated holdings; 0 while parked
        ("keyword_count", np.int32),
        ("first_pending", np.int32),  # chain of pending objects (ELLIPSE)
        ("k", np.int16),
        ("window", np.int16),  # number of its window
        ("extra", np.int16),  # b: number of objects beyond k that the device gets
        ("base_extra", np.int16),  # b without a margin, or BY_COST
        ("similarity", np.int8),
        ("region", np.int8),
        ("is_awake", np.int8),
        ("is_pruned", np.int8),  # whether an object below the reach is not held, as k dominate it
        ("index", np.int8),  # number of its subscription index, hence of its weights
    ],
    align=True,
)

HOLDING_DTYPE = np.dtype(
    [
        ("r_m", np.float64),  # constant part of the object for the subscription
        ("object", np.int32),  # slot of the object
        ("owner", np.int32),  # slot of the subscription
        ("next", np.int32),  # chain of the same object; in a free span, of free spans
        ("previous", np.int32),
    ],
    align=True,
)

PENDING_DTYPE = np.dtype(
    [
        ("object_id", np.int64),  # perhaps of an object that is gone by now
        ("next", np.int32),  # chain of the same subscription; of free pairs
    ],
    align=True,
)
"""One object that waits for the position of one device."""
