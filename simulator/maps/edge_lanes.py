"""The rule of road files: the road class and speed of an edge."""

from __future__ import annotations

import math

from simulator.maps.roads import HIGHWAYS, SPEED_MPS_MAX, SPEED_MPS_MIN, Lane, lanes
from simulator.network.traffic import SPEEDS_MPS, RoadClass

UNKNOWN = "road"
"""OpenStreetMap's value for a road of unknown class; it is treated as a residential one."""

_BY_SPEED = (RoadClass.MOTORWAY, RoadClass.PRIMARY, RoadClass.SECONDARY, RoadClass.TERTIARY)
_ROUNDING = 0.99
"""11.1 m/s is 40 km/h too."""


def lane_of(highway: str, speed_mps: float) -> Lane:
    """Return the class of an edge and its speed limit.

    With a value of `highway` both are as in an OpenStreetMap file. With a speed alone its class is the
    most important one whose usual speed it allows. With neither it is a road of unknown class.

    Parameters
    ----------
    highway
        As in OpenStreetMap; "" if the file has none.
    speed_mps
        The speed limit of a sign, clamped to the limits for OpenStreetMap; NaN if the file has none.
        Signs are for cars.

    Raises
    ------
    ValueError
        If there is no such value of `highway`.
    """
    lane = lanes({"highway": highway or UNKNOWN}).forward
    if lane is None:
        raise ValueError(f"highway is {highway!r}, must be one of {', '.join(HIGHWAYS)}")
    if math.isnan(speed_mps) or lane.road_class in {RoadClass.CYCLEWAY, RoadClass.FOOTWAY}:
        return lane
    road_class = lane.road_class if highway else _class_of(speed_mps)
    return Lane(road_class, min(max(speed_mps, SPEED_MPS_MIN), SPEED_MPS_MAX))


def _class_of(speed_mps: float) -> RoadClass:
    for road_class in _BY_SPEED:
        if speed_mps >= _ROUNDING * SPEEDS_MPS[road_class]:
            return road_class
    return RoadClass.RESIDENTIAL
