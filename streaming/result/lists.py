"""The present results as a table, computed from the last snapshot and the changes of later batches."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from feeds.storage import Stored, Where
from streaming.result.manifest import BATCHES, CHANGES, ResultError, batches
from streaming.result.snapshots import Snapshots

_WRITTEN_DDL = "batch int, driver string"
_READ_DDL = "object_id long, entered array<long>, scores array<double>, left array<long>, " + _WRITTEN_DDL


def lists(
    out: Where, spark: SparkSession, batch: int | None = None, only: Sequence[int] | None = None
) -> DataFrame:
    """Return subscription_id, object_id and score of every object in a result.

    O(results, and changes since the last snapshot).

    Parameters
    ----------
    out
        The folder of the results.
    spark
        The session.
    batch
        Return the results after this batch; None for the last one.
    only
        Return results of these subscriptions; None for all.

    Raises
    ------
    ResultError
        If no batch is complete, or the changes up to this batch were removed.
    """
    folder = Stored(spark, out)
    number = batches(folder)[-1] if batch is None else batch
    snapshots = Snapshots(folder, spark)
    base = snapshots.last(number)
    if number < (removed := snapshots.removed()):
        raise ResultError(
            f"results after batch {number} are no longer available: changes up to batch {removed} were "
            "removed"
        )
    is_later = (F.col("batch") > base) & (F.col("batch") <= number)
    complete = spark.read.schema(_WRITTEN_DDL).json(f"{folder}/{BATCHES}").where(is_later)
    written = spark.createDataFrame([], _READ_DDL)
    if (folder / CHANGES).exists():
        written = spark.read.schema(_READ_DDL).parquet(f"{folder}/{CHANGES}")
    changes = written.join(F.broadcast(complete), ["batch", "driver"])
    entered = changes.select(
        "batch", "object_id", F.explode(F.arrays_zip("entered", "scores")).alias("change")
    ).select(
        "batch",
        "object_id",
        F.col("change.entered").alias("subscription_id"),
        F.col("change.scores").alias("score"),
    )
    left = changes.select(
        "batch",
        "object_id",
        F.explode("left").alias("subscription_id"),
        F.lit(None).cast("double").alias("score"),
    )
    before = snapshots.read(base).withColumn("batch", F.lit(base))
    rows = before.unionByName(entered).unionByName(left)
    if only is not None:
        rows = rows.where(F.col("subscription_id").isin(list(only)))
    # A subscription that was replaced may lose an object on one partition and have it on another.
    order = F.struct("batch", F.col("score").isNotNull().alias("is_entered"))
    last = rows.groupBy("subscription_id", "object_id").agg(F.max_by("score", order).alias("score"))
    return last.where(F.col("score").isNotNull()).select("subscription_id", "object_id", "score")


def compact(out: Where, spark: SparkSession, *, removes: bool) -> tuple[int, int, int]:
    """Write the present results as a snapshot, which `lists` then starts from.

    Parameters
    ----------
    out
        The folder of the results; the job may be running.
    spark
        The session.
    removes
        Whether earlier changes and snapshots are removed: consumers of changes must have read past the
        batch.

    Returns
    -------
    The batch, the number of rows, and the number of batches whose changes were removed.

    Raises
    ------
    ResultError
        If no batch is complete.
    """
    folder = Stored(spark, out, is_shared=True)
    number = batches(folder)[-1]
    snapshots = Snapshots(folder, spark)
    count = snapshots.write(lists(out, spark, number), number)
    return number, count, snapshots.remove_before(number) if removes else 0
