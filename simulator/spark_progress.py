"""How far a Spark job is, asked while it runs."""

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
    """Report how many rows are done while Spark works, as the share of its tasks that are.

    Parameters
    ----------
    spark
        The session, in which nothing else runs.
    report
        Called as report(stage, done, total), also from another thread; at the end with all rows.
    stage, rows
        What is done, and about how many rows it makes.
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
    """Return which share of the tasks of the stages that run is done."""
    stages = [tracker.getStageInfo(one) for one in tracker.getActiveStageIds()]
    counts = [(one.numCompletedTasks, one.numTasks) for one in stages if one is not None]
    total = sum(tasks for _, tasks in counts)
    return sum(done for done, _ in counts) / total if total else 0.0
