"""Itineraries: what each device does, as timed legs in continuous time.

A device takes the fastest path its class allows, stays a while, goes on. Speed depends on the class
of the edge *and* of the device. Cost: one path search per trip; trips are planned in rounds, one for
every device that is not busy long enough yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from simulator.chance import uniforms
from simulator.movement.destinations import home_nodes, next_nodes
from simulator.movement.streets import Streets
from simulator.network.graph import Graph
from simulator.parameters import SimulationParameters

TABLE = "trajectories"

PACE_MIN = 0.85
"""The slowest device drives at this share of what its class would."""

STOP_SPREAD = (0.2, 1.8)
"""A stop is uniform between these multiples of the mean."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Itineraries:
    """What a group of devices does, as compressed sparse rows of legs.

    Parameters
    ----------
    offsets
        int64, devices + 1: the legs of device d are offsets[d]..offsets[d + 1].
    edges
        The edge each leg is on.
    is_moving
        Whether the leg follows its edge; else the device stands at the edge's end.
    ends_s
        When the leg ends, on the device's clock.
    """

    offsets: Longs
    edges: Ints
    is_moving: npt.NDArray[np.bool_]
    ends_s: Floats


class _Legs(NamedTuple):
    """Legs in the order of planning, not yet grouped by device."""

    devices: Longs
    edges: Ints
    is_moving: npt.NDArray[np.bool_]
    durations_s: Floats


def device_classes(device_numbers: Longs, parameters: SimulationParameters) -> Ints:
    """Return the class of each device, as an index into `DEVICE_CLASSES`."""
    bounds = np.cumsum([parameters.car_share, parameters.bicycle_share])
    draws = uniforms(parameters.seed, TABLE, "class", device_numbers)
    return np.searchsorted(bounds, draws, side="right").astype(np.int32)


def plan(
    streets: Streets,
    device_numbers: Longs,
    until_s: Floats,
    parameters: SimulationParameters,
) -> Itineraries:
    """Plan trips until every device is busy past a time of its own.

    Parameters
    ----------
    streets
        Where to drive.
    device_numbers
        Who drives: what their randomness is drawn from.
    until_s
        How long each has to be busy.
    parameters
        Seed, shares of device classes and of those that drive, how fast, and length of stops.
    """
    graph, router, destinations = streets
    seed = parameters.seed
    classes = device_classes(device_numbers, parameters)
    paces = PACE_MIN + (1.0 - PACE_MIN) * uniforms(seed, TABLE, "pace", device_numbers)
    paces *= parameters.velocity
    at_nodes = home_nodes(destinations, device_numbers, classes, seed)
    last_edges = _edges_into(graph)[at_nodes]
    clocks_s = np.zeros(len(device_numbers))
    still = np.flatnonzero(uniforms(seed, TABLE, "mobility", device_numbers) >= parameters.mobility)
    parts = [_Legs(still, last_edges[still], np.zeros(len(still), np.bool_), until_s[still] + 1.0)]
    clocks_s[still] = until_s[still] + 1.0
    low, high = STOP_SPREAD
    trip = 0
    while True:
        busy = np.flatnonzero(clocks_s <= until_s)
        if len(busy) == 0:
            break
        numbers = device_numbers[busy]
        to_nodes = next_nodes(graph, destinations, numbers, classes[busy], at_nodes[busy], trip, seed)
        offsets, edges = router.paths(at_nodes[busy], to_nodes, classes[busy])
        counts = np.diff(offsets)
        arrived = counts > 0
        last_edges[busy[arrived]] = edges[offsets[1:][arrived] - 1]
        at_nodes[busy[arrived]] = to_nodes[arrived]
        drivers = np.repeat(busy, counts)
        speeds_mps = graph.speeds_mps[classes[drivers], edges] * paces[drivers]
        drive_s = graph.lengths_m[edges] / speeds_mps
        draws = uniforms(seed, TABLE, "stop", numbers, trip)
        stops_s = parameters.stop_s_mean * (low + (high - low) * draws)
        clocks_s += np.bincount(drivers, drive_s, len(clocks_s))
        clocks_s[busy] += stops_s
        parts.append(_Legs(drivers, edges, np.ones(len(edges), np.bool_), drive_s))
        parts.append(_Legs(busy, last_edges[busy], np.zeros(len(busy), np.bool_), stops_s))
        trip += 1
    return _joined(parts, len(device_numbers))


def _joined(parts: list[_Legs], device_count: int) -> Itineraries:
    """Bring the legs of each device together, in the order in which they were planned."""
    legs = _Legs(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    order = np.argsort(legs.devices, kind="stable")
    durations_s = legs.durations_s[order]
    offsets = np.searchsorted(legs.devices[order], np.arange(device_count + 1)).astype(np.int64)
    ends_s = np.empty(len(order))
    # Summed per device, not over all: a sum must not depend on who else is in the batch.
    for begin, end in pairwise(offsets):
        np.cumsum(durations_s[begin:end], out=ends_s[begin:end])
    return Itineraries(
        offsets=offsets,
        edges=legs.edges[order],
        is_moving=legs.is_moving[order],
        ends_s=ends_s,
    )


def _edges_into(graph: Graph) -> Ints:
    """Return some edge that ends at each node, for devices that have not moved yet."""
    found = np.empty(graph.node_count, np.int32)
    found[graph.targets] = np.arange(len(graph.targets), dtype=np.int32)
    return found
