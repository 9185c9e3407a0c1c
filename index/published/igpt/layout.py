"""Row layouts and sentinels of IGPT."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from index.batches import Floats, Ints, KeywordIds
from index.tables.id_map_kernels import Values
from index.tables.quad_kernels import QUAD_FIELDS
from index.tables.subscriptions import SUBSCRIPTION_FIELDS
from index.tables.vector_kernels import Vector

Rows = npt.NDArray[Any]
Row = Any
"""One row of a table, by reference."""
Slots = npt.NDArray[np.int32]

NOTHING = -1
"""The end of a chain; no list, no cell."""
ROOT = 0
CHILDREN = 4
DEPTH_MAX = 20
"""A cell at this depth is not divided: thousands of subscriptions may lie at one point."""
ROOMS_MAX = 32
"""Sizes of spans of entries: powers of two up to this one."""

SUBSCRIPTION_DTYPE = np.dtype(
    [
        *SUBSCRIPTION_FIELDS,
        ("cell", np.int32),  # the leaf with its entries; NOTHING while it is pending
        ("next", np.int32),  # chain of the leaf's subscriptions
        ("previous", np.int32),
    ],
    align=True,
)

CELL_DTYPE = np.dtype(
    [
        *QUAD_FIELDS,
        ("reach_m", np.float64),  # largest reach + radius in the cell, minus infinity if it is empty
        ("first", np.int32),  # of a leaf: chain of its subscriptions
        ("count", np.int32),  # of a leaf: their number
        ("top_count", np.int32),  # of a leaf: number of those with the largest reach
    ],
    align=True,
)

GROUP_DTYPE = np.dtype(
    [
        ("key", np.int64),  # of its list: cell and keyword
        ("next", np.int32),  # group of the list; in a free row: the next free one
        ("start", np.int32),  # first entry
        ("count", np.int32),
        ("list_count", np.int32),  # in the first group: entries in the alpha groups of the list
        ("planned_count", np.int32),  # in the first group: the same, when it was partitioned
        ("kscore", np.float32),  # kScore*(G), the least
        ("alpha", np.float32),  # G.alpha*, the largest
        ("weight", np.float32),  # the largest maxwt
        ("border", np.float32),  # largest alpha* that belongs here; infinite in the last alpha group
        ("room", np.int8),  # binary logarithm of the span at `start`
        ("is_apart", np.int8),  # of the subscriptions whose text does not count, see `bound_kernels`
    ],
    align=True,
)
"""An alpha group of a posting list. The groups of a list are a chain, alpha groups by their borders."""

ENTRY_DTYPE = np.dtype(
    [
        ("slot", np.int32),  # of the subscription
        ("place", np.int32),  # of the keyword in the subscription's order, from 0
        ("kscore", np.float32),  # kScore*, rounded down
        ("alpha", np.float32),  # alpha*; this and the following, except the distance, are rounded up
        ("inner_m", np.float32),  # distance to the border of the cell, rounded down
        ("weight", np.float32),  # of the keyword in the subscription's vector; so its maxwt
        ("next_weight", np.float32),  # of the next keyword, 0 if there is none
        ("rest", np.float32),  # wtsum of the next keyword
        ("later_alpha", np.float32),  # the largest alpha* from here to the end of the group
        ("later_weight", np.float32),  # the largest weight
    ],
)
"""A subscription in a group, in increasing order of (kScore*, slot)."""

MARK_DTYPE = np.dtype(
    [
        ("stamp", np.int64),  # number of the object for which the other fields are valid
        ("similarity", np.float64),  # sum over its keywords so far, if no shared one is missing
        ("place", np.int32),  # last visited keyword of the subscription
        ("number", np.int32),  # last keyword of the object's
        ("state", np.int8),
    ],
    align=True,
)
"""R of algorithm 1: the state of an object and a subscription, by slot."""

OPEN = 0
"""A candidate: no shared keyword up to the last was skipped."""
GAPPED = 1
"""A candidate, some of whose shared keywords may have been skipped."""
SKIPPED = 2
"""Excluded."""

# Named positions of `meta`; the first three belong to `index.tables.quad_kernels`.
ROW_END = 3  # every group from here on is unused
FREE_ROW = 4
LIST_COUNT = 5
ENTRY_END = 6
STACK_SIZE = 7  # subscriptions that are pending
DONE_STEPS = 8  # keywords of the one on top that are done
STAMP = 9
CELLS_WANTED = 10
ROWS_WANTED = 11
KEYS_WANTED = 12
ENTRIES_WANTED = 13
META_SIZE = 14


class Settings(NamedTuple):
    """The constant settings of an index."""

    distance_m: float  # MaxDist
    capacity: int
    group_max: int  # alpha groups of a list
    is_grouped: bool  # whether groups and cells are skipped: IGPT
    is_near: bool  # whether distances are measured from the object, see `bound_kernels`


class Tree(NamedTuple):
    """All arrays of an index, as kernels take them."""

    subscriptions: Rows
    pool: KeywordIds
    squares: Floats
    uses: Slots
    cells: Rows
    groups: Rows
    list_keys: Ints
    list_values: Values
    """The first group of each list."""
    entries: Rows
    free_entries: Slots
    stack: Slots
    marks: Rows
    vector: Vector
    """Scratch: the keywords of a subscription."""
    order: Slots
    """Scratch, as long as the longest list may be."""
    meta: Ints
    settings: Settings
