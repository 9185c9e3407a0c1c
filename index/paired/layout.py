"""Row layouts of the tables of a pair of indexes."""

import numpy as np

from index.tables.clauses import CLAUSE_FIELDS
from index.tables.live_objects import LIVE_OBJECT_FIELDS

CLAUSE_DTYPE = np.dtype(CLAUSE_FIELDS, align=True)

OBJECT_DTYPE = np.dtype(LIVE_OBJECT_FIELDS, align=True)
