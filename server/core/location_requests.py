"""Questions to devices where they are (modes ELLIPSE, NEAREST): who was asked, when, who did not answer.

Operations: O(1) a question. Questions are numbered, so that a barrier can wait for those asked before it.
"""

from __future__ import annotations

from collections.abc import Iterable


class LocationRequests:
    """The questions under way, by subscription."""

    def __init__(self) -> None:
        self.latest = 0
        """The number of the last question asked."""
        self._asked: dict[int, tuple[int, int]] = {}  # handle -> number of the question, when

    def ask(self, handle: int, now_ms: int) -> None:
        """Note that the device of a subscription was asked."""
        self.latest += 1
        self._asked[handle] = (self.latest, now_ms)

    def answered(self, handles: Iterable[int]) -> None:
        """Note that nobody waits for the devices of these subscriptions any more."""
        for handle in handles:
            self._asked.pop(handle, None)

    def oldest(self) -> int:
        """Return the number of the oldest question without an answer; beyond all if there is none."""
        return next((number for number, _ in self._asked.values()), self.latest + 1)

    def late(self, before_ms: int) -> int | None:
        """Return the subscription asked longest ago, if that was before this time."""
        for handle, (_, since_ms) in self._asked.items():
            return handle if since_ms < before_ms else None
        return None

    def since_ms(self, handle: int) -> int:
        """Return when the device of a subscription was asked."""
        return self._asked[handle][1]
