"""Arrays of an R-tree of clauses with tokens at its nodes, and the positions of its counters."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from index.batches import Ints, KeywordIds
from index.tables.clauses import CLAUSE_FIELDS
from index.tables.id_map_kernels import Values
from index.tables.run_kernels import Runs

Rows = npt.NDArray[Any]
Row = Any
"""One row of a table, by reference."""
Slots = npt.NDArray[np.int32]

FANOUT = 50
"""Maximum number of children of a node: B of the paper."""
DEPTH_MAX = 24
NOTHING = -1
"""No node, no list."""

# The tokens that nodes have of the clauses below.
PLAIN = 0  # nothing: the spatial-first method
TOKENS = 1  # all: R^t
REPRESENTATIVES = 2  # the first of each clause: R^t+
COUNTED = 3  # one of each clause, another at each level, with lists of clauses: R^t++
FILES = 4  # all, with lists of children: the IRTree
FLAT = 5  # there is one node, with lists of clauses: the keyword-first method

CLAUSE_DTYPE = np.dtype([*CLAUSE_FIELDS, ("leaf", np.int32)], align=True)

NODE_DTYPE = np.dtype(
    [
        ("x1_m", np.float32),  # the box of the clauses below, rounded outwards
        ("y1_m", np.float32),
        ("x2_m", np.float32),
        ("y2_m", np.float32),
        ("parent", np.int32),  # NOTHING for the root; the next free node in the free chain
        ("count", np.int32),  # children: nodes, or slots of clauses in a leaf
        ("live", np.int32),  # clauses below
        ("is_leaf", np.int8),
        ("tokens", np.int64),  # keywords of the clauses below
    ],
    align=True,
)

LIST_DTYPE = np.dtype(
    [
        ("start", np.int32),  # of its run; in a free row: the next free row
        ("count", np.int32),
        ("size_class", np.int8),
    ],
    align=True,
)

MEMBER_DTYPE = np.dtype([("slot", np.int32), ("tokens", np.int32)])
"""A clause, with the number of its tokens, or a child, in a list; runs need the field `slot`."""

# Named positions of `meta`.
KIND = 0
ROOT = 1
LEAF_DEPTH = 2  # levels between the root and the leaves
NODE_END = 3  # every node from here on is unused
FREE_NODE = 4
KEY_COUNT = 5
LIST_END = 6  # every list from here on is unused
FREE_LIST = 7
LONGEST = 8  # the maximum length of a list so far
CANDIDATES = 9  # clauses tested one by one
VISITED = 10  # nodes whose children were visited
EPOCH = 11  # of `marks`
META_SIZE = 12


class Tree(NamedTuple):
    """All arrays, as kernels take them."""

    clauses: Rows
    pool: KeywordIds
    places: Slots
    """Beside the keywords of a clause: their positions in its order."""
    nodes: Rows
    children: Slots
    """FANOUT for each node: shape (nodes, FANOUT)."""
    keys: Ints
    """Tokens at nodes, an id map: node << 32 | token ..."""
    values: Values
    """... and the number of clauses below that have it, or the number of its list."""
    lists: Rows
    members: Runs
    marks: Ints
    """By clause, or by node: epoch << 16 | the number of tokens met."""
    stack: Slots
    """Scratch for walks."""
    meta: Ints
