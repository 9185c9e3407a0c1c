"""Row layouts and sentinels of the SQ-tree."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from index.batches import Floats, Ints, KeywordIds
from index.tables.id_map_kernels import Values

Rows = npt.NDArray[Any]
Row = Any
"""One row of a table, by reference."""
Slots = npt.NDArray[np.int32]

NOTHING = -1
"""The end of a chain; a leaf's first child."""

UNBOUNDED = 0
"""The node of subscriptions of infinite reach, which have no region."""
ROOT = 1

CHILDREN = 4
DEPTH_MAX = 24
"""A node at this depth is a leaf: thousands of subscriptions may lie at one point."""

COMMON_MAX = 16
"""t_max: thresholds are kept for 1 to this many common keywords, the last for all larger numbers."""

SUBSCRIPTION_DTYPE = np.dtype(
    [
        ("id", np.int64),
        ("x_m", np.float64),  # centroid of the region; an anchor
        ("y_m", np.float64),
        ("radius_m", np.float64),  # dist_f: the radius of the region about it
        ("reach_m", np.float64),  # kscore_ub as a length
        ("reach_id", np.int64),
        ("weight_m", np.float64),  # metres per text distance
        ("keyword_start", np.int64),  # first keyword id in the pool
        ("keyword_count", np.int32),
        ("node", np.int32),  # the node that keeps it
        ("next", np.int32),  # chain of S_n
        ("previous", np.int32),
        ("posting_start", np.int32),  # first of `keyword_count` postings
        ("similarity", np.int8),
    ],
    align=True,
)

NODE_DTYPE = np.dtype(
    [
        ("x_m", np.float64),  # centre
        ("y_m", np.float64),
        ("half_m", np.float64),  # half a side
        ("distance_m", np.float64),  # E[dist(n, o)]
        ("common", np.float64),  # E[i_n] before it is cut off at t_max
        ("parent", np.int32),
        ("first_child", np.int32),  # of four consecutive nodes; of the next free four in the free chain
        ("first", np.int32),  # chain of S_n
        ("own_count", np.int32),  # |S_n|
        ("subtree_count", np.int32),  # |S_n^r|
        ("stale_count", np.int32),  # departures since the thresholds of S_n were computed
        ("level", np.int32),  # floor(E[i_n]) when S_n was last distributed
        ("depth", np.int32),
    ],
    align=True,
)

CELL_DTYPE = np.dtype(
    [
        ("share", np.float64),  # the keyword's term in E[i_n]
        ("subtree_count", np.int32),  # number of S_n^r that have the keyword; the next free cell
        ("first", np.int32),  # chain of postings of S_n: the inverted file I_n
    ],
    align=True,
)
"""A keyword at a node."""

POSTING_DTYPE = np.dtype(
    [
        ("slot", np.int32),  # of the subscription
        ("next", np.int32),
        ("previous", np.int32),
        ("cell", np.int32),  # the cell of its chain
    ],
    align=True,
)

# Named positions of `meta`.
NODE_END = 0  # every node from here on is unused
FREE_NODES = 1  # chain of free groups of four
CELL_END = 2
FREE_CELLS = 3
CELL_COUNT = 4
STACK_SIZE = 5  # pending work when a kernel stops for lack of space
META_SIZE = 6


class Tree(NamedTuple):
    """All arrays of an SQ-tree, as kernels take them."""

    subscriptions: Rows
    pool: KeywordIds
    nodes: Rows
    own_m: Floats
    """Lambda_n, shape (nodes, COMMON_MAX + 1); index 0 is unused."""
    subtree_m: Floats
    """Lambda_n^r, likewise."""
    cell_keys: Ints
    cell_values: Values
    cells: Rows
    postings: Rows
    frequency: Floats
    """|O_w| / |O| of each keyword id."""
    stack_slots: Slots
    stack_nodes: Slots
    meta: Ints
    capacity: int
