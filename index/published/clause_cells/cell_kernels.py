"""Cells with clauses: creation, division, counts of entries, and release.

Operations: each O(1), except `count_entry` and `discount_entry`, O(depth).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from index.published.clause_cells.layout import Cells
from index.published.clause_cells.workload_kernels import word_of
from index.tables.free_kernels import give_back_rows, take_rows
from index.tables.quad_kernels import (
    GROUP_END,
    NO_NODE,
    free_group,
    group_room,
    set_children,
    set_root,
    take_group,
)
from index.tables.run_kernels import NO_RUN
from safe_region.jit import leaf

ROOT_FREE = 7
"""In meta: the first free root of a key's tree, NO_NODE if there is none."""
LIST_END = 8
"""In meta: every row of lists from here on is unused."""
LIST_FREE = 9
"""In meta: the first free row of lists."""
LIST_COUNT = 10
"""In meta: rows of lists in use."""
KEYWORD_FIRST = 11
"""In meta: whether each key has a tree."""
ROOT = 12
"""In meta: the root of the one tree; NO_NODE if each key has its own."""
CANDIDATES = 13
"""In meta: clauses verified one by one that the caller has not counted yet."""
META_SIZE = 14

DEPTH_MAX = 12
"""A cell at this depth is 4,096 times smaller than the root's square."""

STACK_MAX = 3 * DEPTH_MAX + 4
"""The maximum number of cells on a walk's stack."""

CELLS_FULL = -3


@leaf
def _set_empty(cells: Cells, cell: int) -> None:
    """Reset a new cell to one without entries."""
    cells.cells[cell]["count"] = 0
    cells.cells[cell]["own_count"] = 0
    if cells.meta[KEYWORD_FIRST]:
        cells.lists[cell]["count"] = 0
        cells.lists[cell]["size_class"] = NO_RUN


@leaf
def has_root(cells: Cells) -> bool:
    """Return whether a root can be allocated."""
    return bool(cells.meta[ROOT_FREE] != NO_NODE or cells.meta[GROUP_END] < cells.cells.shape[0])


@leaf
def plant(cells: Cells) -> int:
    """Create a tree; return its root. The caller has verified the capacity."""
    meta = cells.meta
    root = take_rows(cells.cells["parent"], meta, ROOT_FREE, meta, GROUP_END, 1)
    set_root(cells.cells, root, cells.square[0], cells.square[1], cells.square[2])
    _set_empty(cells, root)
    return root


@leaf
def root_of(cells: Cells, keyword: int) -> int:
    """Return the root of the tree for a key that some clause requires; NO_NODE if there is none yet."""
    if cells.meta[KEYWORD_FIRST]:
        return int(cells.words[word_of(cells, keyword)]["root"])
    return int(cells.meta[ROOT])


@leaf
def divide(cells: Cells, cell: int) -> bool:
    """Ensure that a cell has children; return whether there was space."""
    if cells.cells[cell]["first_child"] != NO_NODE:
        return True
    if group_room(cells.cells, cells.meta) == 0:
        return False
    first = take_group(cells.cells, cells.meta)
    set_children(cells.cells, cell, first)
    for child in range(first, first + 4):
        _set_empty(cells, child)
    return True


@leaf
def count_entry(cells: Cells, cell: int) -> None:
    """Count an entry at a cell, and as below each of its ancestors."""
    cells.cells[cell]["own_count"] += 1
    while cell != NO_NODE:
        cells.cells[cell]["count"] += 1
        cell = int(cells.cells[cell]["parent"])


@leaf
def discount_entry(cells: Cells, cell: int) -> None:
    """Discount an entry at a cell, and free children that have none."""
    cells.cells[cell]["own_count"] -= 1
    while cell != NO_NODE:
        row = cells.cells[cell]
        row["count"] -= 1
        if row["count"] == row["own_count"] and row["first_child"] != NO_NODE:
            free_group(cells.cells, cells.meta, int(row["first_child"]))
            row["first_child"] = NO_NODE
        cell = int(row["parent"])


@leaf
def fell(cells: Cells, keyword: int) -> None:
    """Free the root of a key's tree without entries."""
    word = cells.words[word_of(cells, keyword)]
    give_back_rows(cells.cells["parent"], cells.meta, ROOT_FREE, int(word["root"]))
    word["root"] = NO_NODE


@leaf
def meets(cells: Cells, cell: int, x1_m: float, y1_m: float, x2_m: float, y2_m: float) -> bool:
    """Return whether a closed box intersects a cell, which is half-open."""
    row = cells.cells[cell]
    return bool(
        x1_m < row["x_max"] and x2_m >= row["x_min"] and y1_m < row["y_max"] and y2_m >= row["y_min"]
    )


@leaf
def push_children(
    cells: Cells,
    cell: int,
    x1_m: float,
    y1_m: float,
    x2_m: float,
    y2_m: float,
    stack: npt.NDArray[np.int32],
    depth: int,
) -> int:
    """Push the children of a cell that have entries and intersect a box; return the new depth."""
    first = int(cells.cells[cell]["first_child"])
    if first == NO_NODE:
        return depth
    for child in range(first, first + 4):
        if cells.cells[child]["count"] > 0 and meets(cells, child, x1_m, y1_m, x2_m, y2_m):
            stack[depth] = child
            depth += 1
    return depth
