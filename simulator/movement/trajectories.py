"""Trajectories: the itineraries of a model of movement, sampled at the ticks.

The remaining part of an edge at a tick is driven before the next. Load is the number of cars on each road
in a first pass. Cost: one path search a trip and slot of conditions, O(legs + ticks) for the rest.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from simulator import schemas
from simulator.movement.brinkhoff import BrinkhoffModel
from simulator.movement.classes import CAR, classes_of, object_classes
from simulator.movement.commuters import STEPS, CommuterModel
from simulator.movement.itineraries import Itineraries, plan
from simulator.movement.model import Model
from simulator.movement.streets import Streets
from simulator.movement.trajectory_kernels import positions, sample
from simulator.movement.trips import HEAD_START_S_MAX, TripModel
from simulator.parameters import SimulationParameters
from simulator.parameters.movement import BRINKHOFF, COMMUTERS, TRIPS

MODELS: dict[str, type[TripModel | BrinkhoffModel | CommuterModel]] = {
    TRIPS: TripModel,
    BRINKHOFF: BrinkhoffModel,
    COMMUTERS: CommuterModel,
}

_ROWS = 131_072
"""About the rows of a batch: bounds memory, and amortises the calls of kernels."""

_LEGS = 4_000_000
"""About the legs that are planned together: the more devices, the fewer metrics are computed for them."""

_LEG_S = 5.0
_LEGS_OF_TRIP = 200
"""Estimates for the two above: the time that a device is on an edge, the edges of a commuter's trip."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


def model_of(streets: Streets, parameters: SimulationParameters) -> Model:
    """Return the model of movement."""
    return MODELS[parameters.movement](streets, parameters)


def drive(streets: Streets, device_numbers: Longs, parameters: SimulationParameters) -> pa.RecordBatch:
    """Return the trajectories of some devices, in the schema of the table.

    The rows of each device do not depend on the other devices of the batch.
    """
    itineraries = plan(streets, model_of(streets, parameters), device_numbers, parameters)
    return looked_up(streets, itineraries, device_numbers, parameters)


def looked_up(
    streets: Streets, itineraries: Itineraries, device_numbers: Longs, parameters: SimulationParameters
) -> pa.RecordBatch:
    """Return the positions of devices at the ticks, in the schema of the table."""
    graph = streets.graph
    period_s = parameters.period_ms / 1000.0
    firsts = np.maximum(0, np.ceil(itineraries.starts_s / period_s)).astype(np.int64)
    lasts = np.minimum(parameters.tick_count - 1, np.floor(itineraries.stops_s / period_s))
    # A device that appears and disappears between two ticks has a position at the second.
    counts = np.maximum(1, lasts.astype(np.int64) - firsts + 1)
    row_offsets = np.concatenate([[0], np.cumsum(counts)])
    legs, shares, durations_s = sample(
        itineraries.offsets, itineraries.ends_s, itineraries.starts_s, period_s, firsts, row_offsets
    )
    edges, lons, lats, speeds_mps = positions(
        legs,
        shares,
        durations_s,
        itineraries.edges,
        itineraries.is_moving,
        graph.sources,
        graph.targets,
        graph.lengths_m,
        graph.lons,
        graph.lats,
    )
    owners = np.repeat(np.arange(len(device_numbers)), counts)
    ticks = np.arange(row_offsets[-1]) - row_offsets[:-1][owners] + firsts[owners]
    columns = [
        pa.array([device_id(one) for one in device_numbers]).take(pa.array(owners)),
        pa.array(ticks.astype(np.int32)),
        pa.array(lons),
        pa.array(lats),
        pa.array(graph.headings_deg[edges]),
        pa.array(speeds_mps),
        pa.array(graph.edge_ids[edges]),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schemas.arrow_schema(schemas.TRAJECTORIES))


def device_id(number: int) -> str:
    """Return the id of a device."""
    return f"device-{number:06d}"


def trajectories(numbers: DataFrame, streets: Streets, parameters: SimulationParameters) -> DataFrame:
    """Return the trajectories of devices.

    Parameters
    ----------
    numbers
        One int64 column: the devices' numbers.
    streets
        The streets; broadcast to the workers.
    parameters
        Seed, period and length of the run, and the model of movement.
    """
    shared = numbers.sparkSession.sparkContext.broadcast(streets)
    rows_at_once = max(1, _ROWS // parameters.tick_count)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = shared.value
        for group in _groups(batches, parameters):
            itineraries = plan(found, model_of(found, parameters), group, parameters)
            for first in range(0, len(group), rows_at_once):
                part = slice(first, first + rows_at_once)
                yield looked_up(found, itineraries.part(part), group[part], parameters)

    return numbers.mapInArrow(run, schemas.TRAJECTORIES)


def loads(numbers: DataFrame, streets: Streets, parameters: SimulationParameters) -> DataFrame:
    """Return the number of cars on each road in each slot of time, if no car is slowed down by others.

    A car is counted for the time that it is on a road, in the slot in which it entered the road, in whole
    milliseconds: sums are therefore the same in any order.

    Parameters
    ----------
    numbers, streets, parameters
        As for `trajectories`.
    """
    shared = numbers.sparkSession.sparkContext.broadcast(streets)
    slot_ms = 1000.0 * streets.conditions.slot_s
    per_device = parameters.vehicles_per_device

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = shared.value
        for group in _groups(batches, parameters):
            planned = plan(found, model_of(found, parameters), group, parameters)
            yield counted(found, planned, parameters)

    parts = numbers.mapInArrow(run, schemas.PARTIAL_LOADS)
    sums = parts.groupBy("slot", "edge_id").agg(F.sum("busy_ms").alias("busy_ms"))
    vehicles = F.col("busy_ms") * F.lit(per_device / slot_ms)
    return sums.select("slot", "edge_id", vehicles.alias("vehicles"))


def counted(
    streets: Streets, itineraries: Itineraries, parameters: SimulationParameters
) -> pa.RecordBatch:
    """Return the time that cars are on each road in each slot, in whole milliseconds."""
    is_car = np.array([one.mode == CAR for one in streets.classes])[itineraries.classes]
    begins_s = itineraries.begins_s
    counts = itineraries.is_moving & np.repeat(is_car, np.diff(itineraries.offsets))
    counts &= (begins_s >= 0.0) & (begins_s <= parameters.seconds)
    busy_ms = np.rint((itineraries.ends_s - begins_s)[counts] * 1000.0).astype(np.int64)
    conditions = streets.conditions
    slots = np.minimum((begins_s[counts] // conditions.slot_s), conditions.slot_count - 1)
    edge_count = len(streets.graph.targets)
    keys = slots.astype(np.int64) * edge_count + itineraries.edges[counts]
    order = np.argsort(keys, kind="stable")
    found, firsts = np.unique(keys[order], return_index=True)
    sums_ms = np.add.reduceat(busy_ms[order], firsts) if len(found) else busy_ms
    columns = [
        pa.array((found // edge_count).astype(np.int32)),
        pa.array(streets.graph.edge_ids[found % edge_count]),
        pa.array(sums_ms),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schemas.arrow_schema(schemas.PARTIAL_LOADS))


def devices(numbers: DataFrame, parameters: SimulationParameters) -> DataFrame:
    """Return the table of devices.

    Parameters
    ----------
    numbers
        One int64 column: the devices' numbers.
    parameters
        Seed, and shares of the classes.
    """
    classes = object_classes(parameters)
    names = np.array([one.name for one in classes])
    speeds_mps = np.array([one.speed_mps_max for one in classes]) * parameters.velocity

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = schemas.arrow_schema(schemas.DEVICES)
        for batch in batches:
            found = batch.column(0).to_numpy()
            kinds = classes_of(found, parameters, parameters.seed)
            columns = [
                pa.array([device_id(one) for one in found]),
                pa.array(names[kinds]),
                pa.array(speeds_mps[kinds]),
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return numbers.mapInArrow(run, schemas.DEVICES)


def _groups(batches: Iterator[pa.RecordBatch], parameters: SimulationParameters) -> Iterator[Longs]:
    """Divide devices into groups that are planned together."""
    legs = (parameters.seconds + HEAD_START_S_MAX) / _LEG_S
    if parameters.movement == COMMUTERS:
        legs = (parameters.seconds / 86_400.0 + 1.0) * STEPS * _LEGS_OF_TRIP
    size = max(1, int(_LEGS / legs))
    for batch in batches:
        numbers = batch.column(0).to_numpy()
        for first in range(0, len(numbers), size):
            yield numbers[first : first + size]
