"""Judging rows of a feed: a row that is wrong is refused alone, with the first reason that was found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from index.batches import Ints

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Refusals:
    """Rows that are wrong, and why; the first reason found of each."""

    rows: Ints
    reasons: list[str]


class Validator:
    """Collects reasons against rows.

    Parameters
    ----------
    count
        How many rows there are.
    """

    def __init__(self, count: int) -> None:
        self._reasons: dict[int, str] = {}
        self.is_good: Bools = np.ones(count, dtype=np.bool_)

    def require(self, holds: Bools, reason: str) -> None:
        """Refuse the rows for which something does not hold, unless they are refused already."""
        for row in np.flatnonzero(self.is_good & ~holds).tolist():
            self._reasons[row] = reason
        self.is_good &= holds

    def refuse(self, row: int, reason: str) -> None:
        """Refuse a row that is not refused already."""
        self._reasons[row] = reason
        self.is_good[row] = False

    def refusals(self) -> Refusals:
        """Return what was refused, by row."""
        rows = sorted(self._reasons)
        return Refusals(np.array(rows, dtype=np.int64), [self._reasons[row] for row in rows])
