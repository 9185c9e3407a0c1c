"""Location requests to devices (modes ELLIPSE, NEAREST): their times, and the devices that are late.

While no object waits for a position (`MatchingService.pending`), reports do not call this module.
Operations: O(1) per request. Requests are numbered, so that a barrier can wait for the requests sent
before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable


class LocationRequests:
    """The open requests, by subscription."""

    def __init__(self) -> None:
        self._latest = 0
        self._requested: dict[int, tuple[int, int]] = {}  # handle -> number and time of the request
        self._waiting: list[tuple[int, Callable[[], None]]] = []  # number of a request, callback

    def ask(self, handle: int, now_ms: int) -> None:
        """Record that a request was sent to the device of a subscription."""
        self._latest += 1
        self._requested[handle] = (self._latest, now_ms)

    def answered(self, handles: Iterable[int]) -> None:
        """Record that the requests for these subscriptions need no response any more."""
        for handle in handles:
            self._requested.pop(handle, None)
        if self._waiting:
            oldest = next((number for number, _ in self._requested.values()), self._latest + 1)
            self._end_waiting(oldest)

    def when_answered(self, done: Callable[[], None]) -> None:
        """Call `done` when every request sent so far has a response or is given up."""
        if self._requested:
            self._waiting.append((self._latest, done))
        else:
            done()

    def end_waiting(self) -> None:
        """Call all callbacks now, without waiting for responses."""
        self._end_waiting(self._latest + 1)

    def _end_waiting(self, oldest: int) -> None:
        over = [done for number, done in self._waiting if number < oldest]
        self._waiting = [one for one in self._waiting if one[0] >= oldest]
        for done in over:
            done()

    def late(self, before_ms: int) -> int | None:
        """Return the subscription with the oldest request, if that was sent before `before_ms`."""
        for handle, (_, since_ms) in self._requested.items():
            return handle if since_ms < before_ms else None
        return None

    def since_ms(self, handle: int) -> int:
        """Return the time of the request for a subscription."""
        return self._requested[handle][1]
