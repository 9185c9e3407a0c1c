"""The progress of a Spark job, polled while it runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark import StatusTracker
from pyspark.sql import SparkSession

_EVERY_S = 1.0


@contextmanager
def followed(
    spark: SparkSession, report: Callable[[str, int, int], None], stage: str, rows: int
) -> Iterator[None]:
    """Report the number of finished rows while Spark works, by the fraction of finished tasks.

    Parameters
    ----------
    spark
        The session, in which nothing else runs.
    report
        Called as report(stage, done, total), also from another thread; at the end with all rows.
    stage, rows
        The stage, and about the number of rows that it makes.
    """
    tracker = spark.sparkContext.statusTracker()
    is_over = threading.Event()

    def follow() -> None:
        while not is_over.wait(_EVERY_S):
            report(stage, int(rows * share_done(tracker)), rows)

    report(stage, 0, rows)
    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
    report(stage, rows, rows)


def share_done(tracker: StatusTracker) -> float:
    """Return the fraction of finished tasks of the running stages."""
    stages = [tracker.getStageInfo(one) for one in tracker.getActiveStageIds()]
    counts = [(one.numCompletedTasks, one.numTasks) for one in stages if one is not None]
    total = sum(tasks for _, tasks in counts)
    return sum(done for done, _ in counts) / total if total else 0.0
