"""A device whose reports are sent twice, or late, or again when they are long out of date."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

from tests.chaos.crowd import Member

_SHARE = 0.5
_KEPT = 20


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
        self._voice: Any = member.device._conversation._voice
        self._conversation = member.device._conversation
        self._chance = chance
        self._late_s = late_s
        self._send: Callable[[Any], None] = self._voice._send
        self._voice._send = self._pass
        self._kept: list[Any] = []

    def stop(self) -> None:
        """Interfere no more; say a few old things once again, if the device is attached."""
        self._voice._send = self._send
        for request in self._chance.sample(self._kept, min(3, len(self._kept))):
            self._say_again(request)

    def _pass(self, request: Any) -> None:
        if request.WhichOneof("command") != "report" or self._chance.random() > _SHARE:
            self._send(request)
            return
        self._kept = [*self._kept[-_KEPT:], request]
        self.count += 1
        if self._late_s:
            delay_s = self._chance.uniform(0.0, self._late_s)
            asyncio.get_running_loop().call_later(delay_s, self._say_again, request)
        else:
            self._send(request)
            self._send(request)

    def _say_again(self, request: Any) -> None:
        if self._conversation.is_online:
            self._send(request)
