"""Arrays of an R-tree of clauses with tokens at its nodes, and where its counters are."""

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
"""Children of a node at most: B of the paper."""
DEPTH_MAX = 24
NOTHING = -1
"""No node, no list."""

# What nodes know of the tokens below them.
PLAIN = 0  # nothing: the spatial-first method
TOKENS = 1  # all: R^t
REPRESENTATIVES = 2  # the first of each clause: R^t+
COUNTED = 3  # one of each clause, another at each level, with lists of clauses: R^t++
FILES = 4  # all, with lists of children: the IRTree
FLAT = 5  # there is one node, with lists of clauses: the keyword-first method

CLAUSE_DTYPE = np.dtype([*CLAUSE_FIELDS, ("leaf", np.int32)], align=True)

NODE_DTYPE = np.dtype(
    [
        ("x1_m", np.float32),  # the box of what is below, rounded outwards
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
"""A clause, with how many tokens it has, or a child, in a list; runs want the name `slot`."""

# Named positions of `meta`.
KIND = 0
ROOT = 1
LEAF_DEPTH = 2  # levels between the root and the leaves
NODE_END = 3  # every node from here on is unused
FREE_NODE = 4
KEY_COUNT = 5
LIST_END = 6  # every list from here on is unused
FREE_LIST = 7
LONGEST = 8  # no list was ever longer
CANDIDATES = 9  # clauses looked at one by one
VISITED = 10  # nodes whose children were looked at
EPOCH = 11  # of `marks`
META_SIZE = 12


class Tree(NamedTuple):
    """All arrays, as kernels take them."""

    clauses: Rows
    pool: KeywordIds
    places: Slots
    """Beside the keywords of a clause: which of them comes first, second, ... in its order."""
    nodes: Rows
    children: Slots
    """FANOUT for each node: shape (nodes, FANOUT)."""
    keys: Ints
    """Tokens at nodes, an id map: node << 32 | token ..."""
    values: Values
    """... and how many clauses below have it, or the number of its list."""
    lists: Rows
    members: Runs
    marks: Ints
    """By clause, or by node: epoch << 16 | how many tokens were met."""
    stack: Slots
    """Room for walks."""
    meta: Ints
