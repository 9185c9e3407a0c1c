"""Subscriptions that cost more than others to evaluate: their last delta was large. O(1) a delta."""

from __future__ import annotations

from collections.abc import Iterable

from server.model import Delta

CHANGE_US = 4.0
"""An object that enters or leaves what is held, and is written to the device."""

_CHANGES_MIN = 32
"""Changes in a delta from which on it is remembered."""


class DearSubscriptions:
    """What subscriptions cost beyond others, in microseconds, by handle. Most are not in it."""

    def __init__(self) -> None:
        self._cost_us: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self._cost_us)

    def get(self, handle: int) -> float:
        """Return what a subscription costs beyond others."""
        return self._cost_us.get(handle, 0.0)

    def note(self, deltas: Iterable[Delta]) -> None:
        """Note what evaluations have come to. What costs less now is forgotten step by step."""
        known = self._cost_us
        for delta in deltas:
            count = len(delta.add) + len(delta.drop)
            if count >= _CHANGES_MIN:
                known[delta.handle] = CHANGE_US * count
            elif delta.handle in known:
                known[delta.handle] /= 2.0
                if known[delta.handle] < CHANGE_US:
                    del known[delta.handle]

    def forget(self, handle: int) -> None:
        """Forget a subscription that has ended."""
        self._cost_us.pop(handle, None)
