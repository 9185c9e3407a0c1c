"""Server time on a device."""

from __future__ import annotations

from collections.abc import Callable

from safe_region.steady_clock import steady_clock_ms

LEAP_MS = 100
"""Timers that are late by less than this count as on time."""


class Clock:
    """Server time: the device's monotonic clock plus an offset, or virtual time.

    Real time never runs backwards after the first welcome, even if a later one has a smaller offset.
    Virtual time stands still until `observe` advances it.

    Parameters
    ----------
    steady
        Milliseconds of a clock that never jumps.
    """

    def __init__(self, steady: Callable[[], int] = steady_clock_ms) -> None:
        self._steady_ms = steady
        self.is_virtual = False
        self.on_leap: Callable[[], None] = lambda: None
        """Called when time has jumped ahead: timers may be late."""
        self._is_adjusted = False
        """Whether a welcome has set the time."""
        self._offset_ms = 0
        self._latest_ms = 0
        self._emitted_offset_ms = 0

    def adjust(self, server_ms: int, *, is_virtual: bool) -> None:
        """Set the time from a welcome."""
        if not self._is_adjusted:
            self._is_adjusted, self._latest_ms = True, 0
        self.is_virtual = is_virtual
        self._offset_ms = server_ms - self._steady_ms()
        self._reach(server_ms)

    def observe(self, server_ms: int) -> None:
        """Record that the server's clock has reached a time, and continue from there."""
        self._offset_ms = max(self._offset_ms, server_ms - self._steady_ms())
        self._reach(server_ms)

    def suggest(self, server_ms: int) -> None:
        """Set the time from any other response, as long as no device is there whose server decides.

        In a cluster the server that responds may be another one, with another clock.
        """
        if not self._is_adjusted and not self.is_virtual:
            self._offset_ms = server_ms - self._steady_ms()
            self._latest_ms = 0

    def now_ms(self) -> int:
        """Return server time in milliseconds."""
        if not self.is_virtual:
            self._latest_ms = max(self._latest_ms, self._steady_ms() + self._offset_ms)
        return self._latest_ms

    def steady_ms(self) -> int:
        """Return milliseconds of a clock that never jumps at a welcome; virtual if time is virtual."""
        return self._latest_ms if self.is_virtual else self._steady_ms()

    def _reach(self, server_ms: int) -> None:
        has_leaped = self._offset_ms >= self._emitted_offset_ms + LEAP_MS
        if self.is_virtual:
            has_leaped = server_ms > self._latest_ms
        self._latest_ms = max(self._latest_ms, server_ms)
        if has_leaped or self._offset_ms < self._emitted_offset_ms:
            self._emitted_offset_ms = self._offset_ms
        if has_leaped:
            self.on_leap()
