"""Provide a clock that never jumps, for devices and the server alike."""

from __future__ import annotations

import time

_BOOT_CLOCK: int | None = getattr(time, "CLOCK_BOOTTIME", None)


def steady_clock_ms() -> int:
    """Return milliseconds that never jump.

    The clock continues while the machine sleeps, where the platform supports this.
    """
    if _BOOT_CLOCK is None:
        return time.monotonic_ns() // 1_000_000
    return time.clock_gettime_ns(_BOOT_CLOCK) // 1_000_000


def steady_clock_s() -> float:
    """Return `steady_clock_ms` in seconds."""
    return steady_clock_ms() / 1e3
