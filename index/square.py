"""The square that contains most items, given to an index or estimated by it."""

from __future__ import annotations

from typing import NamedTuple

_MISFIT = 4.0
"""A tree is rebuilt if the square of its items is larger or smaller than its root by this factor."""


class Square(NamedTuple):
    """A square: centre and half a side, in metres. Points outside are found as well, but more slowly."""

    x_m: float
    y_m: float
    half_m: float

    def fits(self, other: Square) -> bool:
        """Return whether a tree with this root can be kept for points with another square."""
        apart = max(abs(self.x_m - other.x_m), abs(self.y_m - other.y_m))
        ratio = self.half_m / other.half_m
        return 1.0 / _MISFIT <= ratio <= _MISFIT and apart <= self.half_m
