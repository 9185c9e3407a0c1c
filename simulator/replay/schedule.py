"""The objects to publish and to retract at each tick. Only one row is read ahead."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import NamedTuple

from simulator.workload.rows import ObjectRow


class Due(NamedTuple):
    """The events of a tick, in this order."""

    retractions: list[ObjectRow]
    publications: list[ObjectRow]


class Schedule:
    """Yields objects tick by tick. Memory: the objects that are still to be retracted.

    Parameters
    ----------
    rows
        Objects in the order of their publication.
    period_ms
        The time between two ticks. Events between them happen at the later one.
    """

    def __init__(self, rows: Iterator[ObjectRow], period_ms: int) -> None:
        self._rows = rows
        self._period_ms = period_ms
        self._next = next(rows, None)
        self._retractions: list[tuple[int, str, int, ObjectRow]] = []

    def due(self, tick: int) -> Due:
        """Return the events that are due by a tick and were not by the one before.

        A retraction that is due at the tick of its publication is moved to the next tick.
        """
        retractions = []
        while self._retractions and self._retractions[0][0] <= tick:
            retractions.append(heapq.heappop(self._retractions)[-1])
        publications = []
        while self._next is not None and self._tick(self._next.publish_ms) <= tick:
            row, self._next = self._next, next(self._rows, None)
            publications.append(row)
            if row.retract_ms is not None:
                entry = (self._tick(row.retract_ms), row.object_key, row.publish_ms, row)
                heapq.heappush(self._retractions, entry)
        return Due(retractions, publications)

    def _tick(self, time_ms: int) -> int:
        """Return the first tick at or after a time."""
        return -(-time_ms // self._period_ms)
