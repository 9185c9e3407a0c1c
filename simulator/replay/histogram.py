"""Durations, counted in bins that are each 2 % wider than the one before."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

_LEAST_MS = 1e-3
_PER_FACTOR = 50.0
"""Bins for each factor of e."""
_BIN_COUNT = 1_000
"""The last bin has all durations above some 8 minutes."""


@dataclass(slots=True)
class Histogram:
    """Counts of durations. O(1) memory and time for each; quantiles are accurate to 2 %."""

    counts: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(_BIN_COUNT, np.int64))

    @property
    def total(self) -> int:
        """The number of durations."""
        return int(self.counts.sum())

    def add(self, duration_ms: float) -> None:
        """Count a duration."""
        place = np.log(max(duration_ms, _LEAST_MS) / _LEAST_MS) * _PER_FACTOR
        self.counts[min(int(place), _BIN_COUNT - 1)] += 1

    def merge(self, other: Histogram) -> None:
        """Add the counts of another histogram."""
        self.counts += other.counts

    def quantile_ms(self, share: float) -> float:
        """Return the duration below which this fraction of the durations is; NaN if there is none."""
        total = self.total
        if not total:
            return float("nan")
        rank = min(total - 1, int(share * total))
        place = int(np.searchsorted(np.cumsum(self.counts), rank, side="right"))
        return float(_LEAST_MS * np.exp((place + 0.5) / _PER_FACTOR))

    def edges_ms(self) -> npt.NDArray[np.float64]:
        """Return the starts of bins and the end of the last."""
        edges: npt.NDArray[np.float64] = _LEAST_MS * np.exp(np.arange(_BIN_COUNT + 1) / _PER_FACTOR)
        return edges
