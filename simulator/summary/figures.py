"""The figures of a simulation: counts, speeds, lengths, load over time. Bulk data stays in Spark.

Trips are found in a sample of devices: a trip ends when the device has stood for `STAND_S` or disappears.
Trips that are cut off by the start or end of the run do not count, unless there are no others: their
length depends on that of the run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from safe_region.earth.frame import Frame
from simulator import schemas
from simulator.simulation import Simulation
from simulator.tables import reading

MOVING_MPS_MIN = 0.5
"""A slower device stands: receivers of real traces are never quite still."""

STAND_S = 60.0
TRIP_M_MIN = 100.0
"""Shorter movements are not trips."""

SPEED_BIN_MPS = 0.25
_TIME_BINS_MAX = 400
_CELLS = 400
"""Cells of the map along its longer side."""

SAMPLE_ROWS = 3_000_000
"""About the positions of the sample of devices."""

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ClassFigures:
    """The figures of a class of devices.

    Parameters
    ----------
    device_count, position_count
        The numbers of devices and positions.
    moving_share
        Fraction of the positions at which the device moves.
    km
        The total distance.
    speed_counts
        The number of moving positions within each `SPEED_BIN_MPS`.
    """

    device_count: int
    position_count: int
    moving_share: float
    km: float
    speed_counts: Longs

    def speed_kmh(self, share: float) -> float:
        """Return the speed that this fraction of moving positions does not exceed; 0 without any."""
        if not self.speed_counts.sum():
            return 0.0
        below = np.cumsum(self.speed_counts) / self.speed_counts.sum()
        return float((np.searchsorted(below, share) + 1) * SPEED_BIN_MPS * 3.6)


@dataclass(frozen=True)
class Figures:
    """The figures of a simulation.

    Parameters
    ----------
    classes
        By the name of the class of devices.
    times_s, present, moving
        Load over time: the mean numbers of devices that are present and that move, at some times.
    cells
        Positions in each cell of a grid over the area, of shape (rows from the south, columns).
    trips_m, trips_s
        Length and duration of trips of a sample of devices.
    """

    classes: dict[str, ClassFigures]
    times_s: Floats
    present: Floats
    moving: Floats
    cells: Longs
    trips_m: Floats
    trips_s: Floats


def figures(simulation: Simulation, spark: SparkSession) -> Figures:
    """Compute the figures of a simulation: three passes over the positions, and a sample of devices.

    Raises
    ------
    SimulationError
        If a table cannot be read.
    """
    with reading(simulation.path):
        return _figures(simulation, spark)


def _figures(simulation: Simulation, spark: SparkSession) -> Figures:
    path = str(simulation.path / "trajectories")
    moved = spark.read.schema(schemas.TRAJECTORIES).parquet(path)
    devices = spark.read.schema(schemas.DEVICES).parquet(str(simulation.path / "devices"))
    times_s, present, moving = _load(moved, simulation)
    trips_m, trips_s = trips(sample(moved, devices, simulation), simulation)
    return Figures(
        _classes(moved, devices, simulation),
        times_s,
        present,
        moving,
        _cells(moved, simulation),
        trips_m,
        trips_s,
    )


def _is_moving() -> Column:
    return F.col("speed_mps") >= MOVING_MPS_MIN


def _classes(moved: DataFrame, devices: DataFrame, simulation: Simulation) -> dict[str, ClassFigures]:
    period_s = simulation.world.period_ms / 1000.0
    bins = F.when(_is_moving(), F.floor(F.col("speed_mps") / SPEED_BIN_MPS)).otherwise(-1)
    counted = (
        moved.join(F.broadcast(devices.select("device_id", "device_class")), on="device_id", how="inner")
        .groupBy("device_class", bins.alias("bin"))
        .agg(F.count("*").alias("positions"), F.sum("speed_mps").alias("mps"))
        .toArrow()
    )
    of_class = {
        row["device_class"]: row["count"] for row in devices.groupBy("device_class").count().collect()
    }
    found = {}
    for name in sorted(of_class):
        rows = counted.filter(pc.equal(counted["device_class"], name))
        bin_numbers, counts = rows["bin"].to_numpy(), rows["positions"].to_numpy()
        moves = bin_numbers >= 0
        total = int(counts.sum())
        speed_counts = np.zeros(int(bin_numbers.max(initial=0)) + 1, np.int64)
        speed_counts[bin_numbers[moves]] = counts[moves]
        found[name] = ClassFigures(
            device_count=of_class[name],
            position_count=total,
            moving_share=float(counts[moves].sum() / total) if total else 0.0,
            km=float(rows["mps"].to_numpy().sum() * period_s / 1000.0),
            speed_counts=speed_counts,
        )
    return found


def _load(moved: DataFrame, simulation: Simulation) -> tuple[Floats, Floats, Floats]:
    world = simulation.world
    width = -(-world.tick_count // _TIME_BINS_MAX)
    rows = (
        moved.groupBy(F.floor(F.col("tick") / width).alias("bin"))
        .agg(F.count("*").alias("present"), F.sum(_is_moving().cast("int")).alias("moving"))
        .orderBy("bin")
        .toArrow()
    )
    bins = rows["bin"].to_numpy()
    ticks = np.minimum(width, world.tick_count - bins * width)
    times_s = (bins * width + ticks / 2.0) * world.period_ms / 1000.0
    return times_s, rows["present"].to_numpy() / ticks, rows["moving"].to_numpy() / ticks


def cell_m(simulation: Simulation) -> float:
    """Return the side of a cell of the map."""
    area = simulation.world.area
    frame = Frame.of(area)
    width_m = (area.lon_max - area.lon_min) * frame.x_m_per_deg
    height_m = (area.lat_max - area.lat_min) * frame.y_m_per_deg
    return max(width_m, height_m) / _CELLS


def _cells(moved: DataFrame, simulation: Simulation) -> Longs:
    area = simulation.world.area
    frame = Frame.of(area)
    side_m = cell_m(simulation)
    height_m = (area.lat_max - area.lat_min) * frame.y_m_per_deg
    width_m = (area.lon_max - area.lon_min) * frame.x_m_per_deg
    shape = (int(height_m / side_m) + 1, int(width_m / side_m) + 1)
    column = F.floor((F.col("lon") - area.lon_min) * (frame.x_m_per_deg / side_m))
    row = F.floor((F.col("lat") - area.lat_min) * (frame.y_m_per_deg / side_m))
    counted = (
        moved.where(_is_moving()).groupBy(row.alias("row"), column.alias("column")).count().toArrow()
    )
    found = np.zeros(shape, np.int64)
    rows, columns = counted["row"].to_numpy(), counted["column"].to_numpy()
    is_within = (rows >= 0) & (rows < shape[0]) & (columns >= 0) & (columns < shape[1])
    found[rows[is_within], columns[is_within]] = counted["count"].to_numpy()[is_within]
    return found


def sample(
    moved: DataFrame, devices: DataFrame, simulation: Simulation, rows_max: int = SAMPLE_ROWS
) -> pa.Table:
    """Return all positions of some devices, those with small hashes.

    Parameters
    ----------
    moved, devices
        The trajectories and the devices.
    simulation
        The simulation, which has the numbers of their rows.
    rows_max
        About the maximum number of positions: as many devices as have so many on average, at least one.
    """
    device_count, row_count = (max(1, simulation.row_count(one)) for one in ("devices", "trajectories"))
    wanted = max(1, rows_max * device_count // row_count)
    ordered = devices.select("device_id").orderBy(F.xxhash64("device_id"), "device_id")
    found = moved.join(F.broadcast(ordered.limit(wanted)), on="device_id", how="left_semi")
    return found.select("device_id", "tick", "lon", "lat", "speed_mps").toArrow()


def trips(rows: pa.Table, simulation: Simulation) -> tuple[Floats, Floats]:
    """Return length and duration of the trips of devices, given all of their rows. O(rows log rows)."""
    frame = Frame.of(simulation.world.area)
    period_s = simulation.world.period_ms / 1000.0
    devices = rows["device_id"].combine_chunks().dictionary_encode().indices.to_numpy()
    ticks, speeds_mps = rows["tick"].to_numpy(), rows["speed_mps"].to_numpy()
    order = np.lexsort((ticks, devices))
    order = order[speeds_mps[order] >= MOVING_MPS_MIN]
    if not len(order):
        return np.empty(0), np.empty(0)
    xs_m = rows["lon"].to_numpy()[order] * frame.x_m_per_deg
    ys_m = rows["lat"].to_numpy()[order] * frame.y_m_per_deg
    steps_m = np.hypot(np.diff(xs_m), np.diff(ys_m))
    waits_s = np.diff(ticks[order]) * period_s
    is_new = (np.diff(devices[order]) != 0) | (waits_s > max(STAND_S, period_s))
    firsts = np.concatenate([[0], np.flatnonzero(is_new) + 1])
    lasts = np.concatenate([firsts[1:] - 1, [len(order) - 1]])
    ways_m = np.concatenate([[0.0], np.cumsum(np.where(is_new, 0.0, steps_m))])
    lengths_m = ways_m[lasts] - ways_m[firsts]
    durations_s = (ticks[order][lasts] - ticks[order][firsts]) * period_s
    is_trip = lengths_m >= TRIP_M_MIN
    is_whole = is_trip & ~_is_cut(ticks[order][firsts], ticks[order][lasts], simulation)
    kept = is_whole if is_whole.any() else is_trip
    return lengths_m[kept], durations_s[kept]


def _is_cut(firsts: Longs, lasts: Longs, simulation: Simulation) -> npt.NDArray[np.bool_]:
    """Return the mask of trips that the run has cut off; recorded traces are complete."""
    if "movement" not in simulation.world.parameters:
        return np.zeros(len(firsts), np.bool_)
    found: npt.NDArray[np.bool_] = (firsts == 0) | (lasts == simulation.world.tick_count - 1)
    return found
