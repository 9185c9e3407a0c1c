"""Matching with the IQ-Tree: down one quadtree, in each cell into the lists of the object's keywords."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from index.batches import Ints
from index.published.clause_cells.cell_kernels import ROOT, STACK_MAX, push_children
from index.published.clause_cells.layout import Cells
from index.published.clause_cells.list_kernels import NO_LIST, list_of
from index.published.clause_cells.scan_kernels import (
    Item,
    Published,
    close,
    item_of,
    known_words,
    most_keywords,
    scan,
)
from safe_region.jit import kernel, leaf


@leaf
def _keys_of(cells: Cells, known: Ints, known_count: int, keys: Ints) -> int:
    """Write the keywords of an object that are keys of clauses; return their number."""
    count = 0
    for i in range(known_count):
        word = cells.words[known[i]]
        if word["key_count"] > 0:
            keys[count] = word["keyword"]
            count += 1
    return count


@leaf
def _walk(
    cells: Cells,
    item: Item,
    keys: Ints,
    key_count: int,
    stack: npt.NDArray[np.int32],
    found: Ints,
    total: int,
) -> tuple[int, int]:
    """Keep the clauses that match; return their new number, and the number of verified ones."""
    candidates = 0
    stack[0] = cells.meta[ROOT]
    depth = 1
    while depth > 0:
        depth -= 1
        cell = int(stack[depth])
        for i in range(key_count if cells.cells[cell]["own_count"] > 0 else 0):
            number = list_of(cells, cell, int(keys[i]))
            if number != NO_LIST:
                candidates += int(cells.lists[number]["count"])
                total = scan(cells, number, cell, item, found, total)
        depth = push_children(cells, cell, item.x1_m, item.y1_m, item.x2_m, item.y2_m, stack, depth)
    return total, candidates


@kernel
def match(cells: Cells, published: Published, first_row: int, offsets: Ints, found: Ints) -> int:
    """Match objects, from one on; return the first without space (see `index.tables.matches`)."""
    most = most_keywords(published)
    known = np.empty(most, dtype=np.int64)
    keys = np.empty(most, dtype=np.int64)
    stack = np.empty(STACK_MAX, dtype=np.int32)
    for i in range(first_row, published.x_m.shape[0]):
        item = item_of(published, i)
        known_count = known_words(cells, item, known)
        key_count = _keys_of(cells, known, known_count, keys)
        total, candidates = _walk(cells, item, keys, key_count, stack, found, int(offsets[i]))
        offsets[i + 1] = total
        if total > found.shape[0]:
            return i
        close(cells, item, known, known_count, candidates)
    return int(published.x_m.shape[0])
