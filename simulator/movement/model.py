"""The contract of a model of movement; everything else is the same for all models (`itineraries`)."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


class Group(NamedTuple):
    """Devices that are processed together; arrays with an entry each.

    Parameters
    ----------
    numbers
        The numbers of the devices, which determine their random numbers.
    classes
        Their classes.
    nodes
        Their positions, as nodes.
    trips
        The number of trips that each has made.
    clocks_s
        The time of each, seconds from tick 0.
    """

    numbers: Longs
    classes: Ints
    nodes: Ints
    trips: Longs
    clocks_s: Floats


class Model(Protocol):
    """Chooses starts, destinations and lengths of stays. Results depend only on the arguments."""

    def starts(self, numbers: Longs, classes: Ints) -> tuple[Ints, Floats]:
        """Return the start of each device, and its time: seconds from tick 0, negative before it."""

    def destinations(self, group: Group) -> Ints:
        """Return the next destination of each device."""

    def leaves_s(self, group: Group) -> Floats:
        """Return the time until which each device stays at its destination; infinite if it ends there."""

    def paces(self, numbers: Longs) -> Floats:
        """Return the speed of each device, as a fraction of that of its class."""
