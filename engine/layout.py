"""Define the rows of objects, and of the areas of objects that have one."""

from __future__ import annotations

import numpy as np

NO_WINDOW = 0
"""The number that stands for no window: every live object counts."""

NO_HOLDING = -1
"""The end of a chain of holdings."""

OBJECT_DTYPE = np.dtype(
    [
        ("id", np.int64),
        ("x_m", np.float64),
        ("y_m", np.float64),
        ("norm2_0", np.float64),  # sum of the keywords' squared weights, by slot of the weights
        ("norm2_1", np.float64),
        ("created_ms", np.int64),
        ("expiry_ms", np.int64),
        ("keyword_start", np.int64),  # first keyword id in the pool
        ("keyword_count", np.int32),
        ("first_holding", np.int32),  # chain of the top-k buffers that hold it: their result index
    ],
    align=True,
)

POINT = 0
"""In place of an area: the object is a point."""

AREA_DTYPE = np.dtype(
    [
        ("id", np.int64),  # id of the object
        ("x1_m", np.float64),  # the rectangle, or the box about the polygon
        ("y1_m", np.float64),
        ("x2_m", np.float64),
        ("y2_m", np.float64),
        ("keyword_start", np.int64),  # the object's keywords, because the table requires some
        ("keyword_count", np.int32),
        ("ring_start", np.int32),  # in the pool
        ("ring_count", np.int32),  # 1 for a polygon, 0 for a rectangle
    ],
    align=True,
)
