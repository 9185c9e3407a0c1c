"""The streets that devices move on: the graph of a terrain, fastest paths, and destinations."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from safe_region.earth.frame import Frame
from simulator.movement.classes import CAR, ObjectClass, object_classes
from simulator.movement.conditions import Conditions
from simulator.movement.destinations import Destinations
from simulator.network.graph import Graph
from simulator.network.hierarchy import Hierarchy, Metric
from simulator.parameters import SimulationParameters
from simulator.terrain import Terrain

_KEPT_MAX = 24
"""Metrics that are cached, some 30 MB each on New York: those of all classes for some slots."""

Floats = npt.NDArray[np.float64]


class Pace(NamedTuple):
    """The travel times of one class in one slot.

    Parameters
    ----------
    times_s
        The time on each edge; infinite where the class may not go.
    metric
        The metric of the hierarchy for these times.
    """

    times_s: Floats
    metric: Metric


class Streets:
    """The data that all devices share. It is broadcast once; metrics are computed where they are used.

    Parameters
    ----------
    graph
        The streets.
    hierarchy
        For fastest paths on them.
    destinations
        Possible destinations of devices.
    classes
        The classes of devices.
    conditions
        Load and weather.
    velocity
        Factor of all speeds.
    """

    def __init__(
        self,
        graph: Graph,
        hierarchy: Hierarchy,
        destinations: Destinations,
        classes: tuple[ObjectClass, ...],
        conditions: Conditions,
        velocity: float,
    ) -> None:
        self.graph = graph
        self.hierarchy = hierarchy
        self.destinations = destinations
        self.classes = classes
        self.conditions = conditions
        self.velocity = velocity
        self._kept: OrderedDict[tuple[int, int], Pace] = OrderedDict()

    @classmethod
    def of(cls, terrain: Terrain, parameters: SimulationParameters) -> Streets:
        """Build the streets of a terrain, without load. O(n log n); some seconds for a large city."""
        graph = Graph.of(terrain.roads, Frame.of(terrain.area), terrain.restrictions)
        return cls(
            graph,
            Hierarchy.of(graph),
            Destinations.of(graph, terrain.places),
            object_classes(parameters),
            Conditions.of(graph, parameters),
            parameters.velocity,
        )

    def loaded(self, parameters: SimulationParameters, loads: pa.Table) -> Streets:
        """Return the same streets under load; `loads` has the columns slot, edge_id and vehicles."""
        conditions = Conditions.of(self.graph, parameters, loads)
        return Streets(
            self.graph, self.hierarchy, self.destinations, self.classes, conditions, self.velocity
        )

    def speeds_mps(self, class_number: int, slot: int | None = None) -> Floats:
        """Return the speed of a class on each edge in a slot, or at best; 0 where it may not go."""
        one = self.classes[class_number]
        best_mps: Floats = np.minimum(self.graph.speeds_mps[one.mode], one.speed_mps_max) * self.velocity
        if slot is None or self.conditions.is_usual(slot):
            return best_mps
        found: Floats = best_mps * self.conditions.factors(self.graph, slot, is_car=one.mode == CAR)
        return found

    def pace(self, class_number: int, slot: int) -> Pace:
        """Return the travel times of a class in a slot. O(triangles) if they are not cached."""
        key = (class_number, -1 if self.conditions.is_usual(slot) else slot)
        if key not in self._kept:
            while len(self._kept) >= _KEPT_MAX:
                self._kept.popitem(last=False)
            with np.errstate(divide="ignore"):
                times_s = self.graph.lengths_m / self.speeds_mps(class_number, slot)
            self._kept[key] = Pace(times_s, self.hierarchy.customised(times_s))
        self._kept.move_to_end(key)
        return self._kept[key]

    def cruise_mps(self, class_number: int) -> float:
        """Return the mean speed of a class over the length of the roads that are open to it."""
        speeds_mps = self.speeds_mps(class_number)
        is_open = speeds_mps > 0.0
        lengths_m = self.graph.lengths_m[is_open]
        return float(lengths_m.sum() / (lengths_m / speeds_mps[is_open]).sum())

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the cached metrics."""
        return self.__dict__ | {"_kept": OrderedDict()}
