"""Dwell times: the time for which an object has matched without a miss before it enters the result.

The time starts when the object was created, or at the first position at which it matched, whichever is
later. A position at which the object does not match ends it. The timers keep positions for objects that
arrive later, in a delta that was in transit, so the time of arrival does not matter. The device decides
about dwell times alone and sends nothing.

Operations: a position O(buffer), a delta O(objects added * positions kept).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from nearcast.model import LiveObject
from safe_region.earth.frame import Point
from safe_region.regions.ranges import FixedRegion

POSITIONS_MAX = 256
"""Number of kept positions. The time of an object that arrives later starts at the first of them."""


class DwellTimers:
    """Start times of the matches of one buffer. Another instance of the app starts them again.

    Parameters
    ----------
    dwell_ms
        Time for which an object must have matched.
    region
        The buffer and its test for matches.
    """

    def __init__(self, dwell_ms: int, region: FixedRegion) -> None:
        self._dwell_ms = dwell_ms
        self._region = region
        self._positions: deque[tuple[int, Point]] = deque(maxlen=POSITIONS_MAX)
        self._since: dict[int, int] = {}
        self._emitted_ms = 0
        """Server time up to which the ends of dwell times have been reported."""

    def move(self, now_ms: int, point: Point, objects: Mapping[int, LiveObject]) -> None:
        """Record a position."""
        self._positions.append((now_ms, point))
        self._since = {
            one: self._since.get(one, max(objects[one].created_ms, now_ms))
            for one in self._region.buffer
            if self._region.matches(one, point.x_m, point.y_m)
        }

    def hold(
        self, now_ms: int, point: Point, objects: Mapping[int, LiveObject], added: Iterable[int]
    ) -> None:
        """Record the changes that a delta made to the buffer."""
        if not self._positions:
            self._positions.append((now_ms, point))
        buffer = self._region.buffer
        self._since = {one: since_ms for one, since_ms in self._since.items() if one in buffer}
        for one in added:
            if one in buffer and one not in self._since:
                started_ms = self._started_ms(one)
                if started_ms is not None:
                    self._since[one] = max(objects[one].created_ms, started_ms)

    def _started_ms(self, object_id: int) -> int | None:
        """Return the time of the first position since which an object matches; None if it does not."""
        found = None
        for given_ms, point in reversed(self._positions):
            if not self._region.matches(object_id, point.x_m, point.y_m):
                break
            found = given_ms
        return found

    def forget(self, object_ids: Iterable[int]) -> None:
        """Drop the start times of objects that have expired."""
        for one in object_ids:
            self._since.pop(one, None)

    def is_over(self, object_id: int, now_ms: int) -> bool:
        """Return whether an object has matched for the dwell time."""
        since_ms = self._since.get(object_id)
        return since_ms is not None and now_ms - since_ms >= self._dwell_ms

    def next_ms(self) -> int:
        """Return the server time of the next end of a dwell time that is not reported; 0 for never."""
        ends = (since_ms + self._dwell_ms for since_ms in self._since.values())
        return min((end_ms for end_ms in ends if end_ms > self._emitted_ms), default=0)

    def pass_time(self, now_ms: int) -> bool:
        """Advance to a time; return whether any dwell time has ended since the last call."""
        next_ms = self.next_ms()
        self._emitted_ms = max(self._emitted_ms, now_ms)
        return 0 < next_ms <= now_ms
