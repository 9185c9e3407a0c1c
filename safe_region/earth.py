"""Ranges as users give them, on Earth: WGS84 degrees, and metres on the server's plane.

The same types on devices and on the server. `safe_region.shapes` has them on the plane.
"""

from __future__ import annotations

from dataclasses import dataclass

Position = tuple[float, float]
"""Longitude and latitude in degrees."""


@dataclass(frozen=True, slots=True)
class Circle:
    """A circle, its edge included.

    Parameters
    ----------
    radius_m
        On the server's plane.
    center
        Longitude and latitude of its middle if it is fixed in place; None if it moves with the device,
        which is its middle.
    """

    radius_m: float
    center: Position | None = None


@dataclass(frozen=True, slots=True)
class Bounds:
    """A rectangle along the axes, its edges included. It does not cross the antimeridian.

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
    """A rectangle along the axes that moves with the device, which is its middle; its edges included.

    Parameters
    ----------
    width_m, height_m
        From west to east and from south to north, on the server's plane.
    """

    width_m: float
    height_m: float


@dataclass(frozen=True, slots=True)
class Polygon:
    """A polygon with holes. Its edges belong to it, and so do those of its holes.

    Edges are straight on the server's plane.

    Parameters
    ----------
    outer
        Its corners, longitudes and latitudes, at least three, in either direction. The last is joined to
        the first, which is not repeated.
    holes
        Corners of each hole. They lie within it, and apart from each other.
    """

    outer: tuple[Position, ...]
    holes: tuple[tuple[Position, ...], ...] = ()


Range = Circle | Bounds | Rectangle | Polygon
"""Where an object must be."""

ObjectArea = Bounds | Polygon
"""Where an object is that is more than a point; a polygon has no holes then."""
