"""Questions to devices where they are (modes ELLIPSE, NEAREST): who was asked, when, who did not answer.

Nobody calls this on a report's way while nothing waits for a position (`MatchingService.pending`).

Operations: O(1) a question. Questions are numbered, so that a barrier can wait for those asked before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable


class LocationRequests:
    """The questions under way, by subscription."""

    def __init__(self) -> None:
        self._latest = 0
        self._requested: dict[int, tuple[int, int]] = {}  # handle -> number of the question, when
        self._waiting: list[tuple[int, Callable[[], None]]] = []  # number of a question, who waits

    def ask(self, handle: int, now_ms: int) -> None:
        """Note that the device of a subscription was asked."""
        self._latest += 1
        self._requested[handle] = (self._latest, now_ms)

    def answered(self, handles: Iterable[int]) -> None:
        """Note that nobody waits for the devices of these subscriptions any more."""
        for handle in handles:
            self._requested.pop(handle, None)
        if self._waiting:
            oldest = next((number for number, _ in self._requested.values()), self._latest + 1)
            self._end_waiting(oldest)

    def when_answered(self, done: Callable[[], None]) -> None:
        """Call something when all that have been asked have answered, or are given up."""
        if self._requested:
            self._waiting.append((self._latest, done))
        else:
            done()

    def end_waiting(self) -> None:
        """Let nobody wait any longer for answers."""
        self._end_waiting(self._latest + 1)

    def _end_waiting(self, oldest: int) -> None:
        over = [done for number, done in self._waiting if number < oldest]
        self._waiting = [one for one in self._waiting if one[0] >= oldest]
        for done in over:
            done()

    def late(self, before_ms: int) -> int | None:
        """Return the subscription asked longest ago, if that was before this time."""
        for handle, (_, since_ms) in self._requested.items():
            return handle if since_ms < before_ms else None
        return None

    def since_ms(self, handle: int) -> int:
        """Return when the device of a subscription was asked."""
        return self._requested[handle][1]
