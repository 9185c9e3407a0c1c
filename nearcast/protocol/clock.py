"""Server time as a device knows it."""

from __future__ import annotations

from collections.abc import Callable

from safe_region.steady_clock import steady_clock_ms

LEAP_MS = 100
"""Timers that are late by less are in time."""


class Clock:
    """Server time: the device's monotonic clock plus an offset, or virtual.

    A real clock never runs backwards, even when a later welcome brings a smaller offset. A virtual
    one stands still until `observe` moves it on.
    """

    def __init__(self) -> None:
        self.is_virtual = False
        self.on_leap: Callable[[], None] = lambda: None
        """Called when time has leaped ahead: whatever waits for an instant may be late."""
        self._offset_ms = 0
        self._latest_ms = 0
        self._emitted_offset_ms = 0

    def adjust(self, server_ms: int, *, is_virtual: bool) -> None:
        """Take over the time of a welcome."""
        self.is_virtual = is_virtual
        self._offset_ms = server_ms - steady_clock_ms()
        self._reach(server_ms)

    def observe(self, server_ms: int) -> None:
        """Note that the server's clock has reached a time, and goes on from there."""
        self._offset_ms = max(self._offset_ms, server_ms - steady_clock_ms())
        self._reach(server_ms)

    def now_ms(self) -> int:
        """Milliseconds of server time."""
        if not self.is_virtual:
            self._latest_ms = max(self._latest_ms, steady_clock_ms() + self._offset_ms)
        return self._latest_ms

    def steady_ms(self) -> int:
        """Milliseconds that never jump, whatever a welcome says; virtual if time is."""
        return self._latest_ms if self.is_virtual else steady_clock_ms()

    def _reach(self, server_ms: int) -> None:
        has_leaped = self._offset_ms >= self._emitted_offset_ms + LEAP_MS
        if self.is_virtual:
            has_leaped = server_ms > self._latest_ms
        self._latest_ms = max(self._latest_ms, server_ms)
        if has_leaped or self._offset_ms < self._emitted_offset_ms:
            self._emitted_offset_ms = self._offset_ms
        if has_leaped:
            self.on_leap()
