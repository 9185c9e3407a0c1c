"""Brinkhoff's network-based generator: objects of classes, with routes of an expected travel time.

After the paper (A Framework for Generating Network-Based Moving Objects, GeoInformatica 2002): classes
with maximum speeds, starts by network or by region, destinations by the travel time that an object
expects, fastest routes that are recomputed as load changes, objects that appear in the course of time
and disappear at their destinations. Load and weather: `conditions`.

Deviations from the paper: an object continues to another destination, unless `vanish` is set, so that as
many objects move at the end as at the start; and all objects of a class have the same pace.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from simulator.chance import uniforms
from simulator.movement.destinations import home_nodes
from simulator.movement.model import Group
from simulator.movement.streets import Streets
from simulator.movement.trips import HEAD_START_S_MAX, TABLE, stops_s
from simulator.parameters import SimulationParameters
from simulator.parameters.movement import REGION

CANDIDATES = 24
"""Random nodes, of which the one with a travel time nearest to the expected time is chosen."""

DETOUR = 1.3
"""The approximate ratio of the length of routes to the straight line."""

_TIME_SPREAD = (0.25, 1.75)
"""Expected travel times are uniform between these multiples of the mean."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


class BrinkhoffModel:
    """The model of Brinkhoff's generator; see the module."""

    def __init__(self, streets: Streets, parameters: SimulationParameters) -> None:
        self._graph = streets.graph
        self._destinations = streets.destinations
        self._parameters = parameters
        self._modes = np.array([one.mode for one in streets.classes], np.int32)
        self._cruise_mps = np.array([streets.cruise_mps(one) for one in range(len(streets.classes))])

    def starts(self, numbers: Longs, classes: Ints) -> tuple[Ints, Floats]:
        """Start at a node, or at the node next to a point of the area; some in the course of the run."""
        parameters, modes = self._parameters, self._modes[classes]
        seed = parameters.seed
        if parameters.start == REGION:
            nodes = self._near_points(numbers, modes)
        else:
            nodes = home_nodes(self._destinations, numbers, modes, seed)
        appears = uniforms(seed, TABLE, "appears", numbers) < parameters.appear_share
        draws = uniforms(seed, TABLE, "head_start", numbers)
        before_s = np.zeros(len(numbers)) if parameters.vanish else -HEAD_START_S_MAX * draws
        return nodes, np.where(appears, parameters.seconds * draws, before_s)

    def destinations(self, group: Group) -> Ints:
        """Choose destinations with about the travel time that the object expects."""
        seed, modes = self._parameters.seed, self._modes[group.classes]
        numbers, trips = group.numbers[:, np.newaxis], group.trips[:, np.newaxis]
        draws = uniforms(seed, TABLE, "candidate", numbers, trips, np.arange(CANDIDATES))
        found = np.empty(len(modes), np.int32)
        low, high = _TIME_SPREAD
        wanted = low + (high - low) * uniforms(seed, TABLE, "expected", group.numbers, group.trips)
        reach_m = self._parameters.trip_s_mean * wanted * self._cruise_mps[group.classes] / DETOUR
        for mode in np.unique(modes):
            of_mode = np.flatnonzero(modes == mode)
            nodes = self._destinations.open_nodes[mode]
            options = nodes[(draws[of_mode] * len(nodes)).astype(np.int64)]
            here = group.nodes[of_mode, np.newaxis]
            dx_m = self._graph.xs_m[options] - self._graph.xs_m[here]
            dy_m = self._graph.ys_m[options] - self._graph.ys_m[here]
            misses_m = np.abs(np.sqrt(dx_m * dx_m + dy_m * dy_m) - reach_m[of_mode, np.newaxis])
            best = np.argmin(np.where(options == here, np.inf, misses_m), axis=1)
            found[of_mode] = options[np.arange(len(of_mode)), best]
        return found

    def leaves_s(self, group: Group) -> Floats:
        """Return the time after a stop, or infinity if objects vanish."""
        if self._parameters.vanish:
            return np.full(len(group.numbers), np.inf)
        return group.clocks_s + stops_s(group, self._parameters)

    def paces(self, numbers: Longs) -> Floats:
        """Return 1 for all: they have the speed of their class."""
        return np.ones(len(numbers))

    def _near_points(self, numbers: Longs, modes: Ints) -> Ints:
        draws = uniforms(self._parameters.seed, TABLE, "point", numbers)
        found = np.empty(len(numbers), np.int32)
        for mode in np.unique(modes):
            of_mode = modes == mode
            nodes = self._destinations.region_nodes[mode]
            found[of_mode] = nodes[(draws[of_mode] * len(nodes)).astype(np.int64)]
        return found
