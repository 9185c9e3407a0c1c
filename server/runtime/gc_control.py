"""The cycle collector: it looks where there may be cycles, and lets alone what has stayed.

Messages under way are ten thousands of objects that reference counting frees. By itself the collector
looks at them, and at all sessions, again and again: a fifth of a server's time under load. What leaves
cycles is known: gRPC, five objects for each call that begins; and exceptions. So what is young is looked
at, between batches, when there was one of those, and then set aside. All there is is looked at when so
many calls were made that it matters.
"""

from __future__ import annotations

import gc

_WEIGHT_MAX = 1_000_000
"""When all there is is looked at, which takes some 40 ms a thousand devices."""


class GcControl:
    """Lets Python's collector look when nothing is under way. Each operation O(1), but for the look."""

    def __init__(self) -> None:
        self._is_in_charge = False
        self._is_due = False
        self._weight = 0

    def take_over(self) -> None:
        """From now on Python's collector looks only when this lets it."""
        gc.disable()
        gc.collect()
        gc.freeze()
        self._is_in_charge = True

    def suspect(self, weight: int = 1) -> None:
        """Note that something happens that may leave cycles."""
        self._is_due = True
        self._weight += weight

    def rest(self) -> None:
        """Look if there may be cycles, and set aside what has stayed, once `take_over` was called."""
        if not self._is_in_charge:
            return
        if self._weight >= _WEIGHT_MAX:
            self._weight = 0
            gc.unfreeze()
            gc.collect()
        elif self._is_due:
            gc.collect(0)
        self._is_due = False
        gc.freeze()
