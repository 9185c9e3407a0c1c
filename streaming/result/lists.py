"""The present results, as a table, from the changes of all batches so far."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812


class ResultError(Exception):
    """There are no results."""


def batches(out: Path) -> list[int]:
    """Return the numbers of batches that are complete, in order. A rebalancing takes one for itself.

    Raises
    ------
    ResultError
        If there is none.
    """
    found = sorted(int(one.stem) for one in (out / "batches").glob("[0-9]*.json"))
    if not found:
        raise ResultError(f"{out} has no complete batch of a job")
    return found


def lists(
    out: Path, spark: SparkSession, batch: int | None = None, only: Sequence[int] | None = None
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
    number = batches(out)[-1] if batch is None else batch
    changes = spark.read.parquet(str(out / "changes")).where(F.col("batch") <= number)
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
