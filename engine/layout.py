"""Rows of objects."""

from __future__ import annotations

import numpy as np

NO_HOLDING = -1
"""Ends a chain of holdings."""

OBJECT_DTYPE = np.dtype(
    [
        ("id", np.int64),
        ("x_m", np.float64),
        ("y_m", np.float64),
        ("expiry_ms", np.int64),
        ("keyword_start", np.int64),  # first keyword id in the pool
        ("keyword_count", np.int32),
        ("first_holding", np.int32),  # chain of the top-k buffers that hold it: their result index
    ],
    align=True,
)
