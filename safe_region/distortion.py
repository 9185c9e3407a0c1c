"""How far distances on the plane of a frame are off from those on the ground.

The plane has one scale for a degree of longitude, that of the middle latitude of the area: nearer to a
pole a way from west to east is shorter on the ground than on the plane, nearer to the equator it is
longer. And the frame's sphere is not the ellipsoid: from south to north that is up to 0.56 %, most at the
equator.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import NamedTuple

from safe_region.frame import Frame
from safe_region.ground import ground_distance_m

_SHORT = 1e-3
"""Of the area's extent: so short a way shows the scale there."""


class Direction(Enum):
    """Along what a way goes."""

    EAST_WEST = "from east to west"
    NORTH_SOUTH = "from north to south"
    ACROSS = "from corner to corner"


class Distortion(NamedTuple):
    """Where distances on the plane are off most."""

    error: float
    """|plane - ground| / ground; infinite if the area goes all around the Earth."""
    lat: float
    """The latitude of it; of a way from corner to corner that of the middle of the area."""
    direction: Direction


def distortion(frame: Frame) -> Distortion:
    """Return the largest relative error of distances within the area. O(1).

    It is found on short ways at the edges, in the middle and at the equator, where the scales are
    extreme, and on the longest ones along the edges and across.
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
    """Return the error of one way; only the difference of longitudes matters."""
    plane_m = math.dist(frame.project(*place), frame.project(*other))
    ground_m = ground_distance_m(*place, *other)
    return abs(plane_m / ground_m - 1.0) if ground_m > 0.0 else math.inf
