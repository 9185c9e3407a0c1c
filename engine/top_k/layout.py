"""Rows of top-k subscriptions and of what they hold, and the numbers that stand for nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.contracts import Rows
from engine.layout import NO_HOLDING
from safe_region.region import RegionMode
from safe_region.scoring import Similarity

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
"""Instead of a fixed b: chosen at each anchor."""

NO_PENDING = -1
"""Ends a chain of objects that wait."""

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
        ("arrivals", np.float32),  # objects let in, older ones counted less
        ("held_s", np.float32),  # objects held times seconds, likewise
        ("ample_m", np.float32),  # as many as are looked for lay within it of the anchor; maybe infinite
        ("buffer_start", np.int32),  # first holding
        ("buffer_count", np.int32),  # holdings in use
        ("buffer_room", np.int32),  # holdings set aside; 0 while parked
        ("keyword_count", np.int32),
        ("first_pending", np.int32),  # chain of objects that wait for the device's position (ELLIPSE)
        ("k", np.int16),
        ("window", np.int16),  # number of its window
        ("extra", np.int16),  # b: how many objects beyond k the device is given
        ("base_extra", np.int16),  # what b is without a margin, or BY_COST
        ("similarity", np.int8),
        ("region", np.int8),
        ("is_awake", np.int8),
        ("is_pruned", np.int8),  # whether something below the reach is not held, since k beat it
        ("index", np.int8),  # number of the subscription index that it is in, hence of its weights
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

PENDING_DTYPE = np.dtype(
    [
        ("object_id", np.int64),  # maybe of an object that is gone meanwhile
        ("next", np.int32),  # chain of the same subscription; of free pairs
    ],
    align=True,
)
"""One object that waits for the position of one device."""
