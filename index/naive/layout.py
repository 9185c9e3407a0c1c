"""Row layouts of the naive indexes."""

import numpy as np

OBJECT_DTYPE = np.dtype(
    [
        ("id", np.int64),
        ("x_m", np.float64),
        ("y_m", np.float64),
        ("keyword_start", np.int64),  # first keyword id in the pool
        ("keyword_count", np.int32),
    ],
    align=True,
)

SUBSCRIPTION_DTYPE = np.dtype(
    [
        ("id", np.int64),
        ("x_m", np.float64),  # anchor
        ("y_m", np.float64),
        ("reach_m", np.float64),
        ("reach_id", np.int64),
        ("weight_m", np.float64),  # metres per text distance
        ("keyword_start", np.int64),  # first keyword id in the pool
        ("keyword_count", np.int32),
        ("similarity", np.int8),
    ],
    align=True,
)
