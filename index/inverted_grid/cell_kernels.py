"""Finding the children of a node that a box or a keyword belongs to.

Operations: O(1).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from index.inverted_grid.layout import Grid
from index.tables.signature_kernels import bit_of
from safe_region.jit import leaf


@leaf
def line_of(step: int, start: int, scale: float, side: int) -> int:
    """Return the column, or row, of `side` ones that contains a step."""
    return min(max(int(float(step - start) * scale), 0), side - 1)


@leaf
def column_of(node: Any, step: int, side: int) -> int:  # noqa: ANN401 - a row
    """Return the column of a node's cells that contains a step."""
    return line_of(step, int(node["x"]), np.float64(node["x_scale"]), side)


@leaf
def row_of(node: Any, step: int, side: int) -> int:  # noqa: ANN401
    """Return the row of a node's cells that contains a step."""
    return line_of(step, int(node["y"]), np.float64(node["y_scale"]), side)


@leaf
def side_of(node: Any) -> int:  # noqa: ANN401
    """Return the number of columns, and rows, of a node's cells."""
    return 1 << (int(node["size_class"]) >> 1)


@leaf
def bucket_of(keyword: int, size_class: int) -> int:
    """Return the child of a keyword, for a node with 2 ** size_class children."""
    return ((int(keyword) * 0x9E3779B1) >> 8) & ((1 << size_class) - 1)


@leaf
def signature_without_first(grid: Grid, slot: int) -> int:
    """Return the bits of a clause's keywords, except the keyword of its list."""
    clause = grid.clauses[slot]
    start = int(clause["keyword_start"])
    signature = 0
    for i in range(1, int(clause["keyword_count"])):
        signature |= 1 << bit_of(grid.pool[start + grid.ranks[start + i]])
    return signature


@leaf
def keyword_of(grid: Grid, slot: int, rank: int) -> int:
    """Return a clause's keyword of a rank, rarest first, or -1 if the clause has fewer."""
    clause = grid.clauses[slot]
    if rank >= clause["keyword_count"]:
        return -1
    start = int(clause["keyword_start"])
    return int(grid.pool[start + grid.ranks[start + rank]])
