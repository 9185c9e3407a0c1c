"""Positions that are most likely a mistake: longitude and latitude swapped, or another city's server.

They are valid all the same: an area is where objects may be, and a device outside is served. But an app's
developer is warned, once a device. No position is in the warning.

Operations: O(1) a position.
"""

from __future__ import annotations

import math
import warnings

from safe_region.frame import Frame

_LAT_MAX_DEG = 90.0
_M_PER_KM = 1000.0


class PlacementWarning(UserWarning):
    """A device is where no device of this server is likely to be."""


class Placement:
    """Whether to warn of the positions of one device.

    Parameters
    ----------
    device_id
        For the warning.
    """

    def __init__(self, device_id: str) -> None:
        self._device_id = device_id
        self._has_warned = False

    def check(self, frame: Frame, lon: float, lat: float, stacklevel: int) -> None:
        """Warn of a position, unless there has been a warning; `stacklevel` as seen from the caller."""
        if self._has_warned or frame.maxdist_m <= 0.0 or frame.covers(lon, lat):
            return
        why = _mistake(frame, lon, lat)
        if why:
            self._has_warned = True
            message = f"device {self._device_id!r}: {why}"
            warnings.warn(message, PlacementWarning, stacklevel=stacklevel + 1)


def _mistake(frame: Frame, lon: float, lat: float) -> str:
    """Return what is suspicious about a position outside the area; empty if nothing is."""
    area = frame.area
    bounds = f"lon {area.lon_min:g} to {area.lon_max:g}, lat {area.lat_min:g} to {area.lat_max:g}"
    if abs(lon) <= _LAT_MAX_DEG and frame.covers(lat, lon):
        return (
            "its position is outside the service area, and inside with lon and lat swapped: the area is "
            f"{bounds}"
        )
    point = frame.project(lon, lat)
    low, high = frame.project(area.lon_min, area.lat_min), frame.project(area.lon_max, area.lat_max)
    dx_m = max(low.x_m - point.x_m, point.x_m - high.x_m, 0.0)
    dy_m = max(low.y_m - point.y_m, point.y_m - high.y_m, 0.0)
    beyond_m = math.sqrt(dx_m * dx_m + dy_m * dy_m)
    if beyond_m <= frame.maxdist_m:
        return ""
    return (
        f"its position is {beyond_m / _M_PER_KM:,.0f} km outside the service area, {bounds}: nothing can "
        "be published there, and distances are not those on the ground"
    )
