"""Subscriptions that cost more than others to evaluate: their last delta was large. O(1) per delta."""

from __future__ import annotations

from collections.abc import Iterable

from server.model import Delta

CHANGE_US = 4.0
"""Cost in microseconds of an object that enters or leaves the held ones, and is written to the device."""

_CHANGES_MIN = 32
"""Number of changes from which the cost of a delta is remembered."""


class DearSubscriptions:
    """The extra costs of subscriptions in microseconds, by handle. Most subscriptions have none."""

    def __init__(self) -> None:
        self._cost_us: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self._cost_us)

    def get(self, handle: int) -> float:
        """Return the extra cost of a subscription in microseconds; 0 for most."""
        return self._cost_us.get(handle, 0.0)

    def note(self, deltas: Iterable[Delta]) -> None:
        """Record the costs of evaluations. The cost of a subscription with a smaller delta is halved."""
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
        """Remove a subscription that has ended."""
        self._cost_us.pop(handle, None)
