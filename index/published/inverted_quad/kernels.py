"""Matching with the RQ-Tree: for each of the object's keywords, down the quadtree of its list."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from index.batches import Ints
from index.published.clause_cells.cell_kernels import STACK_MAX, push_children
from index.published.clause_cells.layout import Cells
from index.published.clause_cells.scan_kernels import (
    Item,
    Published,
    close,
    item_of,
    known_words,
    most_keywords,
    scan,
)
from index.tables.quad_kernels import NO_NODE
from safe_region.jit import kernel, leaf


@leaf
def _walk(
    cells: Cells,
    item: Item,
    root: int,
    stack: npt.NDArray[np.int32],
    found: Ints,
    total: int,
) -> tuple[int, int]:
    """Keep the matches in one tree; return their new number, and the number of verified clauses."""
    candidates = 0
    stack[0] = root
    depth = 1
    while depth > 0:
        depth -= 1
        cell = int(stack[depth])
        own_count = int(cells.cells[cell]["own_count"])
        if own_count > 0:
            candidates += own_count
            total = scan(cells, cell, cell, item, found, total)
        depth = push_children(cells, cell, item.x1_m, item.y1_m, item.x2_m, item.y2_m, stack, depth)
    return total, candidates


@kernel
def match(cells: Cells, published: Published, first_row: int, offsets: Ints, found: Ints) -> int:
    """Match objects, from one on; return the first without space (see `index.tables.matches`)."""
    known = np.empty(most_keywords(published), dtype=np.int64)
    stack = np.empty(STACK_MAX, dtype=np.int32)
    for i in range(first_row, published.x_m.shape[0]):
        item = item_of(published, i)
        known_count = known_words(cells, item, known)
        total = int(offsets[i])
        candidates = 0
        for j in range(known_count):
            root = int(cells.words[known[j]]["root"])
            if root != NO_NODE:
                total, more = _walk(cells, item, root, stack, found, total)
                candidates += more
        offsets[i + 1] = total
        if total > found.shape[0]:
            return i
        close(cells, item, known, known_count, candidates)
    return int(published.x_m.shape[0])
