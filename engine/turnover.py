"""How often objects come, or go, in proportion to how many there are."""

from __future__ import annotations

import math

_MEMORY_S = 600.0
"""What is longer ago counts by less than a third."""
_MS_PER_S = 1000.0


class Turnover:
    """Events per second and live object, a running mean. O(1) a batch."""

    def __init__(self) -> None:
        self._count = 0.0
        self._object_s = 0.0
        self._last_ms: int | None = None
        self._alive = 0

    def note(self, now_ms: int, count: int, alive: int) -> None:
        """Note that so many came or went, and how many there are now."""
        if self._last_ms is not None:
            passed_s = (now_ms - self._last_ms) / _MS_PER_S
            kept = math.exp(-passed_s / _MEMORY_S)
            self._object_s = self._object_s * kept + self._alive * passed_s
            # What came at the first moment, in however many batches, is no rate but a stock.
            if self._object_s > 0.0:
                self._count = self._count * kept + count
        self._last_ms = now_ms
        self._alive = alive

    @property
    def per_object_s(self) -> float:
        """Events per live object and second; 0 while nothing is known."""
        return self._count / self._object_s if self._object_s > 0.0 else 0.0
