"""Speeds of roads in the course of a run: load and weather, slot by slot of time.

Load is the number of cars that are on a road at a time. If it exceeds the capacity of the road's class,
the road becomes slower in proportion, down to `LOADED_FACTOR_MIN`. Weather consists of rectangles that
move over the map; all devices within one are slower. Both are those of Brinkhoff's generator (A Framework
for Generating Network-Based Moving Objects, GeoInformatica 2002), in which the load is the one that the
run itself has put on the roads so far. Here it is the load of a first pass without load, so that no task
has to wait for another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from simulator.chance import uniforms
from simulator.network.graph import Graph
from simulator.parameters import SimulationParameters

LOADED_FACTOR_MIN = 0.2
"""The minimum factor of a road's speed under load."""

WEATHER_SLOT_S = 300.0
"""The length of a slot for weather, if there is no load."""

_WEATHER_SHARES = (0.1, 0.4)
"""The side of a rectangle of weather is uniform between these fractions of the map's width and height."""
_WEATHER_FACTORS = (0.4, 0.8)
_WEATHER_MPS = (2.0, 15.0)

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]


class Weather(NamedTuple):
    """Moving rectangles, with one entry each.

    Parameters
    ----------
    xs_m, ys_m
        Their centres at tick 0.
    x_mps, y_mps
        Their velocities.
    halves_x_m, halves_y_m
        Their half extents.
    factors
        The factors of speeds in them.
    """

    xs_m: Floats
    ys_m: Floats
    x_mps: Floats
    y_mps: Floats
    halves_x_m: Floats
    halves_y_m: Floats
    factors: Floats

    @classmethod
    def drawn(cls, graph: Graph, count: int, seed: int) -> Weather:
        """Draw rectangles; half of the time of a long run they are off the map."""

        def draw(column: str, low: float, high: float) -> Floats:
            return low + (high - low) * uniforms(seed, "weather", column, np.arange(count))

        turns = draw("direction", 0.0, 2.0 * math.pi)
        speeds_mps = draw("speed", *_WEATHER_MPS)
        width_m, height_m = np.ptp(graph.xs_m), np.ptp(graph.ys_m)
        return cls(
            draw("x", graph.xs_m.min(), graph.xs_m.max()),
            draw("y", graph.ys_m.min(), graph.ys_m.max()),
            speeds_mps * np.cos(turns),
            speeds_mps * np.sin(turns),
            draw("width", *_WEATHER_SHARES) * width_m / 2.0,
            draw("height", *_WEATHER_SHARES) * height_m / 2.0,
            draw("factor", *_WEATHER_FACTORS),
        )

    def factors_at(self, xs_m: Floats, ys_m: Floats, time_s: float) -> Floats:
        """Return the speed factor at places at a time; 1 in good weather. O(places) a rectangle."""
        found = np.ones(len(xs_m))
        for one in zip(*self, strict=True):
            x_m, y_m, x_mps, y_mps, half_x_m, half_y_m, factor = one
            is_in = np.abs(xs_m - x_m - x_mps * time_s) <= half_x_m
            is_in &= np.abs(ys_m - y_m - y_mps * time_s) <= half_y_m
            found[is_in] *= factor
        return found


@dataclass(frozen=True)
class Conditions:
    """The conditions that slow roads down.

    Parameters
    ----------
    slot_s
        The time for which conditions are constant; infinite if they never change.
    slot_count
        The number of slots of the run. The first also covers the time before tick 0.
    weather
        Rectangles; there may be none.
    loads
        By slot: ids of the edges with more cars than their capacity, ascending, and the cars on each;
        slots without any are left out.
    """

    slot_s: float
    slot_count: int
    weather: Weather
    loads: dict[int, tuple[Longs, Floats]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, graph: Graph, parameters: SimulationParameters, loads: pa.Table | None = None
    ) -> Conditions:
        """Return the conditions of a run.

        Parameters
        ----------
        graph
            The streets.
        parameters
            Slots and weather.
        loads
            Columns slot, edge_id and vehicles, from a first pass; None without load.
        """
        slot_s = parameters.load_slot_s or (WEATHER_SLOT_S if parameters.weather else math.inf)
        count = max(1, math.ceil(parameters.seconds / slot_s))
        weather = Weather.drawn(graph, parameters.weather, parameters.seed)
        return cls(slot_s, count, weather, {} if loads is None else _overloads(loads, graph))

    def is_usual(self, slot: int) -> bool:
        """Return whether there is neither load nor weather in a slot."""
        return not len(self.weather.factors) and slot not in self.loads

    def factors(self, graph: Graph, slot: int, *, is_car: bool) -> Floats:
        """Return the speed of each edge in a slot, as a fraction of that without load and weather."""
        xs_m = (graph.xs_m[graph.sources] + graph.xs_m[graph.targets]) / 2.0
        ys_m = (graph.ys_m[graph.sources] + graph.ys_m[graph.targets]) / 2.0
        middle_s = 0.0 if math.isinf(self.slot_s) else (slot + 0.5) * self.slot_s
        found = self.weather.factors_at(xs_m, ys_m, middle_s)
        if is_car and slot in self.loads:
            ids, vehicles = self.loads[slot]
            at = np.minimum(np.searchsorted(ids, graph.edge_ids), len(ids) - 1)
            there = np.where(ids[at] == graph.edge_ids, vehicles[at], 0.0)
            with np.errstate(divide="ignore"):
                found *= np.clip(graph.vehicles_max / there, LOADED_FACTOR_MIN, 1.0)
        return found


def _overloads(loads: pa.Table, graph: Graph) -> dict[int, tuple[Longs, Floats]]:
    """Return by slot the roads that are slower because of their load."""
    slots, ids, vehicles = (loads[name].to_numpy() for name in ("slot", "edge_id", "vehicles"))
    by_id = np.argsort(graph.edge_ids)
    edges = by_id[np.searchsorted(graph.edge_ids[by_id], ids)]
    is_over = vehicles > graph.vehicles_max[edges]
    slots, ids, vehicles = slots[is_over], ids[is_over], vehicles[is_over]
    if not len(ids):
        return {}
    order = np.lexsort((ids, slots))
    found, firsts = np.unique(slots[order], return_index=True)
    parts = zip(
        found, np.split(ids[order], firsts[1:]), np.split(vehicles[order], firsts[1:]), strict=True
    )
    return {int(slot): (edge_ids, counts) for slot, edge_ids, counts in parts}
