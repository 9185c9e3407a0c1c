"""Compute distances on the ground: geodesics of the WGS84 ellipsoid, in metres, for display.

Results are ranked on the plane of the frame (`frame`), which obeys the triangle inequality.
Users see the distance on the ground. This file computes it, on devices and on the server.

The formula is that of Andoyer and Lambert on reduced latitudes: the great circle of an auxiliary sphere,
and a correction of the first order in the flattening. It needs no iteration, so it cannot fail to
converge. The great circle is computed by haversines, so small distances lose no digits. Error: below
0.001 % up to 10,000 km, below 0.01 % up to 19,000 km, below 0.1 % everywhere, antipodes included.

Plain Python: this file runs on devices. Cost: O(1), some microseconds.

Source: Lambert, W. D., "The distance between two widely separated points on the surface of the earth", J.
Washington Academy of Sciences 32(5), 1942.
"""

from __future__ import annotations

import math

EQUATOR_RADIUS_M = 6378137.0
"""The semi-major axis of WGS84."""

FLATTENING = 1.0 / 298.257223563
"""The flattening of WGS84."""

ANTIPODE_M = 20003931.46
"""Half a meridian, from pole to pole: the largest distance between two places."""


def ground_distance_m(lon: float, lat: float, other_lon: float, other_lat: float) -> float:
    """Return the length of the shortest path between two places on the ellipsoid, in metres, to 0.1 %.

    The result is the same float64 in both directions, and exactly 0 for equal places.

    Parameters
    ----------
    lon, lat
        Degrees (WGS84) of one place.
    other_lon, other_lat
        Degrees of the other place. Longitudes that differ by 360 degrees are the same.

    Returns
    -------
    float
        NaN if a number is not finite.
    """
    if not all(map(math.isfinite, (other_lon - lon, lat, other_lat))):
        return math.nan
    beta, other_beta = _reduced_latitude(lat), _reduced_latitude(other_lat)
    sin2_q = math.sin((other_beta - beta) / 2.0) ** 2
    sin2_p = math.sin((other_beta + beta) / 2.0) ** 2
    half_lon = math.radians(other_lon - lon) / 2.0
    sin2_lon, cos2_lon = math.sin(half_lon) ** 2, math.cos(half_lon) ** 2
    # sin and cos of half the central angle, squared; each a sum of squares, exact near 0.
    sin2 = sin2_q + math.cos(beta) * math.cos(other_beta) * sin2_lon
    cos2 = sin2_p * sin2_lon + (1.0 - sin2_q) * cos2_lon
    if sin2 == 0.0:
        return 0.0
    angle = 2.0 * math.atan2(math.sqrt(sin2), math.sqrt(cos2))
    sine = 2.0 * math.sqrt(sin2 * cos2)
    across = sin2_p * (1.0 - sin2_q) / cos2 if cos2 > 0.0 else 0.0
    along = (1.0 - sin2_p) * sin2_q / sin2
    correction = (angle - sine) * across + (angle + sine) * along
    return min(EQUATOR_RADIUS_M * (angle - FLATTENING / 2.0 * correction), ANTIPODE_M)


def _reduced_latitude(lat: float) -> float:
    """Return the latitude on the auxiliary sphere, in radians."""
    return math.atan((1.0 - FLATTENING) * math.tan(math.radians(lat)))
