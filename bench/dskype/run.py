"""`bench dskype`: skype.txt section 8.2, Figures 21 to 26 and Table 5.

A run fills the window, then the buffers of all subscriptions, then lets messages come as fast as the job
takes them, a file a batch. Beside it `process`, one engine without Spark, is given the same batches.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bench.datasets import SOURCES, Dataset
from bench.dskype.experiments import EXPERIMENTS, PROCESS, VARIANTS, Setting, Shape
from bench.dskype.feeds import FeedFiles
from bench.dskype.process import measure_process
from bench.dskype.stream_run import StreamRun
from bench.errors import BenchError
from bench.reports import Progress, Row
from bench.skype.workload import SkypeParameters, SkypeWorkload
from bench.variants import chosen
from feeds.spark import spark_session

_MASTER = "local[*,4]"


def measure(
    setting: Setting,
    data: Dataset,
    budget_s: float,
    paced_s: float,
    restarts: bool,  # noqa: FBT001
    spark: SparkSession,
    progress: Progress,
) -> Row:
    """Measure one point; then how it begins again, and how it is with half the load it bears."""
    workload = SkypeWorkload(data, setting.parameters)
    folder = Path(tempfile.mkdtemp(prefix="nearcast-dskype-"))
    try:
        files = FeedFiles(folder / "feeds", workload)
        if setting.variant == PROCESS:
            return measure_process(files, workload, setting.shape, budget_s, progress)
        run = StreamRun(setting.variant, files, workload, setting.shape, spark, progress)
        try:
            fill_s = run.fill()
            begun_again = run.begun_again() if restarts else {}
            figures = run.go(budget_s) | begun_again
            if paced_s:
                figures |= run.go_at_pace(figures["messages_per_s"] / 2.0, paced_s)
        finally:
            run.close()
        figures |= run.expected_replication() | run.balance()
        compared, mismatches = run.audit(setting.parameters.audited)
        return {
            **figures,
            "fill_s": round(fill_s, 1),
            "lists_audited": compared,
            "mismatches": mismatches,
        }
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(
    progress: Progress,
    *,
    experiments: Sequence[str],
    variants: Sequence[str],
    data: Sequence[str],
    partitions: int,
    batch: int,
    budget_s: float,
    paced_s: float = 0.0,
    restarts: bool = False,
    **shape: Any,  # noqa: ANN401
) -> list[Row]:
    """Run experiments on data sets; `shape` are SkypeParameters.

    Raises
    ------
    BenchError
        If an experiment, a variant or a data set is not known, or a file is not there.
    """
    for experiment in experiments:
        if experiment not in EXPERIMENTS:
            raise BenchError(f"experiment is {experiment!r}, must be one of {', '.join(EXPERIMENTS)}")
    wanted = chosen(variants, dict.fromkeys(VARIANTS))
    base = SkypeParameters(**shape)
    rows: list[Row] = []
    with spark_session(_MASTER, {"spark.driver.memory": "1500m"}) as spark:
        for name in data:
            source = SOURCES[name]()
            for experiment in experiments:
                settings = [
                    one
                    for one in EXPERIMENTS[experiment](base, Shape(partitions, batch))
                    if one.variant in wanted
                ]
                for number, setting in enumerate(settings):
                    progress(experiment, number, len(settings))
                    measured = measure(setting, source, budget_s, paced_s, restarts, spark, progress)
                    rows.append(
                        {
                            "experiment": experiment,
                            "variant": setting.variant,
                            "data": source.name,
                            "subscriptions": setting.parameters.subscriptions,
                            "objects": setting.parameters.window,
                            "k_max": setting.parameters.k,
                            "partitions": setting.shape.partitions,
                            **setting.label,
                            **measured,
                        }
                    )
                progress(experiment, len(settings), len(settings))
    return rows
