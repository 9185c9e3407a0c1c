"""Row layouts of the naive indexes."""

import numpy as np

from index.tables.clauses import CLAUSE_FIELDS

OBJECT_DTYPE = np.dtype(
    [
        ("id", np.int64),
        ("x_m", np.float64),
        ("y_m", np.float64),
        ("norm2", np.float64),  # sum of the keywords' squared weights
        ("keyword_start", np.int64),  # first keyword id in the pool
        ("keyword_count", np.int32),
    ],
    align=True,
)

SUBSCRIPTION_DTYPE = np.dtype(
    [
        ("id", np.int64),
        ("x_m", np.float64),  # anchor, or centre of the region
        ("y_m", np.float64),
        ("radius_m", np.float64),  # of the region about it; 0 for an anchor
        ("reach_m", np.float64),
        ("reach_id", np.int64),
        ("weight_m", np.float64),  # metres per text distance
        ("norm2", np.float64),  # sum of the keywords' squared weights
        ("keyword_start", np.int64),  # first keyword id in the pool
        ("keyword_count", np.int32),
        ("similarity", np.int8),
    ],
    align=True,
)

CLAUSE_DTYPE = np.dtype(CLAUSE_FIELDS, align=True)
