"""Validation of rows of a feed: each invalid row is refused, with the first reason that was found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from index.batches import Ints

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Refusals:
    """Invalid rows, and the first reason found for each."""

    rows: Ints
    reasons: list[str]


class Validator:
    """Collects reasons to refuse rows.

    Parameters
    ----------
    count
        The number of rows.
    """

    def __init__(self, count: int) -> None:
        self._reasons: dict[int, str] = {}
        self.is_good: Bools = np.ones(count, dtype=np.bool_)

    def require(self, holds: Bools, reason: str) -> None:
        """Refuse the rows for which a condition does not hold, unless they are refused already."""
        for row in np.flatnonzero(self.is_good & ~holds).tolist():
            self._reasons[row] = reason
        self.is_good &= holds

    def refuse(self, row: int, reason: str) -> None:
        """Refuse a row that is not refused already."""
        self._reasons[row] = reason
        self.is_good[row] = False

    def refusals(self) -> Refusals:
        """Return the refused rows, in order."""
        rows = sorted(self._reasons)
        return Refusals(np.array(rows, dtype=np.int64), [self._reasons[row] for row in rows])
