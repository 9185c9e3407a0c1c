"""Trips to places: a device starts on its way, takes the fastest path, stays, and continues."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from simulator.chance import uniforms
from simulator.movement.destinations import home_nodes, next_nodes
from simulator.movement.model import Group
from simulator.movement.streets import Streets
from simulator.parameters import SimulationParameters

TABLE = "trajectories"

HEAD_START_S_MAX = 300.0
"""Devices have been on their way for up to this long at tick 0."""

PACE_MIN = 0.85
"""The slowest device drives at this fraction of the speed of its class."""

STOP_SPREAD = (0.2, 1.8)
"""A stop is uniform between these multiples of the mean."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


class TripModel:
    """Places and homes as destinations, and short stops there."""

    def __init__(self, streets: Streets, parameters: SimulationParameters) -> None:
        self._graph = streets.graph
        self._destinations = streets.destinations
        self._parameters = parameters
        self._modes = np.array([one.mode for one in streets.classes], np.int32)

    def starts(self, numbers: Longs, classes: Ints) -> tuple[Ints, Floats]:
        """Start anywhere on the streets, before tick 0."""
        seed = self._parameters.seed
        nodes = home_nodes(self._destinations, numbers, self._modes[classes], seed)
        return nodes, -HEAD_START_S_MAX * uniforms(seed, TABLE, "head_start", numbers)

    def destinations(self, group: Group) -> Ints:
        """Go to a place or a home that is not too far."""
        modes = self._modes[group.classes]
        return next_nodes(
            self._graph,
            self._destinations,
            group.numbers,
            modes,
            group.nodes,
            group.trips,
            self._parameters.seed,
        )

    def leaves_s(self, group: Group) -> Floats:
        """Stay for less than a minute or two."""
        return group.clocks_s + stops_s(group, self._parameters)

    def paces(self, numbers: Longs) -> Floats:
        """Return a pace for each: some drive at the speed limit, others a little slower."""
        return paces(numbers, self._parameters.seed)


def stops_s(group: Group, parameters: SimulationParameters) -> Floats:
    """Return the lengths of stays."""
    low, high = STOP_SPREAD
    draws = uniforms(parameters.seed, TABLE, "stop", group.numbers, group.trips)
    found: Floats = parameters.stop_s_mean * (low + (high - low) * draws)
    return found


def paces(numbers: Longs, seed: int) -> Floats:
    """Return the speeds of devices, as fractions of those of their classes."""
    return PACE_MIN + (1.0 - PACE_MIN) * uniforms(seed, TABLE, "pace", numbers)
