"""Whether the server responds, while a response is due: a connection may be open and nobody behind it.

A request that the server answers starts a timer, unless one runs. When it fires with a response still due
and nothing whatever has arrived for `SILENCE_S`, the server counts as silent, until something arrives. A
silent server costs nothing while nothing is due: the connection's keepalive and the pings that renew the
lease notice it.

Operations: O(1) a request and a message, O(subscriptions of a device) a response, O(devices with a
response due) when the timer fires: every `SILENCE_S` while devices speak.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

SILENCE_S = 4.0
"""Apps are to know within five seconds, and a server that is busy for a second or two is not dead."""

_LATE_S = 1.0
"""A timer that is later than this was held up by the app, which may not have read what has arrived."""

_ROUNDING_S = 0.001


class ServerWatch:
    """The responses that are due on one stream.

    Parameters
    ----------
    is_due
        Whether a device waits for a response.
    on_change
        Called when the server falls silent (True), and when something arrives again (False).
    """

    def __init__(self, is_due: Callable[[str], bool], on_change: Callable[[bool], None]) -> None:
        self._is_due = is_due
        self._on_change = on_change
        self._requested_s: dict[str, float] = {}  # by device: when it began to wait
        self._arrived_s = 0.0
        self._is_silent = False
        self._timer: asyncio.TimerHandle | None = None

    def requested(self, device_id: str) -> None:
        """Note that a request was queued that the server answers."""
        loop = asyncio.get_running_loop()
        self._requested_s.setdefault(device_id, loop.time())
        if self._timer is None and not self._is_silent:
            self._timer = loop.call_later(SILENCE_S, self._look)

    def arrived(self) -> None:
        """Note that a message has arrived, whatever it is."""
        self._arrived_s = asyncio.get_running_loop().time()
        if self._is_silent:
            self._is_silent = False
            self._look()
            self._on_change(False)

    def responded(self, device_id: str) -> None:
        """Note that a device has received something: it may have been what it waited for."""
        if device_id in self._requested_s and not self._is_due(device_id):
            del self._requested_s[device_id]

    def clear(self) -> None:
        """Forget everything: the stream has ended."""
        self._requested_s.clear()
        self._is_silent = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        """Decide whether the server is silent; look again when it may be."""
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
