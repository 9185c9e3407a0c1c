"""What operators are told about the service area."""

from __future__ import annotations

import logging

from safe_region.earth.distortion import distortion
from safe_region.earth.frame import Frame

_log = logging.getLogger(__name__)

_DISTORTION_MAX = 0.01
"""Relative error of distances on the plane from which operators are warned."""


def described(frame: Frame) -> str:
    """Return a description of a service area that reveals swapped coordinates."""
    width_km, height_km = (length_m / 1000.0 for length_m in frame.size_m)
    lon, lat = frame.lon0_deg, frame.lat0_deg
    north, east = "N" if lat >= 0.0 else "S", "E" if lon >= 0.0 else "W"
    return (
        f"{width_km:,.4g} km from west to east, {height_km:,.4g} km from south to north, "
        f"about {abs(lat):.4f} {north}, {abs(lon):.4f} {east}"
    )


def warn_of_distortion(frame: Frame) -> None:
    """Warn if distances on the plane, which decide about results, are far from those on the ground."""
    found = distortion(frame)
    if found.error <= _DISTORTION_MAX:
        return
    _log.warning(
        "the distances of rankings and ranges have errors of up to %s (%s at latitude %.2f): serve "
        "smaller areas, each with its own server; see docs/operations.md",
        f"{100.0 * found.error:.1f} %" if found.error < 1.0 else "more than 100 %",
        found.direction.value,
        found.lat,
    )
