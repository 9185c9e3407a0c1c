"""Server time as a device knows it."""

from __future__ import annotations

import time


class Clock:
    """Server time: the device's monotonic clock plus an offset, or virtual.

    A real clock never runs backwards, even when a later welcome brings a smaller offset. A virtual
    one stands still until `observe` moves it on.
    """

    def __init__(self) -> None:
        self.is_virtual = False
        self._offset_ms = 0
        self._latest_ms = 0

    def adjust(self, server_ms: int, *, is_virtual: bool) -> None:
        """Take over the time of a welcome."""
        self.is_virtual = is_virtual
        self._offset_ms = server_ms - _monotonic_ms()
        self._latest_ms = max(self._latest_ms, server_ms)

    def observe(self, server_ms: int) -> None:
        """Note that the server's clock has reached a time, and goes on from there."""
        self._latest_ms = max(self._latest_ms, server_ms)
        self._offset_ms = max(self._offset_ms, server_ms - _monotonic_ms())

    def now_ms(self) -> int:
        """Milliseconds of server time."""
        if not self.is_virtual:
            self._latest_ms = max(self._latest_ms, _monotonic_ms() + self._offset_ms)
        return self._latest_ms

    def steady_ms(self) -> int:
        """Milliseconds that never jump, whatever a welcome says; virtual if time is."""
        return self._latest_ms if self.is_virtual else _monotonic_ms()


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000
