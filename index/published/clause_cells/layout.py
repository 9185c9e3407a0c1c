"""Row layouts of clauses in cells of quadtrees."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from index.batches import Floats, Ints, KeywordIds
from index.tables.clauses import CLAUSE_FIELDS
from index.tables.id_map_kernels import Values
from index.tables.quad_kernels import QUAD_FIELDS
from index.tables.run_kernels import Runs

Rows = npt.NDArray[Any]

CLAUSE_DTYPE = np.dtype(
    [
        *CLAUSE_FIELDS,
        ("word", np.int32),  # its key: the required keyword under which it is inserted
        ("home", np.int32),  # the cell with its entry; of several, the first record of their run
        ("home_count", np.int32),  # cells with its entries; 0 before insertion
    ],
    align=True,
)
"""64 bytes: a cache line."""

CELL_DTYPE = np.dtype(
    [
        *QUAD_FIELDS,
        ("count", np.int32),  # entries here and below
        ("own_count", np.int32),  # entries here
    ],
    align=True,
)

LIST_DTYPE = np.dtype(
    [
        ("start", np.int32),  # of its run; in a free row: the next free row
        ("count", np.int32),  # entries
        ("size_class", np.int8),  # of the run; NO_RUN if there is none
    ],
    align=True,
)

ENTRY_DTYPE = np.dtype(
    [
        ("x1_m", np.float32),  # the clause's box, rounded outwards
        ("y1_m", np.float32),
        ("x2_m", np.float32),
        ("y2_m", np.float32),
        ("slot", np.int32),  # of the clause
    ],
)

HOME_DTYPE = np.dtype([("slot", np.int32)])
"""A cell with an entry of a clause; runs need the field's name."""

WORD_DTYPE = np.dtype(
    [
        ("seen_count", np.int64),  # objects that had it, and clauses that required it
        ("keyword", np.int32),  # NO_KEYWORD in a free row
        ("clause_count", np.int32),  # clauses that require it
        ("key_count", np.int32),  # clauses whose key it is
        ("root", np.int32),  # of its own tree, NO_NODE if it has none; in a free row: the next free row
    ],
    align=True,
)

DRAFT_DTYPE = np.dtype(
    [
        *QUAD_FIELDS,
        ("here", np.float64),  # cost of inserting the clause here
        ("below", np.float64),  # cost of inserting it in the children instead
        ("column", np.int32),  # position of the cell in the grid of its depth
        ("row", np.int32),
        ("cell", np.int32),  # the cell that it represents, if the clause is inserted there or below
        ("is_met", np.int8),  # whether the clause's box intersects it
    ],
    align=True,
)
"""A possible cell, evaluated for one clause."""


class Cells(NamedTuple):
    """Arrays of clauses, the cells with their entries, and the statistics of the workload."""

    clauses: Rows
    pool: KeywordIds
    cells: Rows  # of one tree for all clauses, or of one for each key
    lists: Rows  # of a cell and a key; with a tree for each key, the cell's list has the cell's row
    list_keys: Ints  # (cell, key) to row of `lists`: an id map, empty with a tree for each key
    list_values: Values
    entries: Runs  # of lists
    homes: Runs  # of clauses with entries in several cells
    words: Rows  # keywords that a clause requires
    word_keys: Ints  # keyword to row of `words`: an id map
    word_values: Values
    seen: Ints  # objects by place, see `workload_kernels`
    drafts: Rows  # scratch
    square: Floats  # of the roots: x, y, half a side
    prices: Floats  # named in `placing_kernels`
    meta: Ints  # counters, named in `cell_kernels`
