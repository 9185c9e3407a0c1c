"""Circles on the ground within which a device has nothing to say, for the geofencing of phones."""

from __future__ import annotations

import math
from typing import NamedTuple

from safe_region.frame import EARTH_RADIUS_M, LONGITUDE_MAX_DEG, Frame

_ELLIPSOID = 0.994
"""A degree of latitude is up to 0.56 % shorter on WGS84 than on the sphere, one of longitude never."""

_RADIUS_M_MAX = 100_000.0
"""Beyond, nobody needs it, and the Earth is no plane. Infinite radii stay infinite."""


class Geofence(NamedTuple):
    """A circle within which the device has nothing to say, until something in its buffers changes."""

    lon: float
    """Its centre is the device, true position."""
    lat: float
    radius_m: float
    """On the ground; infinite if the device may go anywhere, 0 if it may not move."""
    until_ms: int
    """Server time at which the next object that the device holds expires, or is too old for a window of
    so many seconds: look again. 0 for never. What leaves a window of so many objects the server tells."""


def ground_radius_m(frame: Frame, lon: float, lat: float, radius_m: float) -> float:
    """Return the radius of a circle on the ground that lies within one on the plane about a place.

    Away from the middle of the area a metre on the ground may be more than one on the plane. Distances on
    the ground are geodesics of WGS84, as phones measure them. No circle reaches beyond the antimeridian,
    where the plane ends and the ground does not.
    """
    if math.isinf(radius_m):
        return radius_m
    edge_m = (LONGITUDE_MAX_DEG - abs(lon)) * frame.x_m_per_deg
    radius_m = min(radius_m, edge_m, _RADIUS_M_MAX)
    scale = EARTH_RADIUS_M * math.pi / 180.0
    edge_deg = min(90.0, abs(lat) + radius_m / scale)
    east = scale * math.cos(math.radians(edge_deg)) / frame.x_m_per_deg
    return radius_m * _ELLIPSOID * min(1.0, east)
