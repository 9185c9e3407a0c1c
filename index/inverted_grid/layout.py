"""Row layouts of the inverted grid."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from index.batches import Floats, Ints, KeywordIds
from index.tables.run_kernels import Runs

Rows = npt.NDArray[Any]
Numbers = npt.NDArray[np.int32]

CLAUSE_DTYPE = np.dtype(
    [
        ("id", np.int64),  # the fields that most matches read come first
        ("keyword_start", np.int64),  # first required keyword id in the pool
        ("keyword_count", np.int32),
        ("x1_m", np.float64),  # the closed box
        ("y1_m", np.float64),
        ("x2_m", np.float64),
        ("y2_m", np.float64),
    ],
    align=True,
)
"""`places` has, beside each keyword in the pool, the position in the clause of the keyword of this rank,
rarest first, as of the insertion of the clause. The first one names the list of the clause."""

ENTRY_DTYPE = np.dtype(
    [
        ("x", np.int64),  # span of the box in steps: see `step_kernels`
        ("y", np.int64),
        ("signature", np.int64),  # of the keywords, without the keyword of the list
        ("slot", np.int32),  # of the clause; in the first record of a free run: the next free run
        ("unused", np.int32),  # two entries fill a cache line
    ],
    align=True,
)

ITEM_DTYPE = np.dtype(
    [
        ("begin", np.int64),  # of an object's keywords in the batch
        ("end", np.int64),
        ("x1", np.int64),  # its box in steps
        ("y1", np.int64),
        ("x2", np.int64),
        ("y2", np.int64),
        ("x_window", np.int64),  # the same as windows
        ("y_window", np.int64),
        ("x_inner", np.int64),  # of spans strictly inside
        ("y_inner", np.int64),
        ("missing", np.int64),  # bits of the absent keywords
        ("found", np.int64),  # number of matching clauses
        ("at", np.int64),  # position of the next match in the output
        ("is_area", np.bool_),
    ],
    align=True,
)

BLOCK = 8
"""The number of objects that are matched at a time."""

LEAF = 0
"""The kind of a node whose entries are a run."""
PLACE = 1
"""The kind of a node with a square of cells."""
WORD = 2
"""The kind of a node with children by the hash of the next keyword."""

NODE_DTYPE = np.dtype(
    [
        ("x", np.int32),  # lower left corner of the cells; points outside are in the outermost ones
        ("y", np.int32),
        ("x_scale", np.float32),  # cells per step
        ("y_scale", np.float32),
        ("first", np.int32),  # entry of a leaf's run, or first child; in a free span: the next free span
        ("count", np.int32),  # clauses below; of a leaf: entries
        ("kept", np.int32),  # child of the clauses that no other child holds, NO_NODE if there is none
        ("kind", np.uint8),
        ("size_class", np.int8),  # of a leaf's run, NO_RUN if empty; binary logarithm of the children
        ("limit", np.uint8),  # binary logarithm: see `decision_kernels`
        ("unused", np.uint8),
    ],
    align=True,
)

NO_NODE = -1

DONE = 0
RUNS_FULL = -1
NODES_FULL = -2
WORK_FULL = -3
PENDING_FULL = -4

NODE_END = 0
"""In meta: every node from here on is unused."""
PENDING = 1
"""In meta: the number of nodes waiting to be settled."""
NEEDED = 2
"""In meta: the capacity that a kernel needs after it ran out."""
CANDIDATES = 3
"""In meta: clauses verified so far."""
SCANNED = 4
"""In meta: entries scanned so far."""
CLAUSES = 5
"""In meta: the number of clauses."""
META_COUNT = 6

SPANS = 16
"""Chains of free spans of nodes: one for each power of two."""


class Grid(NamedTuple):
    """All arrays of an inverted grid, as kernels take them."""

    roots: Numbers  # keyword to the node of its list plus 1, 0 if there is none
    word_counts: Numbers  # keyword to the number of clauses that require it
    nodes: Rows
    parents: Numbers  # of nodes, NO_NODE for roots
    free_nodes: Numbers  # first free span by the binary logarithm of its length
    entries: Runs
    clauses: Rows
    pool: KeywordIds
    ranks: Numbers
    frame: Floats  # start of the steps, and steps per metre: see `step_kernels`
    work: Numbers  # scratch: nodes on the path
    pending: Numbers  # stack of nodes to be settled
    meta: Ints
