"""Classes of roads and of devices, and the speeds of devices on roads."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt


class RoadClass(StrEnum):
    """Kinds of road, most important first, by OpenStreetMap's names."""

    MOTORWAY = "motorway"
    PRIMARY = "primary"
    SECONDARY = "secondary"
    TERTIARY = "tertiary"
    RESIDENTIAL = "residential"
    SERVICE = "service"
    CYCLEWAY = "cycleway"
    FOOTWAY = "footway"


_KMH = 1.0 / 3.6

SPEEDS_MPS: dict[RoadClass, float] = {
    RoadClass.MOTORWAY: 100.0 * _KMH,
    RoadClass.PRIMARY: 60.0 * _KMH,
    RoadClass.SECONDARY: 50.0 * _KMH,
    RoadClass.TERTIARY: 40.0 * _KMH,
    RoadClass.RESIDENTIAL: 30.0 * _KMH,
    RoadClass.SERVICE: 20.0 * _KMH,
    RoadClass.CYCLEWAY: 30.0 * _KMH,
    RoadClass.FOOTWAY: 5.0 * _KMH,
}
"""The speed limit of each class of road."""

VEHICLES_PER_KM_MAX: dict[RoadClass, float] = {
    RoadClass.MOTORWAY: 60.0,
    RoadClass.PRIMARY: 40.0,
    RoadClass.SECONDARY: 30.0,
    RoadClass.TERTIARY: 25.0,
    RoadClass.RESIDENTIAL: 20.0,
    RoadClass.SERVICE: 15.0,
    RoadClass.CYCLEWAY: math.inf,
    RoadClass.FOOTWAY: math.inf,
}
"""More cars on a kilometre of a class of road, in one direction, slow each other down: a car on 17 m of a
motorway of three lanes, with some 50 m between cars of a lane, and fewer on lesser roads.
"""

_FOR_ALL = frozenset(
    {
        RoadClass.PRIMARY,
        RoadClass.SECONDARY,
        RoadClass.TERTIARY,
        RoadClass.RESIDENTIAL,
        RoadClass.SERVICE,
    }
)


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """A class of devices.

    Parameters
    ----------
    name
        A display name.
    factor, cap_mps
        Its speed on an edge is the edge's times the factor, at most the cap.
    roads
        The classes of road that are open to it.
    candidates
        Destinations it considers, taking the nearest: the more, the shorter its trips.
    """

    name: str
    factor: float
    cap_mps: float
    roads: frozenset[RoadClass]
    candidates: int


TRACE_CLASS = "trace"
"""The class of all devices of traces, which do not contain the kind of vehicle."""

DEVICE_CLASSES = (
    DeviceClass("car", 0.9, 36.0, _FOR_ALL | {RoadClass.MOTORWAY}, candidates=1),
    DeviceClass("bicycle", 0.5, 5.5, _FOR_ALL | {RoadClass.CYCLEWAY}, candidates=4),
    # Pedestrians have the same speed everywhere.
    DeviceClass(
        "pedestrian",
        1.0,
        1.4,
        _FOR_ALL | {RoadClass.CYCLEWAY, RoadClass.FOOTWAY},
        candidates=16,
    ),
)


def travel_speeds_mps(
    road_classes: npt.NDArray[np.str_], speeds_mps: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the speed of each device class (rows) on each edge (columns); 0 where it may not go."""
    found = np.empty((len(DEVICE_CLASSES), len(speeds_mps)))
    for row, one in zip(found, DEVICE_CLASSES, strict=True):
        np.minimum(speeds_mps * one.factor, one.cap_mps, out=row)
        row[~np.isin(road_classes, [road_class.value for road_class in one.roads])] = 0.0
    return found


def vehicles_max(
    road_classes: npt.NDArray[np.str_], lengths_m: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the number of cars on each edge above which they slow each other down."""
    found = np.empty(len(lengths_m))
    for one, per_km in VEHICLES_PER_KM_MAX.items():
        of_class = road_classes == one.value
        found[of_class] = per_km * lengths_m[of_class] / 1000.0
    return found
