"""Define the frame: a service area and its projection onto a plane in metres.

Positions are WGS84 at the interfaces and plane metres inside. The projection is equirectangular about the
centre of the area on a sphere of radius `EARTH_RADIUS_M`, so plane distances are Euclidean and obey the
triangle inequality, on which every safe region relies. Both ends of the protocol compute it with the same
two scale factors and the same expression, so that a device and the server get the same float64.
`distortion` computes the error of the plane; `ground` computes distances on the ground.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

EARTH_RADIUS_M = 6371008.8
"""Mean radius of the Earth (IUGG R1)."""

LONGITUDE_MAX_DEG = 180.0

LATITUDE_MAX_DEG = 89.0
"""Closer to a pole the equirectangular projection has no useful scale."""


class Area(NamedTuple):
    """A closed longitude-latitude rectangle in degrees (WGS84)."""

    lon_min: float
    lat_min: float
    lon_max: float
    lat_max: float


class Point(NamedTuple):
    """A position on the plane, in metres from the centre of the area."""

    x_m: float
    y_m: float


@dataclass(frozen=True, slots=True)
class Frame:
    """A service area with its projection, fixed for the life of a store.

    Parameters
    ----------
    area
        The service area.
    lon0_deg, lat0_deg
        Its centre, the origin of the plane.
    x_m_per_deg, y_m_per_deg
        Metres per degree of longitude and of latitude.
    maxdist_m
        Length of the area's diagonal, the unit in which scores measure distance.
    """

    area: Area
    lon0_deg: float
    lat0_deg: float
    x_m_per_deg: float
    y_m_per_deg: float
    maxdist_m: float

    @classmethod
    def of(cls, area: Area) -> Frame:
        """Derive the projection of an area.

        Raises
        ------
        ValueError
            If a bound is not finite, the area is empty, crosses the antimeridian or comes within
            one degree of a pole.
        """
        for name, value in zip(Area._fields, area, strict=True):
            if not math.isfinite(value):
                raise ValueError(f"area.{name} is {value}, must be a finite number of degrees")
        if not -LONGITUDE_MAX_DEG <= area.lon_min < area.lon_max <= LONGITUDE_MAX_DEG:
            raise ValueError(
                f"area longitudes are {area.lon_min}..{area.lon_max}, must be increasing within -180..180"
            )
        if not -LATITUDE_MAX_DEG <= area.lat_min < area.lat_max <= LATITUDE_MAX_DEG:
            raise ValueError(
                f"area latitudes are {area.lat_min}..{area.lat_max}, must be increasing within "
                f"-{LATITUDE_MAX_DEG}..{LATITUDE_MAX_DEG}"
            )
        lon0 = (area.lon_min + area.lon_max) / 2.0
        lat0 = (area.lat_min + area.lat_max) / 2.0
        y_scale = EARTH_RADIUS_M * math.pi / 180.0
        x_scale = y_scale * math.cos(math.radians(lat0))
        width = (area.lon_max - area.lon_min) * x_scale
        height = (area.lat_max - area.lat_min) * y_scale
        return cls(area, lon0, lat0, x_scale, y_scale, math.sqrt(width * width + height * height))

    @property
    def size_m(self) -> tuple[float, float]:
        """Return the width and height of the area on the plane."""
        area = self.area
        width_deg, height_deg = area.lon_max - area.lon_min, area.lat_max - area.lat_min
        return width_deg * self.x_m_per_deg, height_deg * self.y_m_per_deg

    def project(self, lon: float, lat: float) -> Point:
        """Map degrees to plane metres. Defined everywhere, including outside the area."""
        return Point((lon - self.lon0_deg) * self.x_m_per_deg, (lat - self.lat0_deg) * self.y_m_per_deg)

    def unproject(self, x_m: float, y_m: float) -> tuple[float, float]:
        """Map plane metres back to (lon, lat) in degrees, up to rounding."""
        return self.lon0_deg + x_m / self.x_m_per_deg, self.lat0_deg + y_m / self.y_m_per_deg

    def covers(self, lon: float, lat: float) -> bool:
        """Return whether a position lies in the closed area; false for NaN."""
        area = self.area
        return area.lon_min <= lon <= area.lon_max and area.lat_min <= lat <= area.lat_max
