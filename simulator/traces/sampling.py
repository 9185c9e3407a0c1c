"""Positions of devices at ticks, along the straight lines between points, or along matched roads."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from safe_region.earth.frame import Frame
from simulator import schemas
from simulator.traces.batches import Longs, by_group
from simulator.traces.matching.matcher import Matcher
from simulator.traces.matching.routes import no_routes
from simulator.traces.pieces import PIECE_KEYS
from simulator.traces.points import Verdict
from simulator.traces.sampling_kernels import between

Floats = npt.NDArray[np.float64]

_COLUMNS = ("device_id", "t_ms", "lon", "lat", "origin_ms", "first_tick", "ticks")


def sampled(
    points: DataFrame,
    pieces: DataFrame,
    frame: Frame,
    period_ms: int,
    matcher: Matcher | None,
    partitions: int,
) -> DataFrame:
    """Return the trajectories of traces.

    Parameters
    ----------
    points
        In the schema `POINTS`.
    pieces
        In the schema `PIECES`.
    frame
        The plane.
    period_ms
        The time from tick to tick.
    matcher
        Finds roads; broadcast to the workers. None for none.
    partitions
        The number of tasks; no influence on the result.
    """
    kept = points.where(F.col("verdict") == Verdict.KEPT.value)
    joined = kept.join(pieces, on=list(PIECE_KEYS), how="inner").select(*_COLUMNS)
    ordered = joined.repartition(partitions, "device_id").sortWithinPartitions("device_id", "t_ms")
    shared = points.sparkSession.sparkContext.broadcast(matcher)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = shared.value
        return by_group(
            batches,
            ("device_id",),
            lambda table, offsets: sample(table, offsets, frame, period_ms, found),
        )

    return ordered.mapInArrow(run, schemas.TRAJECTORIES)


def sample(
    table: pa.Table, offsets: Longs, frame: Frame, period_ms: int, matcher: Matcher | None
) -> pa.Table:
    """Return the positions of some devices at ticks.

    Parameters
    ----------
    table
        Points by device and time, each with the ticks of its device.
    offsets
        The starts of devices, and the number of points.
    frame, period_ms, matcher
        As for `sampled`.
    """
    column = {name: table[name].to_numpy() for name in table.column_names if name != "device_id"}
    heads = offsets[:-1]
    firsts, counts = column["first_tick"][heads], column["ticks"][heads]
    tick_offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    ts_ms = column["t_ms"]
    points, fractions = between(
        offsets, ts_ms, column["origin_ms"][heads], tick_offsets, firsts, period_ms
    )
    xs_m = (column["lon"] - frame.lon0_deg) * frame.x_m_per_deg
    ys_m = (column["lat"] - frame.lat0_deg) * frame.y_m_per_deg
    routes = no_routes(len(ts_ms)) if matcher is None else matcher.routes(offsets, ts_ms, xs_m, ys_m)
    where = routes.along(points, fractions, ts_ms, xs_m, ys_m)
    owners = np.repeat(np.arange(len(heads)), counts)
    ticks = firsts[owners] + np.arange(len(owners)) - tick_offsets[owners]
    columns = {
        "device_id": table["device_id"].take(pa.array(heads[owners])),
        "tick": ticks.astype(np.int32),
        "lon": frame.lon0_deg + where.xs_m / frame.x_m_per_deg,
        "lat": frame.lat0_deg + where.ys_m / frame.y_m_per_deg,
        "heading_deg": where.headings_deg,
        "speed_mps": where.speeds_mps,
        "edge_id": pa.array(where.edge_ids, mask=where.edge_ids < 0),
    }
    return pa.table(columns, schema=schemas.arrow_schema(schemas.TRAJECTORIES))
