"""Rows of the tables beside a pair of indexes."""

import numpy as np

from index.tables.live_objects import LIVE_OBJECT_FIELDS

CLAUSE_DTYPE = np.dtype(
    [
        ("id", np.int64),
        ("x1_m", np.float64),  # the closed box
        ("y1_m", np.float64),
        ("x2_m", np.float64),
        ("y2_m", np.float64),
        ("keyword_start", np.int64),  # first required keyword id in the pool
        ("keyword_count", np.int32),
    ],
    align=True,
)

OBJECT_DTYPE = np.dtype(LIVE_OBJECT_FIELDS, align=True)
