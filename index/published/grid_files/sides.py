"""How fine grids are."""

from __future__ import annotations

SIDE = 40
"""Cells of a row, as the paper found best."""

_LONG_SHARE = 8


def long_of(side: int) -> int:
    """Return from how many entries on a list is parted by a grid: an eighth of its cells."""
    return max(1, side * side // _LONG_SHARE)
