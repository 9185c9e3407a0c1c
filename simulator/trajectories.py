"""Trajectories: devices drive along the streets from one destination to the next.

A device starts on the way between two points, takes the fastest path its class allows, stays a
while, goes on. Its itinerary is a list of legs in continuous time; positions are looked up at the
ticks, so that what is left of an edge carries over. Speed depends on the class of the edge *and* of
the device. Cost: one path search per trip, O(legs + ticks) for the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame

from simulator import schemas
from simulator.chance import uniforms
from simulator.graph import Graph
from simulator.parameters import SimulationParameters
from simulator.traffic import DEVICE_CLASSES
from simulator.trajectory_kernels import sample

TABLE = "trajectories"

PLACE_SHARE = 0.8
"""Share of the destinations that are places; the others are anywhere on a street (homes)."""

POPULARITY = 2.0
"""Exponent that favours places of small id: half of the visits go to a quarter of the places."""

PACE_MIN = 0.85
"""The slowest device drives at this share of what its class would."""

HEAD_START_S_MAX = 300.0
"""Devices have been on their way for up to this long at tick 0."""

_CHUNK = 256
"""Devices sampled together: bounds memory, amortises the entry into kernels."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Destinations:
    """Where devices go.

    Parameters
    ----------
    place_nodes
        The node nearest to each place, by popularity; one array per device class.
    open_nodes
        All nodes of the streets that are open to each device class.
    """

    place_nodes: list[Ints]
    open_nodes: list[Ints]

    @classmethod
    def of(cls, graph: Graph, places: pa.Table) -> Destinations:
        """Find the nodes of the places. O(places * nodes) distances, in numpy."""
        ids = places["place_id"].to_numpy()
        order = np.argsort(ids, kind="stable")
        lons = places["lon"].to_numpy()[order]
        lats = places["lat"].to_numpy()[order]
        open_nodes = [graph.open_nodes(one) for one in range(len(DEVICE_CLASSES))]
        place_nodes = [_nearest(graph, nodes, lons, lats) for nodes in open_nodes]
        return cls(place_nodes, open_nodes)


def _nearest(graph: Graph, nodes: Ints, lons: Floats, lats: Floats) -> Ints:
    stretch = np.cos(np.radians(graph.lats.mean()))
    found = np.empty(len(lons), np.int32)
    for i, (lon, lat) in enumerate(zip(lons, lats, strict=True)):
        dx = (graph.lons[nodes] - lon) * stretch
        dy = graph.lats[nodes] - lat
        found[i] = nodes[np.argmin(dx * dx + dy * dy)]
    return found


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


def device_classes(device_numbers: Longs, parameters: SimulationParameters) -> Ints:
    """Return the class of each device, as an index into `DEVICE_CLASSES`."""
    bounds = np.cumsum([parameters.car_share, parameters.bicycle_share])
    draws = uniforms(parameters.seed, TABLE, "class", device_numbers)
    return np.searchsorted(bounds, draws, side="right").astype(np.int32)


def plan(
    graph: Graph,
    destinations: Destinations,
    device_numbers: Longs,
    until_s: Floats,
    parameters: SimulationParameters,
) -> Itineraries:
    """Plan trips until every device is busy past a time of its own.

    Parameters
    ----------
    graph, destinations
        Where to drive.
    device_numbers
        Who drives: what their randomness is drawn from.
    until_s
        How long each has to be busy.
    parameters
        Seed, shares of device classes and length of stops.
    """
    seed = parameters.seed
    classes = device_classes(device_numbers, parameters)
    paces = PACE_MIN + (1.0 - PACE_MIN) * uniforms(seed, TABLE, "pace", device_numbers)
    at_nodes = _home_nodes(destinations, device_numbers, classes, seed)
    last_edges = _edges_into(graph)[at_nodes]
    clocks_s = np.zeros(len(device_numbers))
    parts: list[tuple[npt.NDArray[np.int64], Ints, npt.NDArray[np.bool_], Floats]] = []
    trip = 0
    while True:
        busy = np.flatnonzero(clocks_s <= until_s)
        if len(busy) == 0:
            break
        numbers = device_numbers[busy]
        to_nodes = _next_nodes(graph, destinations, numbers, classes[busy], at_nodes[busy], trip, seed)
        offsets, edges = graph.shortest_paths(at_nodes[busy], to_nodes, classes[busy])
        counts = np.diff(offsets)
        arrived = counts > 0
        last_edges[busy[arrived]] = edges[offsets[1:][arrived] - 1]
        at_nodes[busy[arrived]] = to_nodes[arrived]
        drivers = np.repeat(busy, counts)
        speeds_mps = graph.speeds_mps[classes[drivers], edges] * paces[drivers]
        drive_s = graph.lengths_m[edges] / speeds_mps
        draws = uniforms(seed, TABLE, "stop", numbers, trip)
        stops_s = parameters.stop_s_mean * (0.2 + 1.6 * draws)
        clocks_s += np.bincount(drivers, drive_s, len(clocks_s))
        clocks_s[busy] += stops_s
        parts.append((drivers, edges, np.ones(len(edges), np.bool_), drive_s))
        parts.append((busy, last_edges[busy], np.zeros(len(busy), np.bool_), stops_s))
        trip += 1
    return _joined(parts, len(device_numbers))


def _joined(
    parts: list[tuple[npt.NDArray[np.int64], Ints, npt.NDArray[np.bool_], Floats]],
    device_count: int,
) -> Itineraries:
    """Bring the legs of each device together, in the order in which they were planned."""
    devices = np.concatenate([part[0] for part in parts])
    order = np.argsort(devices, kind="stable")
    durations_s = np.concatenate([part[3] for part in parts])[order]
    offsets = np.searchsorted(devices[order], np.arange(device_count + 1)).astype(np.int64)
    ends_s = np.empty(len(order))
    # Summed per device, not over all: a sum must not depend on who else is in the batch.
    for begin, end in pairwise(offsets):
        np.cumsum(durations_s[begin:end], out=ends_s[begin:end])
    return Itineraries(
        offsets=offsets,
        edges=np.concatenate([part[1] for part in parts])[order],
        is_moving=np.concatenate([part[2] for part in parts])[order],
        ends_s=ends_s,
    )


def _edges_into(graph: Graph) -> Ints:
    """Return some edge that ends at each node, for devices that have not moved yet."""
    found = np.empty(graph.node_count, np.int32)
    found[graph.targets] = np.arange(len(graph.targets), dtype=np.int32)
    return found


def _home_nodes(destinations: Destinations, device_numbers: Longs, classes: Ints, seed: int) -> Ints:
    draws = uniforms(seed, TABLE, "home", device_numbers)
    counts = np.array([len(nodes) for nodes in destinations.open_nodes])
    index = (draws * counts[classes]).astype(np.int64)
    found = np.empty(len(device_numbers), np.int32)
    for one, nodes in enumerate(destinations.open_nodes):
        of_class = classes == one
        found[of_class] = nodes[index[of_class]]
    return found


def _next_nodes(
    graph: Graph,
    destinations: Destinations,
    device_numbers: Longs,
    classes: Ints,
    at_nodes: Ints,
    trip: int,
    seed: int,
) -> Ints:
    """Pick a destination for each device: of some candidates, the nearest that is not here."""
    found = np.empty(len(device_numbers), np.int32)
    for one, device_class in enumerate(DEVICE_CLASSES):
        of_class = np.flatnonzero(classes == one)
        numbers = device_numbers[of_class, np.newaxis]
        candidates = np.arange(device_class.candidates)
        draws = uniforms(seed, TABLE, "destination", numbers, trip, candidates)
        kinds = uniforms(seed, TABLE, "kind", numbers, trip, candidates)
        places = destinations.place_nodes[one]
        nodes = destinations.open_nodes[one]
        to_place = places[(draws**POPULARITY * len(places)).astype(np.int64)]
        to_node = nodes[(draws * len(nodes)).astype(np.int64)]
        options = np.where(kinds < PLACE_SHARE, to_place, to_node)
        here = at_nodes[of_class, np.newaxis]
        dx_m = graph.xs_m[options] - graph.xs_m[here]
        dy_m = graph.ys_m[options] - graph.ys_m[here]
        distances = np.where(options == here, np.inf, dx_m * dx_m + dy_m * dy_m)
        nearest = np.argmin(distances, axis=1)
        found[of_class] = options[np.arange(len(of_class)), nearest]
    return found


def drive(
    graph: Graph,
    destinations: Destinations,
    device_numbers: Longs,
    parameters: SimulationParameters,
) -> pa.RecordBatch:
    """Return the trajectories of some devices, in the schema of the table.

    Each device's rows are the same whoever else is in the batch.
    """
    ticks = parameters.tick_count
    period_s = parameters.period_ms / 1000.0
    begins_s = HEAD_START_S_MAX * uniforms(parameters.seed, TABLE, "head_start", device_numbers)
    until_s = begins_s + (ticks - 1) * period_s
    itineraries = plan(graph, destinations, device_numbers, until_s, parameters)
    legs, fractions = sample(itineraries.offsets, itineraries.ends_s, begins_s, period_s, ticks)
    legs, fractions = legs.ravel(), fractions.ravel()
    edges = itineraries.edges[legs]
    is_moving = itineraries.is_moving[legs]
    fractions = np.where(is_moving, fractions, 1.0)
    starts, ends = graph.sources[edges], graph.targets[edges]
    lons = graph.lons[starts] + fractions * (graph.lons[ends] - graph.lons[starts])
    lats = graph.lats[starts] + fractions * (graph.lats[ends] - graph.lats[starts])
    durations_s = np.diff(itineraries.ends_s, prepend=0.0)
    durations_s[itineraries.offsets[:-1]] = itineraries.ends_s[itineraries.offsets[:-1]]
    speeds_mps = np.where(is_moving, graph.lengths_m[edges] / durations_s[legs], 0.0)
    dx_m = graph.xs_m[ends] - graph.xs_m[starts]
    dy_m = graph.ys_m[ends] - graph.ys_m[starts]
    columns = [
        pa.array([device_id(one) for one in device_numbers]).take(
            pa.array(np.repeat(np.arange(len(device_numbers)), ticks))
        ),
        pa.array(np.tile(np.arange(ticks, dtype=np.int32), len(device_numbers))),
        pa.array(lons),
        pa.array(lats),
        pa.array(np.degrees(np.arctan2(dx_m, dy_m)) % 360.0),
        pa.array(speeds_mps),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schemas.arrow_schema(schemas.TRAJECTORIES))


def device_id(number: int) -> str:
    """Return the id of a device."""
    return f"device-{number:06d}"


def trajectories(
    devices: DataFrame, graph: Graph, destinations: Destinations, parameters: SimulationParameters
) -> DataFrame:
    """Return the trajectories of devices.

    Parameters
    ----------
    devices
        One int64 column: the devices' numbers.
    graph, destinations
        Where to drive; broadcast to the workers.
    parameters
        Seed, period and length of the run.
    """
    shared = devices.sparkSession.sparkContext.broadcast((graph, destinations))

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        streets, goals = shared.value
        for batch in batches:
            numbers = batch.column(0).to_numpy()
            for first in range(0, len(numbers), _CHUNK):
                yield drive(streets, goals, numbers[first : first + _CHUNK], parameters)

    return devices.mapInArrow(run, schemas.TRAJECTORIES)
