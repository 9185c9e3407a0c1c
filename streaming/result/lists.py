"""The present results as a table, computed from the last snapshot and the changes of later batches."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from feeds.storage import Stored, Where
from streaming.result.manifest import CHANGES, ResultError, batches, folder_of, read_batch
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
        If the batch does not exist, or the changes up to it were removed, possibly meanwhile.
    """
    folder = Stored(spark, out)
    found = batches(folder)
    number = found[-1] if batch is None else batch
    if not 0 <= number <= found[-1]:
        raise ResultError(f"batch is {number}, must be 0 to {found[-1]}")
    snapshots = Snapshots(folder, spark)
    base = snapshots.last(number)
    # Removing is recorded first: what is removed after this check is an error when it is read.
    if base < (removed := snapshots.removed()):
        raise ResultError(
            f"results after batch {number} are no longer available: changes up to batch {removed} were "
            "removed"
        )
    changes = _changes(folder, [one for one in found if base < one <= number], spark)
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


def _changes(out: Stored, numbers: Sequence[int], spark: SparkSession) -> DataFrame:
    """Return the changes of some batches. A round trip to Spark's JVM for each of them."""
    abouts = [read_batch(out, number) for number in numbers]
    changed = [one for one in abouts if one.get("entered", 0) or one.get("left", 0)]
    if not changed:
        return spark.createDataFrame([], _READ_DDL)
    own = [f"{out}/{CHANGES}/{folder_of(one['batch'], one['driver'])}" for one in changed]
    return spark.read.schema(_READ_DDL).option("basePath", f"{out}/{CHANGES}").parquet(*own)


def compact(out: Where, spark: SparkSession, *, removes: bool) -> tuple[int, int, int]:
    """Write the present results as a snapshot, which `lists` then starts from.

    Parameters
    ----------
    out
        The folder of the results; the job may be running.
    spark
        The session.
    removes
        Whether earlier changes, snapshots, refused rows and manifests are removed: consumers of these
        must have read past the batch.

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
