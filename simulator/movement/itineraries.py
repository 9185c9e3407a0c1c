"""Itineraries: the timed legs of each device in continuous time.

A device takes the fastest path that its class allows, stays for a while, and continues. Its speed depends
on the class of the edge *and* of the device, and on load and weather in the slot of time in which it
enters an edge; at the end of a slot it computes the fastest path again. Cost: one path search a trip and
slot; trips are planned in rounds, one for every device that is not busy long enough yet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from simulator.chance import uniforms
from simulator.movement.classes import TABLE, classes_of
from simulator.movement.itinerary_kernels import advance
from simulator.movement.model import Group, Model
from simulator.movement.streets import Streets
from simulator.network.graph import Graph
from simulator.parameters import SimulationParameters

NOWHERE = -1
"""The destination of a device that has none."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Itineraries:
    """The itineraries of a group of devices, as compressed sparse rows of legs.

    Parameters
    ----------
    offsets
        int64, devices + 1: the legs of device d are offsets[d]..offsets[d + 1], at least one.
    edges
        The edge of each leg.
    is_moving
        Whether the leg follows its edge; else the device stands at the edge's end.
    ends_s
        When the leg ends, seconds from tick 0.
    starts_s
        When each device starts, before tick 0 if negative.
    classes
        The class of each device.
    """

    offsets: Longs
    edges: Ints
    is_moving: npt.NDArray[np.bool_]
    ends_s: Floats
    starts_s: Floats
    classes: Ints

    @property
    def begins_s(self) -> Floats:
        """The start of each leg."""
        found = np.concatenate([[0.0], self.ends_s[:-1]])
        found[self.offsets[:-1]] = self.starts_s
        return found

    @property
    def stops_s(self) -> Floats:
        """The end of the last leg of each device: after the run, or when it disappears."""
        return self.ends_s[self.offsets[1:] - 1]

    def part(self, devices: slice) -> Itineraries:
        """Return the itineraries of a range of devices."""
        numbers = range(len(self.classes))[devices]
        begin, end = self.offsets[numbers.start], self.offsets[numbers.stop]
        return Itineraries(
            self.offsets[numbers.start : numbers.stop + 1] - begin,
            self.edges[begin:end],
            self.is_moving[begin:end],
            self.ends_s[begin:end],
            self.starts_s[devices],
            self.classes[devices],
        )


class _Legs(NamedTuple):
    """Legs in the order of planning, not yet grouped by device."""

    devices: Longs
    edges: Ints
    is_moving: npt.NDArray[np.bool_]
    ends_s: Floats


def plan(
    streets: Streets, model: Model, device_numbers: Longs, parameters: SimulationParameters
) -> Itineraries:
    """Plan trips until every device is busy past the end of the run, or ends.

    Parameters
    ----------
    streets
        The streets.
    model
        Chooses destinations and the lengths of stays.
    device_numbers
        The devices; their numbers determine their random numbers.
    parameters
        Seed, shares of device classes and of those that drive, length of the run.
    """
    planner = _Planner(streets, model, device_numbers, parameters)
    conditions = streets.conditions
    for slot in range(conditions.slot_count):
        is_last = slot == conditions.slot_count - 1
        planner.plan_until(slot, math.inf if is_last else (slot + 1) * conditions.slot_s)
    return planner.itineraries()


class _Planner:
    """The state of devices while their trips are planned."""

    def __init__(
        self, streets: Streets, model: Model, numbers: Longs, parameters: SimulationParameters
    ) -> None:
        seed, count = parameters.seed, len(numbers)
        self._streets = streets
        self._model = model
        self._numbers = numbers
        self._classes = classes_of(numbers, parameters, seed)
        self._paces = model.paces(numbers)
        self._nodes, self._starts_s = model.starts(numbers, self._classes)
        self._clocks_s = self._starts_s.copy()
        self._run_s = float(parameters.seconds)
        self._targets = np.full(count, NOWHERE, np.int32)
        self._trips = np.zeros(count, np.int64)
        self._last_edges = _edges_into(streets.graph)[self._nodes]
        still = np.flatnonzero(uniforms(seed, TABLE, "mobility", numbers) >= parameters.mobility)
        self._parts: list[_Legs] = []
        self._stay(still, np.full(len(still), self._run_s + 1.0))

    def plan_until(self, slot: int, limit_s: float) -> None:
        """Continue all devices until a time, under the conditions of a slot."""
        limit_s = min(limit_s, math.nextafter(self._run_s, math.inf))
        while len(busy := np.flatnonzero(self._clocks_s < limit_s)):
            new = busy[self._targets[busy] == NOWHERE]
            if len(new):
                self._targets[new] = self._model.destinations(self._group(new))
            for number in np.unique(self._classes[busy]):
                self._drive(busy[self._classes[busy] == number], number, slot, limit_s)

    def _drive(self, members: Longs, class_number: int, slot: int, limit_s: float) -> None:
        """Let devices of one class drive, and stay where they arrive."""
        pace = self._streets.pace(class_number, slot)
        offsets, edges = self._streets.hierarchy.paths(
            pace.metric, self._nodes[members], self._targets[members]
        )
        counts, driven, ends_s = advance(
            offsets,
            edges,
            pace.times_s,
            self._paces[members],
            self._clocks_s[members],
            np.full(len(members), limit_s),
        )
        drivers = np.repeat(members, counts)
        self._parts.append(_Legs(drivers, driven, np.ones(len(driven), np.bool_), ends_s))
        moved = members[counts > 0]
        lasts = np.cumsum(counts)[counts > 0] - 1
        self._clocks_s[moved] = ends_s[lasts]
        self._last_edges[moved] = driven[lasts]
        self._nodes[moved] = self._streets.graph.targets[driven[lasts]]
        # A device without a path counts as arrived, too.
        arrived = members[counts == np.diff(offsets)]
        self._stay(arrived, self._model.leaves_s(self._group(arrived)))
        self._targets[arrived] = NOWHERE
        self._trips[arrived] += 1

    def _stay(self, members: Longs, until_s: Floats) -> None:
        """Let devices stay where they are. Devices that would stay for ever end."""
        ends_s = np.where(np.isfinite(until_s), until_s, self._clocks_s[members])
        edges = self._last_edges[members]
        self._parts.append(_Legs(members, edges, np.zeros(len(members), np.bool_), ends_s))
        self._clocks_s[members] = until_s

    def _group(self, members: Longs) -> Group:
        return Group(
            self._numbers[members],
            self._classes[members],
            self._nodes[members],
            self._trips[members],
            self._clocks_s[members],
        )

    def itineraries(self) -> Itineraries:
        """Group the legs by device, in the order in which they were planned."""
        legs = _Legs(*(np.concatenate(column) for column in zip(*self._parts, strict=True)))
        order = np.argsort(legs.devices, kind="stable")
        offsets = np.searchsorted(legs.devices[order], np.arange(len(self._numbers) + 1))
        return Itineraries(
            offsets=offsets.astype(np.int64),
            edges=legs.edges[order],
            is_moving=legs.is_moving[order],
            ends_s=legs.ends_s[order],
            starts_s=self._starts_s,
            classes=self._classes,
        )


def _edges_into(graph: Graph) -> Ints:
    """Return an edge that ends at each node, for devices that have not moved yet."""
    found = np.empty(graph.node_count, np.int32)
    found[graph.targets] = np.arange(len(graph.targets), dtype=np.int32)
    return found
