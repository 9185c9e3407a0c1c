"""Compute the error of distances on the plane of a frame against those on the ground.

The plane has one scale for a degree of longitude, that of the middle latitude of the area. Nearer to a
pole a path from west to east is shorter on the ground than on the plane; nearer to the equator it is
longer. In addition, the frame's sphere is not the ellipsoid: from south to north the error is up to
0.56 %, and largest at the equator.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import NamedTuple

from safe_region.earth.frame import Frame
from safe_region.earth.ground import ground_distance_m

_SHORT = 1e-3
"""A fraction of the area's extent: a path this short shows the local scale."""


class Direction(Enum):
    """The direction of a path."""

    EAST_WEST = "from east to west"
    NORTH_SOUTH = "from north to south"
    ACROSS = "from corner to corner"


class Distortion(NamedTuple):
    """The place where distances on the plane have the largest error."""

    error: float
    """|plane - ground| / ground; infinite if the area goes all around the Earth."""
    lat: float
    """The latitude of this place; for a path from corner to corner, the latitude of the middle of the
    area."""
    direction: Direction


def distortion(frame: Frame) -> Distortion:
    """Return the largest relative error of distances within the area. O(1).

    The function tests short paths at the edges, in the middle and at the equator, where the scales are
    extreme, and the longest paths along the edges and across.
    """
    area = frame.area
    width, height = area.lon_max - area.lon_min, area.lat_max - area.lat_min
    lats = {area.lat_min, area.lat_max, frame.lat0_deg}
    if area.lat_min < 0.0 < area.lat_max:
        lats.add(0.0)
    found = []
    for lat in sorted(lats):
        for lon_step in (_SHORT * width, width / 2.0, width):
            error = _error(frame, (0.0, lat), (lon_step, lat))
            found.append(Distortion(error, lat, Direction.EAST_WEST))
        other_lat = lat + math.copysign(_SHORT * height, frame.lat0_deg - lat)
        error = _error(frame, (0.0, lat), (0.0, other_lat))
        found.append(Distortion(error, lat, Direction.NORTH_SOUTH))
    error = _error(frame, (0.0, area.lat_min), (width, area.lat_max))
    found.append(Distortion(error, frame.lat0_deg, Direction.ACROSS))
    return max(found, key=lambda one: one.error)


def _error(frame: Frame, place: tuple[float, float], other: tuple[float, float]) -> float:
    """Return the relative error of one path; only the difference of longitudes matters."""
    plane_m = math.dist(frame.project(*place), frame.project(*other))
    ground_m = ground_distance_m(*place, *other)
    return abs(plane_m / ground_m - 1.0) if ground_m > 0.0 else math.inf
