"""Pieces of traces, which become devices: numbered, with the ticks that they have."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from simulator.traces.points import KEYS, Verdict

TICKS_MIN = 2
"""A device with only one tick does not move."""

PIECES = StructType(
    [
        StructField("device_id", StringType(), nullable=False),
        StructField("source", StringType(), nullable=False),
        StructField("vehicle", StringType(), nullable=False),
        StructField("trip", StringType(), nullable=False),
        StructField("piece", IntegerType(), nullable=False),
        StructField("begin_ms", LongType(), nullable=False),
        StructField("end_ms", LongType(), nullable=False),
        StructField("points", LongType(), nullable=False),
        StructField("origin_ms", LongType(), nullable=False),
        StructField("first_tick", LongType(), nullable=False),
        StructField("ticks", LongType(), nullable=False),
    ]
)
"""The source of each device: file, vehicle, trip and piece; its first and last point and the number of
points; the time of its tick 0, its first tick and its number of ticks.
"""

PIECE_KEYS = (*KEYS, "piece")


def pieces_of(points: DataFrame, period_ms: int, origin_ms: int | None) -> DataFrame:
    """Return the pieces that become devices, in the schema `PIECES`: all with `TICKS_MIN` ticks or more.

    They are numbered in the order of their names, so that numbers do not depend on the partitioning. One
    task does it, over a row a piece.

    Parameters
    ----------
    points
        In the schema `POINTS`.
    period_ms
        The time from tick to tick.
    origin_ms
        The time of tick 0; None if every piece starts with it.
    """
    kept = points.where(F.col("verdict") == Verdict.KEPT.value)
    found = kept.groupBy(*PIECE_KEYS).agg(
        F.min("t_ms").alias("begin_ms"), F.max("t_ms").alias("end_ms"), F.count("*").alias("points")
    )
    period, begin, end = F.lit(period_ms), F.col("begin_ms"), F.col("end_ms")
    origin = begin if origin_ms is None else F.lit(origin_ms)
    first = F.ceil((begin - origin) / period).cast("long")
    last = F.floor((end - origin) / period).cast("long")
    ticked = found.select(
        "*", origin.alias("origin_ms"), first.alias("first_tick"), (last - first + 1).alias("ticks")
    ).where(F.col("ticks") >= TICKS_MIN)
    number = F.row_number().over(Window.orderBy(*PIECE_KEYS)) - 1
    named = ticked.withColumn("device_id", F.format_string("device-%06d", number))
    return named.select(*PIECES.names)
