"""Row layouts and sentinels of the SQ+-tree."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from index.batches import Floats, Ints, KeywordIds
from index.tables.id_map_kernels import Values
from index.tables.quad_kernels import QUAD_FIELDS

Rows = npt.NDArray[Any]
Row = Any
"""One row of a table, by reference."""
Slots = npt.NDArray[np.int32]
Singles = npt.NDArray[np.float32]

NOTHING = -1
"""The end of a chain; no child, no cell."""

TRIE_ROOT = 0

COMBINED_MAX = 6
"""Subscriptions of up to this many keywords are found by each combination of them (63 of six).

Longer ones are found by each single keyword, and verified."""
VISITS_MAX = (1 << COMBINED_MAX) - 1
"""The number of nodes that an operation on one subscription visits."""

BUCKET_MAX = 8
"""Subscriptions of a combination that are kept as a list and verified one by one."""
SMALL_MAX = 16
"""Entries of a node without cells: scanning this many costs less than one access to a cell."""
LEAF_MAX = 32
"""Entries of a leaf before it splits."""
DEPTH_MAX = 24
CHILDREN = 4

SIZE_MAX = 64
"""Objects of more keywords use the closeness of objects with this many."""
CLASS_OFFSETS = (0, 1, 2, 3, 4, 5, 6, 8, 10, 14, 20, 30)
"""The classes of objects: by the number of keywords beyond the combination, from this one up to the next.
The text distance grows with them."""
CLASSES = len(CLASS_OFFSETS)
CLASS_RATIOS = tuple(1.5**number for number in range(CLASSES))
"""With weights: by the ratio of the object's squares to those of the combination, up to the next."""

SPARE = 0
"""An unused entry that holds one temporarily while others are moved."""

ROOMS_MAX = 32
"""Sizes of runs: powers of two up to this one."""

SUBSCRIPTION_DTYPE = np.dtype(
    [
        ("id", np.int64),
        ("x_m", np.float64),
        ("y_m", np.float64),
        ("radius_m", np.float64),  # of the region about that point; 0 for an anchor
        ("reach_m", np.float64),
        ("reach_id", np.int64),
        ("weight_m", np.float64),  # metres per text distance
        ("norm", np.float64),  # of its keywords, as `text_distance` takes it
        ("keyword_start", np.int64),  # first keyword id in the pool
        ("keyword_count", np.int32),
        ("similarity", np.int8),
    ],
    align=True,
)

NODE_DTYPE = np.dtype(
    [
        ("parent", np.int32),  # the next free node in the free chain
        ("keyword", np.int32),
        ("count", np.int32),  # subscriptions here and below
        ("start", np.int32),  # first member of a bucket; first entry of a node without cells
        ("entry_count", np.int32),
        ("cell", np.int32),  # root of its quadtree; NOTHING while entries are few
        ("room", np.int8),  # binary logarithm of the capacity of the run at `start`
        ("depth", np.int8),  # keywords of the combination
        ("is_bucket", np.int8),
    ],
    align=True,
)
"""A keyword combination, as a path of a trie: keywords in decreasing order.

A node is a *bucket* until it is *opened*. Then it has entries for the subscriptions that may share
exactly this combination with an object of their result, and children for combinations with one keyword
more."""

CELL_DTYPE = np.dtype(
    [
        *QUAD_FIELDS,
        ("node", np.int32),
        ("start", np.int32),  # first entry of a leaf
        ("count", np.int32),  # entries of a leaf
        ("room", np.int32),
    ],
    align=True,
)

ENTRY_DTYPE = np.dtype(
    [
        ("others", np.int64),  # signature of the subscription's keywords outside the combination
        ("x_m", np.float32),
        ("y_m", np.float32),
        ("rest_m", np.float32),  # maximum distance of an object that matters without any text similarity
        ("gain_m", np.float32),  # additional distance, times a factor of the object
        ("bound_m", np.float32),  # maximum distance of any object that matters
        ("kind", np.int16),  # selects the factor of the object
        ("is_loose", np.int8),  # represents all combinations that begin with this keyword
        ("is_vague", np.int8),  # does not decide with certainty whether an object matches
    ],
    align=True,
)

# Named positions of `meta`; the first three belong to `index.tables.quad_kernels`.
NODE_END = 3  # every row from here on is unused
FREE_NODE = 4
NODE_COUNT = 5
MEMBER_END = 6
ENTRY_END = 7
ROOM_MAX = 8  # binary logarithm of the largest run of entries so far
DONE_ROWS = 9  # progress of a kernel that stopped for lack of space
DONE_VISITS = 10
PENDING_COUNT = 11
IS_WEIGHED = 12  # whether keywords have weights: subscriptions are of TFIDF
META_SIZE = 13

PENDING_MAX = 2 * VISITS_MAX + BUCKET_MAX * COMBINED_MAX
"""The maximum number of nodes that one subscription's operation leaves to be opened or dropped."""


class Forest(NamedTuple):
    """All arrays of an SQ+-tree, as kernels take them."""

    subscriptions: Rows
    pool: KeywordIds
    node_keys: Ints
    node_values: Values
    nodes: Rows
    members: Slots
    """Slots of the subscriptions in buckets."""
    free_members: Slots
    cells: Rows
    threshold_m: Singles
    """Maximum distance from a cell of an object of each class that matters to any of its entries."""
    entries: Rows
    entry_slots: Slots
    free_entries: Slots
    squares: Floats
    """Squared weights by keyword; unused without weights."""
    closeness: Singles
    """Closeness by the object's size, common keywords, and kind."""
    class_closeness: Singles
    """The largest closeness in each class, by common keywords, kind, and class."""
    root: npt.NDArray[np.float64]
    """Square of every quadtree: centre and half a side."""
    pending: Slots
    """Nodes to be opened or dropped when the walk is done."""
    meta: Ints
