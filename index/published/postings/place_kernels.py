"""Positions: stripes of a square, of which those at its border are unbounded.

Stripes are a monotone function of coordinates, so points in a box are in its stripes, and no point falls
between two. Operations: each O(1).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from index.published.postings.layout import SIDE, Files
from safe_region.jit import leaf


class Span(NamedTuple):
    """Cells of a grid that a box intersects: columns and rows, both ends included."""

    column_1: int
    row_1: int
    column_2: int
    row_2: int


@leaf
def stripe_of(files: Files, coordinate_m: float, axis: int) -> int:
    """Return the column (axis 0) or the row (axis 1) of a coordinate."""
    side = int(files.meta[SIDE])
    share = (coordinate_m - files.square[axis]) / files.square[2]
    return int(min(math.floor(min(max(share, 0.0), 1.0) * side), side - 1))


@leaf
def span_of(files: Files, x1_m: float, y1_m: float, x2_m: float, y2_m: float) -> Span:
    """Return the cells that a box intersects."""
    return Span(
        stripe_of(files, x1_m, 0),
        stripe_of(files, y1_m, 1),
        stripe_of(files, x2_m, 0),
        stripe_of(files, y2_m, 1),
    )
