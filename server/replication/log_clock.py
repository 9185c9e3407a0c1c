"""The clock of a node. It continues steadily from the time of the log, whatever the wall clock shows."""

from __future__ import annotations

from collections.abc import Callable

LEAD_MS_MAX = 2_000
"""How far the clock of a node may be ahead of the log while the node is healthy and its results exact."""


class LogClock:
    """Continues the time of the log. Every operation is O(1).

    The clock of a node that reads an entry late is behind that of the node that appended it. So the time
    of the log follows the fastest clock, and nodes do not drive each other on.

    Parameters
    ----------
    steady
        Monotonic clock in milliseconds.
    """

    def __init__(self, steady: Callable[[], int]) -> None:
        self._steady = steady
        self.ahead_ms = -steady()
        """How far the time is ahead of the monotonic clock."""
        self._log_ms = 0

    def now_ms(self) -> int:
        """Return the time of this node, with which it stamps its entries."""
        return self._steady() + self.ahead_ms

    def follow(self, log_ms: int) -> None:
        """Advance to the time of the log, unless the clock is there already."""
        self._log_ms = log_ms
        self.ahead_ms = max(self.ahead_ms, log_ms - self._steady())

    def start(self, wall_ms: int) -> None:
        """Advance to the time of a wall clock. For a node that finds nobody else at the log."""
        self.ahead_ms = max(self.ahead_ms, wall_ms - self._steady())

    def lead_ms(self) -> int:
        """Return how far the clock is ahead of the log: how old the last entry that was applied is."""
        return self.now_ms() - self._log_ms
