"""What a model of movement decides; everything else is the same for all (`itineraries`)."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


class Group(NamedTuple):
    """Devices that are asked about together; arrays with an entry each.

    Parameters
    ----------
    numbers
        Which devices: what their randomness is drawn from.
    classes
        Of objects.
    nodes
        Where they are.
    trips
        How many trips each has made.
    clocks_s
        When it is for each, seconds from tick 0.
    """

    numbers: Longs
    classes: Ints
    nodes: Ints
    trips: Longs
    clocks_s: Floats


class Model(Protocol):
    """Where devices begin and go, and how long they stay. What it answers depends on nothing else."""

    def starts(self, numbers: Longs, classes: Ints) -> tuple[Ints, Floats]:
        """Return where each device starts, and when: seconds from tick 0, negative before it."""

    def destinations(self, group: Group) -> Ints:
        """Return where each device goes next."""

    def leaves_s(self, group: Group) -> Floats:
        """Return until when each device stays where it has arrived; infinite if it ends there."""

    def paces(self, numbers: Longs) -> Floats:
        """Return how fast each device is, as a share of what its class is."""
