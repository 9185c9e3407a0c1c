"""How long objects have matched without a miss: they enter the result only after a while.

A time counts from when the object was created, or from the first position at which it matched, whichever
is later; each position at which it does not match ends it. Positions are kept for objects that arrive
later, by a delta that was under way: so it does not matter when that comes. Nobody else knows of it: the
device decides, and stays silent.

Operations: a position O(buffer), a delta O(objects added * positions kept).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from nearcast.model import LiveObject
from safe_region.frame import Point
from safe_region.ranges import FixedRegion

POSITIONS_MAX = 256
"""That are kept. An object that arrives later than so many positions counts from the first of them."""


class DwellTimers:
    """Since when the objects of one buffer have matched. They are the instance's: another begins anew.

    Parameters
    ----------
    dwell_ms
        How long an object must have matched.
    region
        What is held, and where it matches.
    """

    def __init__(self, dwell_ms: int, region: FixedRegion) -> None:
        self._dwell_ms = dwell_ms
        self._region = region
        self._positions: deque[tuple[int, Point]] = deque(maxlen=POSITIONS_MAX)
        self._since: dict[int, int] = {}
        self._emitted_ms = 0
        """Whose time was over by then has been told."""

    def move(self, now_ms: int, point: Point, objects: Mapping[int, LiveObject]) -> None:
        """Take note of a position."""
        self._positions.append((now_ms, point))
        self._since = {
            one: self._since.get(one, max(objects[one].created_ms, now_ms))
            for one in self._region.buffer
            if self._region.matches(one, point.x_m, point.y_m)
        }

    def hold(
        self, now_ms: int, point: Point, objects: Mapping[int, LiveObject], added: Iterable[int]
    ) -> None:
        """Take note of what a delta did to the buffer."""
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
        """Return when the first position was given since which an object matches; None if it does not."""
        found = None
        for given_ms, point in reversed(self._positions):
            if not self._region.matches(object_id, point.x_m, point.y_m):
                break
            found = given_ms
        return found

    def forget(self, object_ids: Iterable[int]) -> None:
        """Take note of what has expired."""
        for one in object_ids:
            self._since.pop(one, None)

    def is_over(self, object_id: int, now_ms: int) -> bool:
        """Whether an object has matched for long enough."""
        since_ms = self._since.get(object_id)
        return since_ms is not None and now_ms - since_ms >= self._dwell_ms

    def next_ms(self) -> int:
        """Return when the next object has matched for long enough, that was not told yet; 0 for never."""
        ends = (since_ms + self._dwell_ms for since_ms in self._since.values())
        return min((end_ms for end_ms in ends if end_ms > self._emitted_ms), default=0)

    def pass_time(self, now_ms: int) -> bool:
        """Say what time it is; return whether some object has matched for long enough by it."""
        next_ms = self.next_ms()
        self._emitted_ms = max(self._emitted_ms, now_ms)
        return 0 < next_ms <= now_ms
