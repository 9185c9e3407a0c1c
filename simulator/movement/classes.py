"""Classes of moving objects: their mode of travel and their maximum speed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from simulator.chance import uniforms
from simulator.network.traffic import DEVICE_CLASSES
from simulator.parameters.movement import BRINKHOFF, MovementParameters

TABLE = "trajectories"

CAR = 0
"""The index in `DEVICE_CLASSES` of the class that causes load, and is slowed down by it."""

_KMH = 1.0 / 3.6

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


class ObjectClass(NamedTuple):
    """A class of moving objects.

    Parameters
    ----------
    name
        As in the table of devices.
    mode
        The roads that are open to it, and its speed on them: an index into `DEVICE_CLASSES`.
    speed_mps_max
        Its maximum speed on any road.
    """

    name: str
    mode: int
    speed_mps_max: float


def object_classes(parameters: MovementParameters) -> tuple[ObjectClass, ...]:
    """Return the classes: one for each mode, followed by Brinkhoff's classes of cars."""
    modes = [ObjectClass(one.name, mode, one.cap_mps) for mode, one in enumerate(DEVICE_CLASSES)]
    if parameters.movement != BRINKHOFF:
        return tuple(modes)
    cars = [
        ObjectClass(f"car-{number}", CAR, speed_kmh * _KMH)
        for number, speed_kmh in enumerate(parameters.class_speeds_kmh_max, 1)
    ]
    return (*modes, *cars)


def classes_of(numbers: Longs, parameters: MovementParameters, seed: int) -> Ints:
    """Return the class of each device, as an index into `object_classes`."""
    bounds = np.cumsum([parameters.car_share, parameters.bicycle_share])
    modes = np.searchsorted(bounds, uniforms(seed, TABLE, "class", numbers), side="right")
    found: Ints = modes.astype(np.int32)
    if parameters.movement == BRINKHOFF:
        count = len(parameters.class_speeds_kmh_max)
        kinds = (uniforms(seed, TABLE, "object_class", numbers) * count).astype(np.int32)
        found = np.where(found == CAR, len(DEVICE_CLASSES) + kinds, found).astype(np.int32)
    return found
