"""The resolution of grids."""

from __future__ import annotations

SIDE = 40
"""Cells of a row, the best value according to the paper."""

_LONG_SHARE = 8


def long_of(side: int) -> int:
    """Return the number of entries from which a list is divided by a grid: an eighth of its cells."""
    return max(1, side * side // _LONG_SHARE)
