"""The clocks of a server, read once for all events of one moment."""

from __future__ import annotations

import time
from collections.abc import Callable

from safe_region.steady_clock import steady_clock_ms


def wall_clock_ms() -> int:
    """Return the milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class Clock:
    """Real time and the time of leases, as of the last call of `read`.

    Parameters
    ----------
    wall
        Wall clock in milliseconds; sets the start of the time unless that is virtual. Later it may jump:
        lifetimes and leases are durations.
    steady
        Monotonic clock in milliseconds; drives the time from there, and measures delays.
    is_virtual
        Whether commands advance the server's time, and with it that of leases.
    """

    __slots__ = ("is_virtual", "lease_ms", "real_ms", "steady_ms", "wall_ms")

    def __init__(
        self,
        wall: Callable[[], int] = wall_clock_ms,
        steady: Callable[[], int] = steady_clock_ms,
        *,
        is_virtual: bool = False,
    ) -> None:
        self.wall_ms = wall
        """Reads the wall clock."""
        self.steady_ms = steady
        """Reads the monotonic clock."""
        self.is_virtual = is_virtual
        self.real_ms = 0
        """Monotonic milliseconds, for waits in real time."""
        self.lease_ms = 0
        """The time of leases: monotonic; virtual if time is."""

    def read(self) -> int:
        """Read the monotonic clock; return its time in milliseconds."""
        self.real_ms = self.steady_ms()
        if not self.is_virtual:
            self.lease_ms = self.real_ms
        return self.real_ms
