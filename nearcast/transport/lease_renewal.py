"""Pings that renew the leases of silent devices. A ping has no position.

Operations: O(log n) a device and third of a lease; nothing a message. There is one timer for each stream.
In virtual time there is no timer: `DeviceSession.pass_time` sends the pings.
"""

from __future__ import annotations

import asyncio
import heapq

from nearcast.protocol.device_session import DeviceSession


class LeaseRenewal:
    """Sends the pings of the devices of one stream."""

    def __init__(self) -> None:
        self._due: list[tuple[int, int, DeviceSession]] = []
        self._latest: dict[DeviceSession, int] = {}  # number of the valid entry; earlier ones are ignored
        self._number = 0
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, session: DeviceSession) -> None:
        """Start the pings of a device that the server has welcomed."""
        if session.lease_ms and not session.clock.is_virtual:
            self._push(session)
            self._wake_later()

    def close(self) -> None:
        """Stop all pings."""
        self._due.clear()
        self._latest.clear()
        self._wake_later()

    def _push(self, session: DeviceSession) -> None:
        self._number += 1
        self._latest[session] = self._number
        heapq.heappush(self._due, (session.beat_due_ms, self._number, session))

    def _wake_later(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._due:
            due_ms, _, session = self._due[0]
            delay_s = max(0.0, (due_ms - session.clock.steady_ms()) / 1000.0)
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._beat)

    def _beat(self) -> None:
        while self._due and self._due[0][0] <= self._due[0][2].clock.steady_ms():
            _, number, session = heapq.heappop(self._due)
            if self._latest.get(session) != number:
                continue
            session.beat()
            if session.is_online and session.lease_ms:
                self._push(session)
            else:
                del self._latest[session]
        self._wake_later()
