"""When ticks are due, for a replay that keeps time with the clock on the wall."""

from __future__ import annotations

import asyncio
import time


class Pace:
    """Waits for ticks. One that is late is not waited for, and the next ones are due as they were.

    Parameters
    ----------
    times
        So many times as fast as it really takes; None for as fast as can be.
    period_ms
        Between two ticks.
    """

    def __init__(self, times: float | None, period_ms: int) -> None:
        self._step_s = None if times is None else period_ms / 1000.0 / times
        self._begin_s = 0.0

    def begin(self) -> None:
        """Let tick 0 be now."""
        self._begin_s = time.monotonic()

    async def reach(self, tick: int) -> float:
        """Wait until a tick is due; return by how many seconds it is late."""
        if self._step_s is None:
            return 0.0
        left_s = self._begin_s + tick * self._step_s - time.monotonic()
        if left_s > 0.0:
            await asyncio.sleep(left_s)
        return max(0.0, -left_s)
