"""Signs of life of silent devices: a ping, which says nothing of where they are.

Operations: O(log n) a device and third of a lease; nothing a message. One timer a stream. In virtual time
nobody waits: `Conversation.pass_time` does it.
"""

from __future__ import annotations

import asyncio
import heapq

from nearcast.protocol.device_session import Conversation


class Heartbeat:
    """The pings of the devices of one stream."""

    def __init__(self) -> None:
        self._due: list[tuple[int, int, Conversation]] = []
        self._latest: dict[Conversation, int] = {}  # the number of its entry; earlier ones do not count
        self._number = 0
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, conversation: Conversation) -> None:
        """Care for a device that the server has welcomed."""
        if conversation.lease_ms and not conversation.clock.is_virtual:
            self._push(conversation)
            self._wake_later()

    def close(self) -> None:
        """Stop."""
        self._due.clear()
        self._latest.clear()
        self._wake_later()

    def _push(self, conversation: Conversation) -> None:
        self._number += 1
        self._latest[conversation] = self._number
        heapq.heappush(self._due, (conversation.beat_due_ms, self._number, conversation))

    def _wake_later(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._due:
            due_ms, _, conversation = self._due[0]
            delay_s = max(0.0, (due_ms - conversation.clock.steady_ms()) / 1000.0)
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._beat)

    def _beat(self) -> None:
        while self._due and self._due[0][0] <= self._due[0][2].clock.steady_ms():
            _, number, conversation = heapq.heappop(self._due)
            if self._latest.get(conversation) != number:
                continue
            conversation.beat()
            if conversation.is_online and conversation.lease_ms:
                self._push(conversation)
            else:
                del self._latest[conversation]
        self._wake_later()
