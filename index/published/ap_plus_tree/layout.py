"""Row layouts and sentinels of the m-lists of an AP+-Tree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from index.batches import Floats, Ints, KeywordIds
from index.published.ap_tree.layout import Numbers, Rows
from index.tables.live_objects import LIVE_OBJECT_FIELDS

OBJECT_DTYPE = np.dtype(
    [
        *LIVE_OBJECT_FIELDS,
        ("generation", np.int32),  # incremented when the object, or the next one in the slot, is removed
        ("copies", np.int32),  # its items in lists
        ("stops", np.int32),  # of these, in nodes with parts, below which it is not stored
        ("mark", np.int32),  # number of the last load that includes it
        ("carried", np.int32),  # number of the last sliced rebuild that includes it
    ],
    align=True,
)

ITEM_DTYPE = np.dtype(
    [
        ("signature", np.int64),  # of the keywords
        ("x1_m", np.float32),  # the box, rounded outwards
        ("y1_m", np.float32),
        ("x2_m", np.float32),
        ("y2_m", np.float32),
        ("slot", np.int32),  # of the object
        ("generation", np.int32),
        ("begin", np.int32),  # the first of its codes that may hit a cut here
    ],
    align=True,
)
"""An object in a list."""

CHUNK_LENGTH = 8
"""Items of a chunk. Only the first chunk of a list may have fewer."""

KEPT = 0
"""An m-list: the objects stored in a leaf, or in a node with parts and not below."""
WAITING = 1
"""The objects of parts that no clause has yet: a cut for other keywords, a cell, a dummy."""
LISTS = 2
"""Lists of a node: `LISTS * node + KEPT` and `LISTS * node + WAITING`."""

# The boxes with which a clause reaches a node: its old box, its new one, or both.
OLD = 1
NEW = 2
BOTH = 3

# The operations on clauses.
ENTER = 0
LEAVE = 1
MOVE = 2

# Named positions of `state`.
CHUNK_END = 0
FREE_CHUNK = 1  # the first free chunk plus 1, 0 for none
FREE_CHUNK_COUNT = 2
CHUNKS_WANTED = 3
NOW_MS = 4
COPIES_MAX = 5
ITEM_TOTAL = 6
DEAD_TOTAL = 7  # items of removed objects
USED = 8  # entries of `stack`
STARTED = 9  # whether the current object was started
DONE = 10  # rows of a batch
FOUND = 11
FOUND_WANTED = 12
LEFT = 13
LEFT_WANTED = 14
JOB_BEGIN = 15  # position in the codes of the current object in the rebuilt subtree; or NOTHING
CARRIES = 16  # whether objects are being inserted into the new subtree
CARRY_AT = 17  # the first slot that is not done
CARRY_MARK = 18
CARRY_AGAIN = 19  # whether the path there has changed, which requires a restart
MARK = 20  # number of the last load
LOADED = 21  # objects in `load`
PATH_COUNT = 22
WALK_COUNT = 23
SWEEP_AT = 24  # list at which the search for dead items continues
PUT_AT = 25  # place in `load`
STATE_SIZE = 26


class Lists(NamedTuple):
    """All arrays that an AP+-Tree has in addition to an AP-Tree."""

    objects: Rows
    pool: KeywordIds
    heads: Numbers
    """By list: its first chunk plus 1, 0 for none."""
    counts: Numbers
    """By list."""
    items: Rows
    links: Numbers
    """By chunk: the next one in its list, or in the chain of free ones, plus 1."""
    codes: Numbers
    """Codes of the current object, increasing."""
    stack: Numbers
    """Pairs of a node to visit and the position in the codes of the object."""
    flags: Numbers
    """Whether the object is stored there."""
    load: Numbers
    """Slots of removed objects to be inserted again."""
    path: Numbers
    """Pairs of nodes and parts from a node upwards."""
    walk: Numbers
    """Pairs of nodes whose lists are to be freed, and parts."""
    old: Floats
    """The old box of the current clause."""
    same: Floats
    """A box: objects that lie within it, and intersect both boxes of the current clause, do not change.
"""
    state: Ints
