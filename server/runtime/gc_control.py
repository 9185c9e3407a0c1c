"""Control of Python's cycle collector: it runs when there may be cycles, over young objects.

Messages in progress are tens of thousands of objects that reference counting frees. By default the
collector visits them, and all sessions, again and again: a fifth of a server's time under load. The
sources of cycles are known: gRPC, five objects for each call that starts; and exceptions. So the young
objects are collected between batches after one of those, and then frozen. All objects are collected once
there were enough calls to matter, for at most a hundredth of the time.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable

_WEIGHT_MAX = 1_000_000
"""Weight at which all objects are collected, which takes some 40 ms per thousand devices."""

_TIME_SHARE = 0.01
"""Maximum share of the time in which all objects are collected."""


class GcControl:
    """Runs Python's collector when nothing is in progress. Operations cost O(1), except a collection.

    Parameters
    ----------
    clock
        Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._is_in_charge = False
        self._is_due = False
        self._weight = 0
        self._full_from_s = -math.inf
        """When all objects may be collected again."""

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
        if self._weight >= _WEIGHT_MAX and self._clock() >= self._full_from_s:
            self._collect_all()
        elif self._is_due:
            gc.collect(0)
        self._is_due = False
        gc.freeze()

    def _collect_all(self) -> None:
        """Collect all objects, and set when that may happen again."""
        self._weight = 0
        began_s = self._clock()
        gc.unfreeze()
        gc.collect()
        ended_s = self._clock()
        self._full_from_s = ended_s + (ended_s - began_s) / _TIME_SHARE
