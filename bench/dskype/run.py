"""Measure the stream job on Spark.

A run fills the window, then the buffers of all subscriptions. Then messages come as fast as the job reads
them, a file a batch. For comparison, `process`, one engine without Spark, receives the same batches.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.benchmark import Benchmark, Progress, Row
from bench.datasets import source
from bench.dskype.experiments import PROCESS, DskypeParameters
from bench.dskype.feeds import FeedFiles
from bench.dskype.process import measure_process
from bench.dskype.stream_run import StreamRun
from bench.skype.workload import SkypeWorkload
from feeds.spark import spark_session
from streaming.distribution import MECHANISMS

_MASTER = "local[*,4]"


class DskypeBenchmark(Benchmark[DskypeParameters]):
    """Measure ways to divide subscriptions, in one session of Spark, and one engine without it."""

    VARIANTS = (PROCESS, *MECHANISMS)

    def __init__(self, points: Sequence[DskypeParameters], progress: Progress) -> None:
        super().__init__(points, progress)
        session = spark_session(_MASTER, {"spark.driver.memory": "1500m"})
        self._spark = self.resources.enter_context(session)

    def measure(self, variant: str, parameters: DskypeParameters) -> list[Row]:
        """Measure one point; optionally also a restart, and the latency at half the maximum rate."""
        workload = SkypeWorkload(source(parameters.data), parameters)
        with tempfile.TemporaryDirectory(prefix="nearcast-dskype-", ignore_cleanup_errors=True) as folder:
            files = FeedFiles(Path(folder) / "feeds", workload)
            if variant == PROCESS:
                figures = measure_process(files, workload, parameters, self.progress)
            else:
                run = StreamRun(variant, files, parameters, self._spark, self.progress)
                figures = run.measured()
        return [
            {
                "subscriptions": parameters.subscriptions,
                "objects": parameters.window,
                "k_max": parameters.k,
                "partitions": parameters.partitions,
                **figures,
            }
        ]
