"""Circles on the ground within which a device has nothing to report, for the geofencing of phones."""

from __future__ import annotations

import math
from typing import NamedTuple

from nearcast.model import LiveObject
from safe_region.earth.frame import EARTH_RADIUS_M, LONGITUDE_MAX_DEG, Frame

_ELLIPSOID = 0.994
"""A degree of latitude is up to 0.56 % shorter on WGS84 than on the sphere; a degree of longitude never
is."""

_ELLIPSOID_MAX = 1.0045
"""A degree of latitude or longitude is up to 0.45 % longer on WGS84 than on the sphere."""

_RADIUS_M_MAX = 100_000.0
"""Larger radii are reduced to this one: the Earth is not a plane. Infinite radii stay infinite."""


class Geofence(NamedTuple):
    """A circle within which the device has nothing to report, until one of its buffers changes."""

    lon: float
    """Longitude of the centre, the true position of the device, in degrees."""
    lat: float
    """Latitude of the centre, in degrees."""
    radius_m: float
    """Radius on the ground, in metres; infinite if the device may go anywhere, 0 if it may not move."""
    until_ms: int
    """Server time in milliseconds at which the next object of the device expires or leaves a window of
    seconds; 0 for never. Request a new circle then. The server reports the objects that leave a window of
    a count."""


class OsRegion(NamedTuple):
    """A circle on the ground for the geofencing of a phone."""

    lon: float
    """Longitude of the centre, in degrees."""
    lat: float
    """Latitude of the centre, in degrees."""
    radius_m: float
    """Radius on the ground, in metres."""
    until_ms: int
    """Server time in milliseconds at which the object expires or leaves a window of seconds; 0 for the
    refresh circle, which does not end."""
    object: LiveObject | None
    """The object of a place; None for the refresh circle."""


class OsRegions(NamedTuple):
    """The circles that a phone monitors while the app sleeps. See `Subscription.os_regions`."""

    places: list[OsRegion]
    """Circles of the nearest objects, nearest first: wake the app when the phone enters one."""
    refresh: OsRegion | None
    """Circle about the device: wake the app when the phone leaves it. None if it would be too small, and
    if the device holds all matches and each has a circle."""
    must_stay_awake: bool
    """Whether the device may enter a place without a circle before it leaves any circle: the refresh
    circle would be too small."""


def ground_radius_m(frame: Frame, lon: float, lat: float, radius_m: float) -> float:
    """Return the radius of a circle on the ground that lies within a circle on the plane.

    Both circles have the same centre. Away from the middle of the area, a metre on the ground may be more
    than a metre on the plane. Distances on the ground are geodesics of WGS84, as phones measure them. No
    circle reaches beyond the antimeridian, where the plane ends.
    """
    if math.isinf(radius_m):
        return radius_m
    edge_m = (LONGITUDE_MAX_DEG - abs(lon)) * frame.x_m_per_deg
    radius_m = min(radius_m, edge_m, _RADIUS_M_MAX)
    scale = EARTH_RADIUS_M * math.pi / 180.0
    edge_deg = min(90.0, abs(lat) + radius_m / scale)
    east = scale * math.cos(math.radians(edge_deg)) / frame.x_m_per_deg
    return radius_m * _ELLIPSOID * min(1.0, east)


def ground_extent_m(frame: Frame, lat: float, radius_m: float) -> float:
    """Return the radius of a circle on the ground that contains a circle on the plane.

    Both circles have the same centre, at a latitude in degrees. A straight path on the plane is at most
    that much longer on the ground, wherever it is within the circle.
    """
    scale = EARTH_RADIUS_M * math.pi / 180.0
    edge_deg = max(0.0, abs(lat) - radius_m / scale)
    east = scale * math.cos(math.radians(edge_deg)) / frame.x_m_per_deg
    return radius_m * _ELLIPSOID_MAX * max(1.0, east)
