"""Warnings of likely mistakes in positions: swapped longitude and latitude, or another city's server.

Such positions are valid: objects must be in the area, but the server also serves devices outside it. The
SDK warns the app's developer once for the positions of a device, and once for its ranges. The warning
contains no position.

Operations: O(1) a position, O(corners) a range.
"""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

from nearcast.limits import LAT_MAX_DEG
from nearcast.model import Boolean, Spec
from safe_region.earth.frame import Frame
from safe_region.earth.shapes import Bounds, Circle, Polygon

_M_PER_KM = 1000.0


class PlacementWarning(UserWarning):
    """The position of a device, or a fixed range, is likely a mistake for this server."""


class Placement:
    """Warns of the positions of one device.

    Parameters
    ----------
    device_id
        Name of the device, for the warning.
    """

    def __init__(self, device_id: str) -> None:
        self._device_id = device_id
        self._has_warned = False

    def check(self, frame: Frame, lon: float, lat: float, stacklevel: int) -> None:
        """Warn once of a position that is likely a mistake; `stacklevel` counts from the caller."""
        if self._has_warned or frame.maxdist_m <= 0.0 or frame.covers(lon, lat):
            return
        why = _mistake(frame, lon, lat)
        if why:
            self._has_warned = True
            message = f"device {self._device_id!r}: {why}"
            warnings.warn(message, PlacementWarning, stacklevel=stacklevel + 1)

    def check_range(self, frame: Frame, spec: Spec, stacklevel: int) -> None:
        """Warn of a fixed range that does not touch the area."""
        extent = _extent(spec)
        if extent is None or frame.maxdist_m <= 0.0:
            return
        beyond_m = _beyond_m(frame, extent)
        if beyond_m <= 0.0:
            return
        if _beyond_m(frame, extent.swapped()) <= 0.0:
            why = f"and inside with lon and lat swapped: the area is {_bounds_text(frame)}"
        else:
            why = (
                f"{_bounds_text(frame)}, by {beyond_m / _M_PER_KM:,.1f} km: no objects can be published "
                "there"
            )
        message = (
            f"device {self._device_id!r}: the range of a subscription is outside the service area, {why}"
        )
        warnings.warn(message, PlacementWarning, stacklevel=stacklevel + 1)


class _Extent(NamedTuple):
    """A rectangle around a fixed range, extended by a radius."""

    lon_min: float
    lat_min: float
    lon_max: float
    lat_max: float
    radius_m: float = 0.0
    """Distance in metres by which the extent reaches beyond the rectangle."""

    def swapped(self) -> _Extent:
        """Return the extent with longitudes and latitudes swapped."""
        return _Extent(self.lat_min, self.lon_min, self.lat_max, self.lon_max, self.radius_m)


def _extent(spec: Spec) -> _Extent | None:
    """Return the extent of the range of a spec; None if it has no fixed range."""
    if not isinstance(spec, Boolean) or spec.moving:
        return None
    match spec.range:
        case Circle(radius_m, (lon, lat)):
            return _Extent(lon, lat, lon, lat, radius_m)
        case Bounds():
            where = spec.range
            return _Extent(where.lon_min, where.lat_min, where.lon_max, where.lat_max)
        case Polygon(outer) if outer:
            lons, lats = zip(*outer, strict=True)
            return _Extent(min(lons), min(lats), max(lons), max(lats))
        case _:
            return None


def _beyond_m(frame: Frame, extent: _Extent) -> float:
    """Return the distance of an extent from the area on the plane; at most 0 if they touch."""
    area = frame.area
    low, high = frame.project(area.lon_min, area.lat_min), frame.project(area.lon_max, area.lat_max)
    first = frame.project(extent.lon_min, extent.lat_min)
    last = frame.project(extent.lon_max, extent.lat_max)
    dx_m = max(low.x_m - last.x_m, first.x_m - high.x_m, 0.0)
    dy_m = max(low.y_m - last.y_m, first.y_m - high.y_m, 0.0)
    return math.sqrt(dx_m * dx_m + dy_m * dy_m) - extent.radius_m


def _bounds_text(frame: Frame) -> str:
    area = frame.area
    return f"lon {area.lon_min:g} to {area.lon_max:g}, lat {area.lat_min:g} to {area.lat_max:g}"


def _mistake(frame: Frame, lon: float, lat: float) -> str:
    """Describe the likely mistake of a position outside the area; empty if there is none."""
    bounds = _bounds_text(frame)
    if abs(lon) <= LAT_MAX_DEG and frame.covers(lat, lon):
        return (
            "its position is outside the service area, and inside with lon and lat swapped: the area is "
            f"{bounds}"
        )
    beyond_m = _beyond_m(frame, _Extent(lon, lat, lon, lat))
    if beyond_m <= frame.maxdist_m:
        return ""
    return (
        f"its position is {beyond_m / _M_PER_KM:,.0f} km outside the service area, {bounds}: no objects "
        "can be published there, and distances differ from those on the ground"
    )
