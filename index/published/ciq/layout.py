"""Row layouts and sentinels of CIQ."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from index.batches import Floats, Ints, KeywordIds
from index.tables.id_map_kernels import Values
from index.tables.quad_kernels import QUAD_FIELDS
from index.tables.run_kernels import Runs
from index.tables.subscriptions import SUBSCRIPTION_FIELDS

Rows = npt.NDArray[Any]
Row = Any
"""One row of a table, by reference."""
Slots = npt.NDArray[np.int32]
Singles = npt.NDArray[np.float32]

ROOT = 0
CHILDREN = 4
NO_LIST = -1
NO_CELL = -1

SUBSCRIPTION_DTYPE = np.dtype(
    [
        *SUBSCRIPTION_FIELDS,
        ("cell", np.int32),  # the smallest cell that contains it; NO_CELL before its insertion
    ],
    align=True,
)

CELL_DTYPE = np.dtype(QUAD_FIELDS, align=True)

LIST_DTYPE = np.dtype(
    [
        ("key", np.int64),  # cell and keyword
        ("start", np.int32),  # of its run; in a free row: the next free one
        ("count", np.int32),
        ("size_class", np.int8),
    ],
    align=True,
)

POSTING_DTYPE = np.dtype(
    [
        ("slot", np.int32),  # of the subscription; the order of lists is increasing by slot
        ("weight", np.float32),  # of the keyword in the subscription's vector, rounded up
    ],
)

# Named positions of `meta`; the first three belong to `index.tables.quad_kernels`.
LIST_END = 3  # every row from here on is unused
FREE_LIST = 4
LIST_COUNT = 5
DONE_ROWS = 6  # progress of a kernel that stopped for lack of space
DONE_STEPS = 7
LISTS_WANTED = 8
KEYS_WANTED = 9
POSTINGS_WANTED = 10
META_SIZE = 11


class Cover(NamedTuple):
    """All arrays of a CIQ index, as kernels take them."""

    subscriptions: Rows
    pool: KeywordIds
    squares: Floats
    uses: Slots
    cells: Rows
    bounds: Singles
    """MinT: by slot, then level and quarter. The quarter of the subscription itself counts on the last
    level only."""
    lists: Rows
    list_keys: Ints
    list_values: Values
    postings: Runs
    meta: Ints
    levels: int
