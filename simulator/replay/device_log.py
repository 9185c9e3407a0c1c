"""The reports of devices and the objects that they hold, tick by tick, for the live map.

Memory is O(reports + changes of held objects), for at most `DEVICES_MAX` devices and `HOLDINGS_MAX`
changes of each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from nearcast import Boolean, Spec, Subscription
from safe_region.earth.frame import Point
from safe_region.regions.anchored import AnchoredRegion
from safe_region.regions.ranges import FixedRegion
from safe_region.regions.region import Region
from simulator.replay.audit import Place

DEVICES_MAX = 500
"""The number of devices that are recorded: the first ones."""

HOLDINGS_MAX = 1_024
"""The number of changes of a device's held objects that are recorded; from then on it has none."""

ObjectName = tuple[str, int]
"""An object of the simulation: its key, and the time in the run at which it is published."""


class Reported(NamedTuple):
    """A report of a device."""

    device_id: str
    run_ms: int
    lon: float
    lat: float


class Holding(NamedTuple):
    """A change of the live objects that a device holds for its subscription, and their bound."""

    device_id: str
    run_ms: int
    anchor: Point
    bound_m: float
    """The reach of a top-k subscription, the slack of a range."""
    next_id: int
    """The object whose length is the reach; 0 for none."""
    is_part: bool
    """Whether more objects match than the server sends."""
    changes: tuple[tuple[int, float], ...]
    """Ids, and the constant parts of their lengths in metres; NaN for objects no longer held."""


@dataclass(slots=True)
class _Logged:
    """The present state of a device."""

    reports: int = 0
    """The number of reports that are recorded."""
    holding_count: int = 0
    bound: tuple[Point, float, int, bool] | None = None
    held: dict[int, float] = field(default_factory=dict)


class DeviceLog:
    """Records reports and held objects.

    Parameters
    ----------
    name_of
        Returns the simulation's name of a live object by its id; None if there is no such object.
    """

    def __init__(self, name_of: Callable[[int], ObjectName | None]) -> None:
        self._name_of = name_of
        self._logged: dict[str, _Logged] = {}
        self.reports: list[Reported] = []
        """In the order of time."""
        self.holdings: list[Holding] = []
        """In the order of time: one for each change."""
        self.names: dict[int, ObjectName] = {}
        """The objects of the holdings, by id."""
        self.specs: dict[str, Spec | None] = {}
        """The subscription of each device, of which the held objects are recorded."""

    @property
    def device_ids(self) -> list[str]:
        """The recorded devices."""
        return list(self._logged)

    def add(self, device_id: str) -> None:
        """Record a device from now on, unless there are enough."""
        if len(self._logged) < DEVICES_MAX:
            self._logged.setdefault(device_id, _Logged())

    def report(self, place: Place, report_count: int, run_ms: int) -> None:
        """Record the reports of a device since the call before; `report_count` is their total number."""
        logged = self._logged[place.device_id]
        new = report_count - logged.reports
        self.reports += [Reported(place.device_id, run_ms, place.lon, place.lat)] * new
        logged.reports = report_count

    def hold(self, device_id: str, found: Sequence[Subscription], run_ms: int, now_ms: int) -> None:
        """Record the objects of a device if they differ from those of the call before. O(buffer)."""
        logged = self._logged[device_id]
        subscription = recorded(found)
        self.specs[device_id] = None if subscription is None else subscription.spec
        if subscription is None or logged.holding_count > HOLDINGS_MAX:
            return
        bound, held = self._bound(subscription.region), self._held(subscription.region, now_ms)
        if (bound, held) == (logged.bound, logged.held):
            return
        changes = _changes(logged.held, held)
        logged.holding_count += 1
        if logged.holding_count > HOLDINGS_MAX:
            bound, changes = (subscription.region.anchor, math.nan, 0, False), ()
        self.holdings.append(Holding(device_id, run_ms, *bound, changes))
        logged.bound, logged.held = bound, held

    def _bound(self, region: Region) -> tuple[Point, float, int, bool]:
        """Return the anchor, the reach or the slack, the object at the reach, whether it is a part."""
        if isinstance(region, AnchoredRegion):
            next_id = region.reach_id if self._is_named(region.reach_id) else 0
            return region.anchor, region.reach_m, next_id, False
        if isinstance(region, FixedRegion):
            return region.anchor, region.slack_m, 0, region.too_many
        raise TypeError(f"no bound is known of a {type(region).__name__}")

    def _held(self, region: Region, now_ms: int) -> dict[int, float]:
        """Return the live objects, and the constant parts of their lengths."""
        live = [one for one in region.buffer.values() if one.expiry_ms > now_ms]
        return {one.object_id: one.r_m for one in live if self._is_named(one.object_id)}

    def _is_named(self, object_id: int) -> bool:
        """Record the name of an object; return whether it has one."""
        if object_id not in self.names:
            name = self._name_of(object_id)
            if name is not None:
                self.names[object_id] = name
        return object_id in self.names


def recorded(found: Sequence[Subscription]) -> Subscription | None:
    """Return the first top-k subscription; without one, the first range that moves."""
    moving = [one for one in found if not isinstance(one.spec, Boolean) or one.spec.moving]
    return min(moving, key=lambda one: isinstance(one.spec, Boolean), default=None)


def _changes(before: dict[int, float], held: dict[int, float]) -> tuple[tuple[int, float], ...]:
    gone = [(one, math.nan) for one in before if one not in held]
    return (*gone, *((one, r_m) for one, r_m in held.items() if before.get(one) != r_m))
