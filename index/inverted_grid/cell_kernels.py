"""Boxes in float32, rounded outwards, and the cells of a node that they lie in.

A cell is a monotone function of a coordinate in float64, so what two boxes share lies in a cell that both
lie in, however coordinates were rounded when cells were laid out. The outermost cells go on for ever.

Operations: O(1).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from index.inverted_grid.layout import Grid
from index.tables.signature_kernels import bit_of
from safe_region.jit import leaf

_STEP = 2.0**-23
"""A step of float32 relative to its value, at least half and at most the whole of one."""
_LEAST = 1e-37
"""Above the steps about 0."""
_MOST = 3.3e38
"""Below the largest float32."""


@leaf
def rounded_down(x_m: float) -> np.float32:
    """Return a float32 that is not above a finite number, -inf if there is no other."""
    lower = min(x_m, _MOST) - abs(min(x_m, _MOST)) * _STEP - _LEAST
    if lower < -_MOST:
        return np.float32(-np.inf)
    return np.float32(lower)


@leaf
def rounded_up(x_m: float) -> np.float32:
    """Return a float32 that is not below a finite number, inf if there is no other."""
    return np.float32(-rounded_down(-x_m))


@leaf
def line_of(x_m: float, start_m: float, per_m: float, side: int) -> int:
    """Which of `side` columns, or rows, a coordinate is in."""
    offset = (x_m - start_m) * per_m
    if offset >= side:
        return side - 1
    if offset >= 1.0:
        return int(offset)
    return 0  # NaN, too: infinite times 0


@leaf
def column_of(node: Any, x_m: float, side: int) -> int:  # noqa: ANN401 - a row
    """Which column of a node's cells a coordinate is in."""
    return line_of(np.float64(x_m), np.float64(node["x_m"]), np.float64(node["x_per_m"]), side)


@leaf
def row_of(node: Any, y_m: float, side: int) -> int:  # noqa: ANN401
    """Which row of a node's cells a coordinate is in."""
    return line_of(np.float64(y_m), np.float64(node["y_m"]), np.float64(node["y_per_m"]), side)


@leaf
def side_of(node: Any) -> int:  # noqa: ANN401
    """How many columns, and rows, of cells a node has."""
    return 1 << (int(node["size_class"]) // 2)


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
