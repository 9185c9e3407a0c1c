"""A device whose reports are sent twice, or late, or again when they are long out of date."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from typing import Any

from tests.chaos.crowd import Member

_SHARE = 0.5
_KEPT = 20
_APART_S = 0.001
"""Between two messages that are late: timers for the same instant have no order."""


class Tamper:
    """Stands between a device and its stream, until `stop`.

    Parameters
    ----------
    member
        Whose reports.
    chance
        Decides which.
    late_s
        How late reports are, at most; 0 for those that are sent twice.
    """

    def __init__(self, member: Member, chance: random.Random, late_s: float = 0.0) -> None:
        self.count = 0
        self._voice: Any = member.device._session.sender
        self._session = member.device._session
        self._chance = chance
        self._late_s = late_s
        self._send: Callable[[Any], None] = self._voice._send
        self._voice._send = self._pass
        self._kept: list[Any] = []
        self._due_s = 0.0
        self._late: deque[Any] = deque()

    def stop(self) -> None:
        """Interfere no more; say a few old things once again, if the device is attached."""
        self._voice._send = self._send
        while self._late:
            self._send_next()
        for request in self._chance.sample(self._kept, min(3, len(self._kept))):
            self._say_again(request)

    def _pass(self, request: Any) -> None:
        is_chosen = request.WhichOneof("command") == "report" and self._chance.random() < _SHARE
        if is_chosen:
            self._kept = [*self._kept[-_KEPT:], request]
            self.count += 1
        if self._late_s:
            self._send_late(request, self._chance.uniform(0.0, self._late_s) if is_chosen else 0.0)
            return
        for _ in range(1 + is_chosen):
            self._send(request)

    def _send_late(self, request: Any, delay_s: float) -> None:
        """Send after a while, and after what was said before: a stream keeps the order."""
        loop = asyncio.get_running_loop()
        self._due_s = max(self._due_s + _APART_S, loop.time() + delay_s)
        self._late.append(request)
        loop.call_at(self._due_s, self._send_next)

    def _send_next(self) -> None:
        if not self._late:
            return
        request = self._late.popleft()
        if request.WhichOneof("command") == "hello":
            self._send(request)
        else:
            self._say_again(request)

    def _say_again(self, request: Any) -> None:
        if self._session.is_online:
            self._send(request)
