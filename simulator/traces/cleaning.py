"""Classifies points: those that are kept, and the reasons why others are not."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from safe_region.earth.frame import LATITUDE_MAX_DEG, LONGITUDE_MAX_DEG, Area, Frame
from simulator import schemas
from simulator.parameters.traces import TraceOptions
from simulator.traces.batches import Longs, by_group
from simulator.traces.cleaning_kernels import classify
from simulator.traces.points import KEYS, ORDER, POINTS, Verdict


def has_position() -> Column:
    """Return whether a point has a position: valid degrees, and not 0, 0."""
    lon, lat = F.col("lon"), F.col("lat")
    is_known = lon.isNotNull() & lat.isNotNull() & ~F.isnan("lon") & ~F.isnan("lat")
    is_of_earth = (F.abs("lon") <= LONGITUDE_MAX_DEG) & (F.abs("lat") <= LATITUDE_MAX_DEG)
    return is_known & is_of_earth & ((lon != 0.0) | (lat != 0.0))


def is_in_time(options: TraceOptions) -> Column:
    """Return whether a point is within the requested time."""
    found = F.col("t_ms").isNotNull()
    if options.begin_ms is not None:
        found &= F.col("t_ms") >= options.begin_ms
    if options.end_ms is not None:
        found &= F.col("t_ms") < options.end_ms
    return found


def cleaned(points: DataFrame, area: Area, options: TraceOptions, partitions: int) -> DataFrame:
    """Return classified points in the schema `POINTS`, those of a piece in the order of their times.

    Parameters
    ----------
    points
        In the schema `RAW`.
    area
        The area in which points count.
    options
        Gap, greatest speed, least points, times.
    partitions
        The number of tasks; no influence on the result.
    """
    lon, lat = F.col("lon"), F.col("lat")
    is_inside = lon.between(area.lon_min, area.lon_max) & lat.between(area.lat_min, area.lat_max)
    verdict = (
        F.when(F.col("t_ms").isNull(), Verdict.NO_TIME.value)
        .when(~has_position(), Verdict.NO_POSITION.value)
        .when(~is_in_time(options), Verdict.OTHER_TIME.value)
        .when(~is_inside, Verdict.OUTSIDE.value)
        .otherwise(Verdict.KEPT.value)
    )
    judged = points.withColumn("verdict", verdict.cast("byte"))
    frame = Frame.of(area)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return by_group(batches, KEYS, lambda table, offsets: clean(table, offsets, frame, options))

    return (
        judged.repartition(partitions, *KEYS).sortWithinPartitions(*KEYS, *ORDER).mapInArrow(run, POINTS)
    )


def clean(table: pa.Table, offsets: Longs, frame: Frame, options: TraceOptions) -> pa.Table:
    """Classify the points of whole traces.

    Parameters
    ----------
    table
        In the schema `RAW`, with a column `verdict`.
    offsets
        The starts of traces, and the number of points.
    frame
        The plane.
    options
        Gap, greatest speed, least points.
    """
    verdicts = table["verdict"].to_numpy().astype(np.int8)
    lons, lats = (table[name].fill_null(0.0).to_numpy() for name in ("lon", "lat"))
    pieces, steps_ms = classify(
        offsets,
        table["t_ms"].fill_null(0).to_numpy(),
        (lons - frame.lon0_deg) * frame.x_m_per_deg,
        (lats - frame.lat0_deg) * frame.y_m_per_deg,
        verdicts,
        round(options.gap_s * 1000.0),
        options.speed_mps_max,
        options.points_min,
    )
    columns = {name: table[name] for name in table.column_names if name != "verdict"}
    columns |= {
        "verdict": pa.array(verdicts),
        "piece": pa.array(pieces),
        "step_ms": pa.array(steps_ms, mask=steps_ms < 0),
    }
    return pa.table(columns).select(POINTS.names).cast(schemas.arrow_schema(POINTS))
