"""Arrays of the IR-tree, and the positions of its counters."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from index.batches import Ints
from index.tables.id_map_kernels import Values

Rows = npt.NDArray[Any]
Row = Any
"""One row of a table, by reference."""
Slots = npt.NDArray[np.int32]

FANOUT = 32
"""Maximum number of children of a node."""
DEPTH_MAX = 24
NOTHING = -1
"""No node, no file."""

NODE_DTYPE = np.dtype(
    [
        ("x1_m", np.float32),  # the box of the objects below, rounded outwards
        ("y1_m", np.float32),
        ("x2_m", np.float32),
        ("y2_m", np.float32),
        ("parent", np.int32),  # NOTHING for the root; the next free node in the free chain
        ("file", np.int32),  # number of its inverted file
        ("count", np.int32),  # children: nodes, or slots of objects in a leaf
        ("live", np.int32),  # objects below
        ("gone", np.int32),  # objects that were removed below since its file was made
        ("is_leaf", np.int8),
    ],
    align=True,
)

# Named positions of `meta`.
ROOT = 0
NODE_END = 1  # every node from here on is unused
FREE_NODE = 2
FILE_END = 3  # every file number from here on is unused
KEY_COUNT = 4
PENDING_COUNT = 5
META_SIZE = 6


class Tree(NamedTuple):
    """All arrays of an IR-tree, as kernels take them."""

    nodes: Rows
    children: Slots
    """FANOUT for each node: shape (nodes, FANOUT)."""
    owners: Slots
    """Node of each file; NOTHING for unused files."""
    keys: Ints
    """Postings of all files, an id map: file << 32 | keyword ..."""
    values: Values
    """... and for the objects below with it, the least norm code << 8 | the least number of keywords."""
    pending: Slots
    """Nodes whose files are pending."""
    stack: Slots
    """Scratch for walks."""
    meta: Ints
