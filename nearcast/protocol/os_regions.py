"""Circles that a phone monitors while its app sleeps: `Subscription.os_regions`.

Let p be the position of the device, a the anchor, R the radius of the range, and s the slack. The device
holds every match within R + s of a, and so every match within R + s - |a p| of p. The nearest held
objects get a circle each. Let d be the distance from p to the nearest held object without a circle. On
the plane, every match without a circle is at least

    min(R + s - |a p|, d)

from p. `ground_radius_m` returns a distance g on the ground that is not larger. A device within
g - radius_m of p is at least radius_m from each of them. The accuracy of the fix is subtracted as well:
later fixes may be wrong by as much.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol

from nearcast.errors import invalid
from nearcast.geofence import OsRegion, OsRegions, ground_extent_m, ground_radius_m
from nearcast.model import Boolean, LiveObject, Spec
from nearcast.protocol.clock import Clock
from nearcast.protocol.location import Location
from nearcast.protocol.shapes import number
from safe_region.earth.frame import Frame, Point
from safe_region.earth.shapes import Circle
from safe_region.geometry.areas import area_extent
from safe_region.regions.ranges import RangeRegion
from safe_region.regions.region import Buffered

REFRESH_M_MIN = 200.0
"""Least radius of a refresh circle."""

LIMIT_MAX = 99
"""The most circles of objects: Android monitors 100 for an app, and one is the refresh circle."""

UNKNOWN = OsRegions([], None, must_stay_awake=True)
"""The circles of a device that does not know its matches."""


class Fixed(Protocol):
    """What the circles depend on besides the subscription: a fix, on a frame, at a time."""

    clock: Clock
    location: Location
    point: Point
    """Position of the device on the plane."""

    @property
    def frame(self) -> Frame:
        """Service area of the server and its projection."""


def check_request(spec: Spec, radius_m: float, limit: int) -> None:
    """Validate the spec of a subscription, and the arguments of `Subscription.os_regions`.

    Raises
    ------
    RefusedError
        If the spec has no circle that moves, or an argument is out of its limits.
    """
    if not (isinstance(spec, Boolean) and spec.moving and isinstance(spec.range, Circle)):
        raise invalid("spec", spec, "a Boolean of a circle that moves: Circle(radius_m), moving=True")
    most_m = spec.range.radius_m
    metres = f"a number of metres, above 0, at most the radius of the range ({most_m:g})"
    if not 0.0 < number(radius_m, "radius_m", metres) <= most_m:
        raise invalid("radius_m", radius_m, metres)
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= LIMIT_MAX:
        raise invalid("limit", limit, f"a whole number, 1 to {LIMIT_MAX}")


def os_regions(
    device: Fixed,
    region: RangeRegion,
    objects: Mapping[int, LiveObject],
    radius_m: float,
    limit: int,
) -> OsRegions:
    """Return the circles about a device. O(buffer).

    Parameters
    ----------
    device
        The device with its fix.
    region
        The objects that it holds, and their bound.
    objects
        The same objects, as apps see them.
    radius_m, limit
        See `Subscription.os_regions`.
    """
    x_m, y_m = device.point
    nearest = region.nearest(x_m, y_m, device.clock.now_ms())
    places = [
        _place(device.frame, objects[one], region.buffer[one], radius_m) for _, one in nearest[:limit]
    ]
    reach_m = region.reach_m(x_m, y_m)
    if len(nearest) > limit:
        reach_m = min(reach_m, nearest[limit][0])
    if reach_m == math.inf:
        return OsRegions(places, None, must_stay_awake=False)
    refresh = _refresh(device, reach_m, radius_m)
    return OsRegions(places, refresh, must_stay_awake=refresh is None)


def _place(frame: Frame, item: LiveObject, entry: Buffered, radius_m: float) -> OsRegion:
    """Return a circle with all places within a distance of an object or its area."""
    if entry.area is not None:
        extent_m = area_extent(entry.area, entry.x_m, entry.y_m)
        radius_m += ground_extent_m(frame, item.lat, extent_m)
    return OsRegion(item.lon, item.lat, radius_m, entry.expiry_ms, item)


def _refresh(device: Fixed, reach_m: float, radius_m: float) -> OsRegion | None:
    """Return the refresh circle; None if it would be too small."""
    location = device.location
    clear_m = ground_radius_m(device.frame, location.lon, location.lat, reach_m)
    refresh_m = clear_m - radius_m - location.accuracy_m
    if refresh_m < REFRESH_M_MIN:
        return None
    return OsRegion(location.lon, location.lat, refresh_m, 0, None)
