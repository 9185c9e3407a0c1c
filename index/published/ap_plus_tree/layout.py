"""Rows of the m-lists of an AP+-Tree, and the numbers that stand for nothing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from index.batches import Floats, Ints, KeywordIds
from index.published.ap_tree.layout import Numbers, Rows
from index.tables.live_objects import LIVE_OBJECT_FIELDS

OBJECT_DTYPE = np.dtype(
    [
        *LIVE_OBJECT_FIELDS,
        ("generation", np.int32),  # goes up when the object, or the slot's next one, is gone
        ("copies", np.int32),  # items of it in lists
        ("stops", np.int32),  # of these, in nodes with parts, below which it is not kept
        ("mark", np.int32),  # number of the load that has it already
        ("carried", np.int32),  # number of the rebuild beside that has it already
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
"""Items of a chunk. Only the first chunk of a list may have less."""

KEPT = 0
"""An m-list: what is kept in a leaf, or in a node with parts and not below."""
WAITING = 1
"""What a part that nobody has yet would be for: a cut for other keywords, a cell, a dummy."""
LISTS = 2
"""Lists of a node: that at `LISTS * node + KEPT`, and that at `LISTS * node + WAITING`."""

# How a clause comes by a node: with its old box, with its new one, or both.
OLD = 1
NEW = 2
BOTH = 3

# What is done with clauses.
ENTER = 0
LEAVE = 1
MOVE = 2

# Named positions of `state`.
CHUNK_END = 0
FREE_CHUNK = 1  # one more than the first free chunk, 0 for none
FREE_CHUNK_COUNT = 2
CHUNKS_WANTED = 3
NOW_MS = 4
COPIES_MAX = 5
ITEM_TOTAL = 6
DEAD_TOTAL = 7  # items of objects that are gone
USED = 8  # entries of `stack`
STARTED = 9  # whether the object at hand was begun
DONE = 10  # rows of a batch
FOUND = 11
FOUND_WANTED = 12
LEFT = 13
LEFT_WANTED = 14
JOB_BEGIN = 15  # where the object at hand goes on in what is being rebuilt; NOTHING if not
CARRIES = 16  # whether objects are being carried into what was built beside
CARRY_AT = 17  # slot from which on they were not yet
CARRY_MARK = 18
CARRY_AGAIN = 19  # whether the way there has changed, so that it has to be begun anew
MARK = 20  # number of the last load
LOADED = 21  # objects in `load`
PATH_COUNT = 22
WALK_COUNT = 23
SWEEP_AT = 24  # list from which on dead items are to be looked for
PUT_AT = 25  # place in `load`
STATE_SIZE = 26


class Lists(NamedTuple):
    """All that an AP+-Tree has beside an AP-Tree."""

    objects: Rows
    pool: KeywordIds
    heads: Numbers
    """By list: one more than its first chunk, 0 for none."""
    counts: Numbers
    """By list."""
    items: Rows
    links: Numbers
    """By chunk: one more than the next in its list, or in the chain of free ones."""
    codes: Numbers
    """Codes of the object at hand, increasing."""
    stack: Numbers
    """Nodes to be visited and where the object goes on in its codes, by turns."""
    flags: Numbers
    """Whether the object is kept there."""
    load: Numbers
    """Slots of objects that were taken off and are to be put back."""
    path: Numbers
    """Nodes and parts from a node up, by turns."""
    walk: Numbers
    """Nodes whose lists are to be given back, and parts, by turns."""
    old: Floats
    """The old box of the clause at hand."""
    same: Floats
    """A box: what lies within it, and meets both boxes of the clause at hand, does not change."""
    state: Ints
