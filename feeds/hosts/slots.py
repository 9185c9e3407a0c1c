"""Run small tasks on all hosts of a cluster: one on every slot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pyspark import InheritableThread
from pyspark.sql import SparkSession

from feeds.causes import cause_of
from feeds.cluster import ClusterError

_GROUP = "nearcast-slots"


def on_all_slots(
    spark: SparkSession,
    function: Callable[[Iterable[Any]], Iterator[Any]],
    seconds: float | None = None,
) -> list[Any]:
    """Run a task on every slot of a cluster, or of this machine; return the items that tasks yield.

    Parameters
    ----------
    spark
        The session.
    function
        Function of a task; its input is empty.
    seconds
        Time limit; None for no limit.

    Raises
    ------
    ClusterError
        If the time limit is exceeded, or a task fails.
    """
    context = spark.sparkContext
    slots = context.defaultParallelism
    found: list[Any] = []
    failed: list[BaseException] = []

    def run() -> None:
        context.setJobGroup(_GROUP, "a task on every slot", interruptOnCancel=True)
        try:
            found.extend(context.parallelize(range(slots), slots).mapPartitions(function).collect())
        except Exception as error:  # noqa: BLE001 - the caller gets any error
            failed.append(error)

    thread = InheritableThread(target=run, name=_GROUP)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        context.cancelJobGroup(_GROUP)
        raise ClusterError(
            f"not all of {slots} slots have responded in {seconds:.0f} s: executors terminate or are "
            "disconnected; see the logs of the cluster's workers"
        )
    if failed:
        raise ClusterError(f"a task on a host has failed: {cause_of(failed[0])}")
    return found
