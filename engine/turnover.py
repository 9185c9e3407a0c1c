"""Estimate how often objects arrive, or leave, relative to the number of objects."""

from __future__ import annotations

import math

_MEMORY_S = 600.0
"""The time constant of the mean: events this long ago count by exp(-1)."""
_MS_PER_S = 1000.0


class Turnover:
    """Events per second and live object, a running mean. O(1) a batch."""

    def __init__(self) -> None:
        self._count = 0.0
        self._object_s = 0.0
        self._last_ms: int | None = None
        self._alive = 0

    def note(self, now_ms: int, count: int, alive: int) -> None:
        """Record that `count` objects arrived or left, and that `alive` exist now."""
        if self._last_ms is not None:
            passed_s = (now_ms - self._last_ms) / _MS_PER_S
            kept = math.exp(-passed_s / _MEMORY_S)
            self._object_s = self._object_s * kept + self._alive * passed_s
            # Objects that arrive at the first moment, in however many batches, are a stock and not a
            # rate.
            if self._object_s > 0.0:
                self._count = self._count * kept + count
        self._last_ms = now_ms
        self._alive = alive

    @property
    def per_object_s(self) -> float:
        """Return events per live object and second; 0 while nothing is known."""
        return self._count / self._object_s if self._object_s > 0.0 else 0.0
