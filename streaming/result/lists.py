"""The present results, as a table, from the changes of all batches so far."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from feeds.storage import Stored, Where
from streaming.result.manifest import BATCHES, CHANGES, batches

_WRITTEN_DDL = "batch int, driver string"
_READ_DDL = "object_id long, entered array<long>, scores array<double>, left array<long>, " + _WRITTEN_DDL


def lists(
    out: Where, spark: SparkSession, batch: int | None = None, only: Sequence[int] | None = None
) -> DataFrame:
    """Return subscription_id, object_id and score of everything in a result. O(changes).

    Parameters
    ----------
    out
        Where the job writes.
    spark
        The session.
    batch
        As it was behind this batch; None for the last one.
    only
        Of these subscriptions; None for all.

    Raises
    ------
    ResultError
        If no batch is complete.
    """
    folder = Stored(spark, out)
    number = batches(folder)[-1] if batch is None else batch
    complete = spark.read.schema(_WRITTEN_DDL).json(f"{folder}/{BATCHES}").where(F.col("batch") <= number)
    written = spark.createDataFrame([], _READ_DDL)
    if (folder / CHANGES).exists():
        written = spark.read.schema(_READ_DDL).parquet(f"{folder}/{CHANGES}")
    changes = written.join(F.broadcast(complete), ["batch", "driver"])
    entered = changes.select(
        "batch", "object_id", F.explode(F.arrays_zip("entered", "scores")).alias("one")
    ).select(
        "batch",
        "object_id",
        F.col("one.entered").alias("subscription_id"),
        F.col("one.scores").alias("score"),
    )
    left = changes.select(
        "batch",
        "object_id",
        F.explode("left").alias("subscription_id"),
        F.lit(None).cast("double").alias("score"),
    )
    told = entered.unionByName(left)
    if only is not None:
        told = told.where(F.col("subscription_id").isin(list(only)))
    # Whose subscription was replaced may leave on one partition what it has on another.
    order = F.struct("batch", F.col("score").isNotNull().alias("is_entered"))
    last = told.groupBy("subscription_id", "object_id").agg(F.max_by("score", order).alias("score"))
    return last.where(F.col("score").isNotNull()).select("subscription_id", "object_id", "score")
