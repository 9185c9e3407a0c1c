"""A simulation as the two feeds of `feeds.schemas`: files by time, for consumers of streams.

Objects are published, retracted and replaced as in the table of objects; a replacement is another object,
and the one before is retracted at the same time. Top-k subscriptions are stationary: those that move with
their devices stay at the devices' first position. Boolean subscriptions are included if their range is
fixed in place. The reader chooses windows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import PurePosixPath

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from feeds.redis import RedisAddress
from feeds.redis.address import Credentials
from feeds.redis.streams import Streams
from feeds.schemas import FEEDS, KEYS, MESSAGES, PUBLISH, RETRACT, SUBSCRIBE, SUBSCRIPTIONS
from simulator import schemas
from simulator.files import Root, files_at, parquet_files
from simulator.tables import write_rows
from simulator.workload.subscriptions import TOP_K

FEEDS_FOLDER = "feeds"
_STREAM = "stream"
_IDS_PER_DEVICE = 64
"""A device has no more subscriptions."""


def write_feeds(folder: Root, start_ms: int, spark: SparkSession, slice_s: int) -> int:
    """Write the feeds of a simulation to a folder in its folder; an existing folder is replaced.

    Parameters
    ----------
    folder
        The folder of the simulation, with complete tables.
    start_ms
        Epoch milliseconds of its start.
    spark
        The session.
    slice_s
        Simulated seconds of a file; the first also has the rows at the start.

    Returns
    -------
    int
        The number of rows that tasks have written.
    """

    def table(name: str) -> DataFrame:
        return spark.read.schema(schemas.TABLES[name]).parquet(str(folder / name))

    target = folder / FEEDS_FOLDER
    files_at(target).remove()
    started = F.lit(start_ms)
    at = (F.min_by(name, "tick").alias(name) for name in ("lon", "lat"))
    begin = table("trajectories").groupBy("device_id").agg(*at)
    wanted = _subscriptions(table("subscriptions"), begin, started)
    count = _write(wanted.withColumn("slice", F.lit(0)), target, "subscriptions")
    number = F.ceil((F.col("time_ms") - started) / F.lit(1000 * slice_s)).cast("int")
    messages = _messages(table("objects"), started).withColumn("slice", number)
    return count + _write(messages, target, "messages")


def append_feeds(
    folder: Root, spark: SparkSession, target: RedisAddress, report: Callable[[str, int, int], None]
) -> None:
    """Append the feeds of a simulation to feeds in Redis, named after the target: subscriptions first.

    A task has all rows of a stream, and appends them in order of time. A task that is repeated appends
    its rows again: readers of feeds take an object, and a subscription, once.

    Raises
    ------
    PySparkException
        If the server does not respond.
    """
    for number, name in enumerate(("subscriptions", "messages")):
        report("feeds to Redis", number, 2)
        address = replace(target, feed=f"{target.feed}.{name}")
        schema = from_arrow_schema(FEEDS[name])
        rows = spark.read.schema(schema).parquet(str(folder / FEEDS_FOLDER / name))
        stream = F.pmod(F.col(KEYS[name]), F.lit(address.streams))
        parts = rows.withColumn(_STREAM, stream).repartition(address.streams, _STREAM)
        ordered = parts.sortWithinPartitions(_STREAM, *_order(name)).drop(_STREAM)
        ordered.mapInArrow(_appender(address, name), "rows long").agg(F.sum("rows")).collect()
    report("feeds to Redis", 2, 2)


def _appender(
    address: RedisAddress, name: str
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function that appends a task's rows."""
    credentials = Credentials.of_environment()  # the driver's, for tasks

    def append(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        streams = Streams(address, FEEDS[name], KEYS[name], credentials=credentials)
        count = 0
        for batch in batches:
            streams.append(pa.Table.from_batches([batch]).cast(FEEDS[name]))
            count += len(batch)
        streams.close()
        yield pa.record_batch([pa.array([count], pa.int64())], names=["rows"])

    return append


def _messages(objects: DataFrame, start_ms: Column) -> DataFrame:
    """Return the publications and retractions."""
    number = F.regexp_extract("object_key", r"(\d+)$", 1).cast("long")
    ranked = objects.select(
        "*",
        F.row_number().over(Window.partitionBy("object_key").orderBy("publish_ms")).alias("version"),
        F.lead("publish_ms")
        .over(Window.partitionBy("object_key").orderBy("publish_ms"))
        .alias("next_ms"),
    ).withColumn("object_id", number * 2 + F.col("version") - 1)
    published = ranked.select(
        F.lit(PUBLISH).alias("action"),
        "object_id",
        (start_ms + F.col("publish_ms")).alias("time_ms"),
        "lon",
        "lat",
        "keywords",
        "ttl_ms",
        F.lit(None).cast("binary").alias("payload"),
    )
    gone_ms = F.coalesce("retract_ms", "next_ms")
    taken_back = ranked.where(gone_ms.isNotNull()).select(
        F.lit(RETRACT).alias("action"), "object_id", (start_ms + gone_ms).alias("time_ms")
    )
    return published.unionByName(taken_back, allowMissingColumns=True).select(*MESSAGES.names)


def _subscriptions(wanted: DataFrame, begin: DataFrame, start_ms: Column) -> DataFrame:
    """Return top-k subscriptions with their places, and those with fixed ranges."""
    is_fixed = F.col("center").isNotNull() | F.col("bounds").isNotNull()
    at = F.coalesce("place", "center")
    lon, lat = (F.coalesce(F.get(at, F.lit(i)), one) for i, one in enumerate(("lon", "lat")))
    device = F.regexp_extract("device_id", r"(\d+)$", 1).cast("long")
    return (
        wanted.where((F.col("kind") == TOP_K) | is_fixed)
        .join(begin, on="device_id", how="left")
        .where(lon.isNotNull() | F.col("bounds").isNotNull())
        .select(
            F.lit(SUBSCRIBE).alias("action"),
            (device * _IDS_PER_DEVICE + F.col("subscription_id")).alias("subscription_id"),
            start_ms.alias("time_ms"),
            "kind",
            "keywords",
            "k",
            "alpha",
            "similarity",
            lon.alias("lon"),
            lat.alias("lat"),
            "expression",
            "radius_m",
            "bounds",
        )
        .select(*SUBSCRIPTIONS.names)
    )


def _order(name: str) -> tuple[str, ...]:
    """Return the columns by which rows of a feed are sorted: no two rows are equal in all of them."""
    return "time_ms", KEYS[name], "action"


def _write(frame: DataFrame, target: Root, name: str) -> int:
    """Write a file for each slice, named by its number; return the number of rows."""
    folder, parts = files_at(target / name), target / name / "_parts"
    ordered = frame.repartition("slice").sortWithinPartitions("slice", *_order(name))
    count = write_rows(ordered, parts, "slice")
    for part in parquet_files(parts):
        number = int(PurePosixPath(str(part)).parent.name.removeprefix("slice="))
        part.move(str(folder / f"{number:06d}.parquet"))
    files_at(parts).remove()
    return count
