"""Where most things are, as indexes are told it or find it out."""

from __future__ import annotations

from typing import NamedTuple

_MISFIT = 4.0
"""A tree is built anew about a square that is so many times larger or smaller than its root."""


class Square(NamedTuple):
    """A square about a middle, in metres. What lies outside is found as well, more slowly."""

    x_m: float
    y_m: float
    half_m: float

    def fits(self, other: Square) -> bool:
        """Whether a tree with this root need not be built anew for points that suggest another."""
        apart = max(abs(self.x_m - other.x_m), abs(self.y_m - other.y_m))
        ratio = self.half_m / other.half_m
        return 1.0 / _MISFIT <= ratio <= _MISFIT and apart <= self.half_m
