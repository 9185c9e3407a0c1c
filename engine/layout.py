"""Rows of objects, and of the areas of those that have one."""

from __future__ import annotations

import numpy as np

NO_WINDOW = 0
"""The number of no window: what is alive counts."""

NO_HOLDING = -1
"""Ends a chain of holdings."""

OBJECT_DTYPE = np.dtype(
    [
        ("id", np.int64),
        ("x_m", np.float64),
        ("y_m", np.float64),
        ("norm2_0", np.float64),  # sum of the keywords' squared weights, by slot of these
        ("norm2_1", np.float64),
        ("created_ms", np.int64),
        ("expiry_ms", np.int64),
        ("keyword_start", np.int64),  # first keyword id in the pool
        ("keyword_count", np.int32),
        ("first_holding", np.int32),  # chain of the top-k buffers that hold it: their result index
        ("first_stationary", np.int32),  # the same of stationary subscriptions
    ],
    align=True,
)

POINT = 0
"""In place of an area: the object is a point."""

AREA_DTYPE = np.dtype(
    [
        ("id", np.int64),  # that of the object
        ("x1_m", np.float64),  # the rectangle, or the box about the polygon
        ("y1_m", np.float64),
        ("x2_m", np.float64),
        ("y2_m", np.float64),
        ("keyword_start", np.int64),  # keywords, as the table wants some: the object's
        ("keyword_count", np.int32),
        ("ring_start", np.int32),  # in the pool
        ("ring_count", np.int32),  # 1 of a polygon, 0 of a rectangle
    ],
    align=True,
)
