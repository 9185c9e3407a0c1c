"""Rows of the SQ+-tree, and the numbers that stand for nothing."""

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
Singles = npt.NDArray[np.float32]

NOTHING = -1
"""Ends chains; no child, no cell."""

TRIE_ROOT = 0

COMBINED_MAX = 5
"""Subscriptions of so many keywords have an entry for each combination of them (31 of five).

Those of more have one for each keyword, and what is found through these is verified."""

SMALL_MAX = 16
"""Entries of a group without cells: a scan of so few costs less than one look at a cell."""
LEAF_MAX = 32
"""Entries of a leaf before it splits."""
DEPTH_MAX = 24
CHILDREN = 4

CLASS_OFFSETS = (0, 1, 2, 3, 4, 5, 6, 8, 10, 14, 20, 30)
"""Thresholds are kept for objects that have so many keywords beyond the combination, or more up to the
next: text distance grows with them."""
CLASSES = len(CLASS_OFFSETS)

ROOMS_MAX = 32
"""Sizes of stretches: powers of two up to this one."""

SUBSCRIPTION_DTYPE = np.dtype(
    [
        ("id", np.int64),
        ("x_m", np.float64),
        ("y_m", np.float64),
        ("radius_m", np.float64),  # of the region about that point; 0 for an anchor
        ("reach_m", np.float64),
        ("reach_id", np.int64),
        ("weight_m", np.float64),  # metres per text distance
        ("keyword_start", np.int64),  # first keyword id in the pool
        ("keyword_count", np.int32),
        ("place_start", np.int32),  # where its entries are, one place a combination
        ("similarity", np.int8),
    ],
    align=True,
)

NODE_DTYPE = np.dtype(
    [
        ("parent", np.int32),  # the next free node in the free chain
        ("keyword", np.int32),
        ("child_count", np.int32),
        ("first_group", np.int32),
    ],
    align=True,
)
"""A keyword combination, as a path of a trie: keywords in increasing order."""

GROUP_DTYPE = np.dtype(
    [
        ("node", np.int32),
        ("next", np.int32),  # group of the same combination; the next free one
        ("cell", np.int32),  # root of its quadtree; NOTHING while it is small
        ("start", np.int32),  # first entry, while it is small
        ("count", np.int32),  # entries, in cells or not
        ("size", np.int16),  # keywords of its subscriptions
        ("common", np.int16),  # keywords of the combination
        ("room", np.int8),  # binary logarithm of the stretch, while it is small
        ("similarity", np.int8),
    ],
    align=True,
)
"""The subscriptions with a combination that have equally many keywords and the same similarity: for these
the text distance of an object follows from the number of its keywords."""

CELL_DTYPE = np.dtype(
    [
        ("x_m", np.float64),  # centre
        ("y_m", np.float64),
        ("half_m", np.float64),  # half a side
        ("parent", np.int32),  # the next free four in the free chain
        ("first_child", np.int32),  # of four consecutive cells; NOTHING in a leaf
        ("group", np.int32),
        ("start", np.int32),  # first entry of a leaf
        ("count", np.int32),  # entries of a leaf
        ("room", np.int8),
        ("depth", np.int8),
    ],
    align=True,
)

ENTRY_DTYPE = np.dtype(
    [
        ("x_m", np.float32),
        ("y_m", np.float32),
        ("reach_m", np.float32),  # reach + radius
        ("weight_m", np.float32),
        ("slot", np.int32),  # of the subscription; of the next free stretch
        ("owner", np.int32),  # cell, or -2 - group while that is small
        ("place", np.int32),  # which of the subscription's places points here
    ],
    align=True,
)

# Named positions of `meta`.
NODE_END = 0  # every row from here on is unused
FREE_NODE = 1
NODE_COUNT = 2
GROUP_END = 3
FREE_GROUP = 4
CELL_END = 5
FREE_CELLS = 6
ENTRY_END = 7
ROOM_MAX = 8  # binary logarithm of the largest stretch so far
DONE_ROWS = 9  # how far a kernel came that stopped for want of room
DONE_PLACES = 10
META_SIZE = 11


class Forest(NamedTuple):
    """All arrays of an SQ+-tree, as kernels take them."""

    subscriptions: Rows
    pool: KeywordIds
    places: Slots
    node_keys: Ints
    node_values: Values
    nodes: Rows
    groups: Rows
    cells: Rows
    threshold_m: Singles
    """How far from a cell an object of each class may lie to matter to any of its entries."""
    entries: Rows
    free_stretches: Slots
    distances: Floats
    """Text distance by similarity, size, common keywords, class; common 0 for those to be verified."""
    root: Floats
    """Square of every quadtree: centre and half a side."""
    meta: Ints
