"""Define the ranges of users on Earth: WGS84 degrees, and metres on the server's plane.

Devices and the server use the same types. `safe_region.geometry.shapes` has them on the plane.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_TINY_DEG = 1e-17

Position = tuple[float, float]
"""Longitude and latitude in degrees."""


@dataclass(frozen=True, slots=True)
class Circle:
    """A circle, including its edge.

    Parameters
    ----------
    radius_m
        On the server's plane.
    center
        Longitude and latitude of the centre if the circle is fixed in place; None if it moves with the
        device, which is its centre.
    """

    radius_m: float
    center: Position | None = None


@dataclass(frozen=True, slots=True)
class Bounds:
    """A rectangle along the axes, including its edges. It does not cross the antimeridian.

    Parameters
    ----------
    lon_min, lat_min, lon_max, lat_max
        Degrees, WGS84.
    """

    lon_min: float
    lat_min: float
    lon_max: float
    lat_max: float


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A rectangle along the axes that moves with the device, which is its middle; it includes its edges.

    Parameters
    ----------
    width_m, height_m
        From west to east and from south to north, on the server's plane.
    """

    width_m: float
    height_m: float


@dataclass(frozen=True, slots=True)
class Polygon:
    """A polygon with holes. It includes its edges and those of its holes.

    Edges are straight on the server's plane.

    Parameters
    ----------
    outer
        Its corners as longitudes and latitudes, at least three, in either direction. The last one is
        joined to the first, which need not be repeated: the SDK leaves a repeated one out, also of holes.
    holes
        Corners of each hole. The holes lie within the polygon, and apart from each other.
    """

    outer: Sequence[Position]
    holes: Sequence[Sequence[Position]] = ()

    @property
    def rings(self) -> tuple[tuple[Position, ...], ...]:
        """The outer ring, then the holes; coordinates below a millionth of a micrometre are 0.

        Kernels are exact with coordinates that are 0 or not as small as a float64 can be.
        """
        return tuple(tuple(map(_without_tiny, ring)) for ring in (self.outer, *self.holes))


def opened(ring: Sequence[Position]) -> Sequence[Position]:
    """Return the corners of a ring, without a last one that repeats the first, as in GeoJSON."""
    return ring[:-1] if len(ring) > 1 and ring[-1] == ring[0] else ring


def _without_tiny(corner: Position) -> Position:
    lon, lat = corner
    return lon if abs(lon) >= _TINY_DEG else 0.0, lat if abs(lat) >= _TINY_DEG else 0.0


Range = Circle | Bounds | Rectangle | Polygon
"""The region in which an object must be."""

ObjectArea = Bounds | Polygon
"""The region of an object that is more than a point; such a polygon has no holes."""
