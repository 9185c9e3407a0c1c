"""Control of Python's cycle collector: it runs when there may be cycles, over young objects.

Messages in progress are tens of thousands of objects that reference counting frees. By default the
collector visits them, and all sessions, again and again: a fifth of a server's time under load. The
sources of cycles are known: gRPC, five objects for each call that starts; and exceptions. So the young
objects are collected between batches after one of those, and then frozen. All objects are collected once
there were enough calls to matter.
"""

from __future__ import annotations

import gc

_WEIGHT_MAX = 1_000_000
"""Weight at which all objects are collected, which takes some 40 ms per thousand devices."""


class GcControl:
    """Runs Python's collector when nothing is in progress. Operations cost O(1), except a collection."""

    def __init__(self) -> None:
        self._is_in_charge = False
        self._is_due = False
        self._weight = 0

    def take_over(self) -> None:
        """Disable Python's automatic collection: from now on `rest` runs the collector."""
        gc.disable()
        gc.collect()
        gc.freeze()
        self._is_in_charge = True

    def suspect(self, weight: int = 1) -> None:
        """Record an event that may leave cycles."""
        self._is_due = True
        self._weight += weight

    def rest(self) -> None:
        """Collect if there may be cycles, then freeze the remaining objects; only after `take_over`."""
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
