"""The times that a server goes by, read once for all that happens at one moment."""

from __future__ import annotations

import time
from collections.abc import Callable

from safe_region.steady_clock import steady_clock_ms


def wall_clock_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class Clock:
    """Real time and the time of leases, as they were when `read` was called last.

    Parameters
    ----------
    wall
        Wall clock in milliseconds; tells where time begins unless that is virtual. Afterwards it may
        jump as it likes: lifetimes and leases are durations.
    steady
        Monotonic clock in milliseconds; tells how time goes on from there, and who is late.
    is_virtual
        Whether server time, and with it that of leases, is advanced by commands.
    """

    __slots__ = ("_steady", "is_virtual", "lease_ms", "real_ms", "wall_ms")

    def __init__(
        self,
        wall: Callable[[], int] = wall_clock_ms,
        steady: Callable[[], int] = steady_clock_ms,
        *,
        is_virtual: bool = False,
    ) -> None:
        self.wall_ms = wall
        """Reads the wall clock."""
        self._steady = steady
        self.is_virtual = is_virtual
        self.real_ms = 0
        """Monotonic: for those who wait for people."""
        self.lease_ms = 0
        """The time of leases: monotonic; virtual if time is."""

    def read(self) -> int:
        """Read the monotonic clock; return what it says."""
        self.real_ms = self._steady()
        if not self.is_virtual:
            self.lease_ms = self.real_ms
        return self.real_ms
