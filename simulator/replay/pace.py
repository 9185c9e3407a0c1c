"""The times at which ticks are due, for a replay in step with the wall clock."""

from __future__ import annotations

import asyncio
import time


class Pace:
    """Waits for ticks. A late tick starts at once, and the due times of the next ones do not shift.

    Parameters
    ----------
    times
        The factor of real time; None for as fast as possible.
    period_ms
        The time between two ticks.
    """

    def __init__(self, times: float | None, period_ms: int) -> None:
        self._step_s = None if times is None else period_ms / 1000.0 / times
        self._begin_s = 0.0

    def begin(self) -> None:
        """Set the time of tick 0 to now."""
        self._begin_s = time.monotonic()

    async def reach(self, tick: int) -> float:
        """Wait until a tick is due; return the seconds by which it is late."""
        if self._step_s is None:
            return 0.0
        left_s = self._begin_s + tick * self._step_s - time.monotonic()
        if left_s > 0.0:
            await asyncio.sleep(left_s)
        return max(0.0, -left_s)
