"""Detects that the server does not respond although a response is due and the connection is open.

A request that has a response starts a timer, unless one is running. If a response is still due when the
timer fires, and no message has arrived for `SILENCE_S`, the server counts as silent until a message
arrives. While no response is due, a silent server costs nothing: the connection's keepalive and the pings
that renew the lease detect it.

Operations: O(1) a request and a message, O(subscriptions of a device) a response, O(devices with a
response due) when the timer fires: every `SILENCE_S` while devices send requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

SILENCE_S = 4.0
"""Apps must learn of it within five seconds, and a server may be busy for a second or two."""

_LATE_S = 1.0
"""If a timer is later than this, the app delayed it, and may not have read messages that arrived."""

_ROUNDING_S = 0.001


class ServerWatch:
    """The responses that are due on one stream.

    Parameters
    ----------
    is_due
        Whether a device waits for a response.
    on_change
        Called when the server becomes silent (True), and when a message arrives again (False).
    """

    def __init__(self, is_due: Callable[[str], bool], on_change: Callable[[bool], None]) -> None:
        self._is_due = is_due
        self._on_change = on_change
        self._requested_s: dict[str, float] = {}  # by device: start of its wait
        self._arrived_s = 0.0
        self._is_silent = False
        self._timer: asyncio.TimerHandle | None = None

    def requested(self, device_id: str) -> None:
        """Record that a request with a response was queued."""
        loop = asyncio.get_running_loop()
        self._requested_s.setdefault(device_id, loop.time())
        if self._timer is None and not self._is_silent:
            self._timer = loop.call_later(SILENCE_S, self._look)

    def arrived(self) -> None:
        """Record that a message of any kind has arrived."""
        self._arrived_s = asyncio.get_running_loop().time()
        if self._is_silent:
            self._is_silent = False
            self._look()
            self._on_change(False)

    def responded(self, device_id: str) -> None:
        """Record that a device has received a message, which may be the response that was due."""
        if device_id in self._requested_s and not self._is_due(device_id):
            del self._requested_s[device_id]

    def clear(self) -> None:
        """Reset the state: the stream has ended."""
        self._requested_s.clear()
        self._is_silent = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        """Decide whether the server is silent, or set the timer for the next check."""
        timer, self._timer = self._timer, None
        self._requested_s = {one: at for one, at in self._requested_s.items() if self._is_due(one)}
        if not self._requested_s:
            return
        loop = asyncio.get_running_loop()
        now_s = loop.time()
        if timer is not None and now_s - timer.when() > _LATE_S:
            self._arrived_s = now_s
        since_s = max(self._arrived_s, min(self._requested_s.values()))
        left_s = since_s + SILENCE_S - now_s
        if left_s > _ROUNDING_S:
            self._timer = loop.call_later(left_s, self._look)
            return
        self._is_silent = True
        self._on_change(True)
