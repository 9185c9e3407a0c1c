"""Trajectories: devices drive along the streets from one destination to the next.

A device starts on the way between two points, takes the fastest path its class allows, stays a
while, goes on. Its itinerary is a list of legs in continuous time; positions are looked up at the
ticks, so that what is left of an edge carries over. Speed depends on the class of the edge *and* of
the device. Cost: one path search per trip, O(legs + ticks) for the rest.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame

from simulator import schemas
from simulator.chance import uniforms
from simulator.movement.itineraries import device_classes, plan
from simulator.movement.streets import Streets
from simulator.movement.trajectory_kernels import sample
from simulator.network.traffic import DEVICE_CLASSES
from simulator.parameters import SimulationParameters

TABLE = "trajectories"

HEAD_START_S_MAX = 300.0
"""Devices have been on their way for up to this long at tick 0."""

_CHUNK = 256
"""Devices sampled together: bounds memory, amortises the entry into kernels."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


def drive(streets: Streets, device_numbers: Longs, parameters: SimulationParameters) -> pa.RecordBatch:
    """Return the trajectories of some devices, in the schema of the table.

    Each device's rows are the same whoever else is in the batch.
    """
    graph = streets.graph
    ticks = parameters.tick_count
    period_s = parameters.period_ms / 1000.0
    begins_s = HEAD_START_S_MAX * uniforms(parameters.seed, TABLE, "head_start", device_numbers)
    until_s = begins_s + (ticks - 1) * period_s
    itineraries = plan(streets, device_numbers, until_s, parameters)
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
        pa.array(graph.edge_ids[edges]),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schemas.arrow_schema(schemas.TRAJECTORIES))


def device_id(number: int) -> str:
    """Return the id of a device."""
    return f"device-{number:06d}"


def trajectories(devices: DataFrame, streets: Streets, parameters: SimulationParameters) -> DataFrame:
    """Return the trajectories of devices.

    Parameters
    ----------
    devices
        One int64 column: the devices' numbers.
    streets
        Where to drive; broadcast to the workers.
    parameters
        Seed, period and length of the run.
    """
    shared = devices.sparkSession.sparkContext.broadcast(streets)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = shared.value
        for batch in batches:
            numbers = batch.column(0).to_numpy()
            for first in range(0, len(numbers), _CHUNK):
                yield drive(found, numbers[first : first + _CHUNK], parameters)

    return devices.mapInArrow(run, schemas.TRAJECTORIES)


def devices(numbers: DataFrame, parameters: SimulationParameters) -> DataFrame:
    """Return who moves.

    Parameters
    ----------
    numbers
        One int64 column: the devices' numbers.
    parameters
        Seed, and shares of the classes.
    """
    names = np.array([one.name for one in DEVICE_CLASSES])
    caps_mps = np.array([one.cap_mps for one in DEVICE_CLASSES]) * parameters.velocity

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = schemas.arrow_schema(schemas.DEVICES)
        for batch in batches:
            found = batch.column(0).to_numpy()
            classes = device_classes(found, parameters)
            columns = [
                pa.array([device_id(one) for one in found]),
                pa.array(names[classes]),
                pa.array(caps_mps[classes]),
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return numbers.mapInArrow(run, schemas.DEVICES)
