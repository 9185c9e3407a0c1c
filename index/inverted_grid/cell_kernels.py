"""Which children of a node a box belongs to, or a keyword.

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
    """Which of `side` columns, or rows, a step is in."""
    return min(max(int(float(step - start) * scale), 0), side - 1)


@leaf
def column_of(node: Any, step: int, side: int) -> int:  # noqa: ANN401 - a row
    """Which column of a node's cells a step is in."""
    return line_of(step, int(node["x"]), np.float64(node["x_scale"]), side)


@leaf
def row_of(node: Any, step: int, side: int) -> int:  # noqa: ANN401
    """Which row of a node's cells a step is in."""
    return line_of(step, int(node["y"]), np.float64(node["y_scale"]), side)


@leaf
def side_of(node: Any) -> int:  # noqa: ANN401
    """How many columns, and rows, of cells a node has."""
    return 1 << (int(node["size_class"]) >> 1)


@leaf
def bucket_of(keyword: int, size_class: int) -> int:
    """Which child of a node with 2 ** size_class of them has a keyword."""
    return ((int(keyword) * 0x9E3779B1) >> 8) & ((1 << size_class) - 1)


@leaf
def signature_without_first(grid: Grid, slot: int) -> int:
    """Bits of a clause's keywords, but of the one whose list it is in."""
    clause = grid.clauses[slot]
    start = int(clause["keyword_start"])
    signature = 0
    for i in range(1, int(clause["keyword_count"])):
        signature |= 1 << bit_of(grid.pool[start + grid.ranks[start + i]])
    return signature


@leaf
def keyword_of(grid: Grid, slot: int, rank: int) -> int:
    """Return a clause's keyword of a rank, rarest first, -1 if it has not so many."""
    clause = grid.clauses[slot]
    if rank >= clause["keyword_count"]:
        return -1
    start = int(clause["keyword_start"])
    return int(grid.pool[start + grid.ranks[start + rank]])
