"""Run one engine without Spark on the same batches, for comparison."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from bench.benchmark import Progress, Row
from bench.dskype.experiments import WARM, DskypeParameters
from bench.dskype.feeds import FeedFiles
from bench.skype.workload import SkypeWorkload
from safe_region.scoring.idf import IdfTable
from streaming.arrays.reading import read_messages, read_subscriptions
from streaming.partition.alone import Alone
from streaming.plan import Plan
from streaming.window_size import WindowSize


def measure_process(
    files: FeedFiles, workload: SkypeWorkload, parameters: DskypeParameters, progress: Progress
) -> Row:
    """Measure one engine, without Spark, on the same batches."""
    window = WindowSize(count=workload.parameters.window)
    options = Plan("", files.area, window, "hashing", 1, None, (0,), "sq-plus-tree")
    alone = Alone(options.engine_options(), window)
    weigh, frame = IdfTable.read(files.folder / "idf.json").weight, options.frame
    files.write_window()
    files.write_subscriptions()
    began_s = time.perf_counter()
    for path in sorted((files.folder / "messages").glob("a-*")):
        alone.apply(None, read_messages(_batch(path), frame, weigh)[0])
    paths = sorted((files.folder / "subscriptions").glob("*.parquet"))
    for number, path in enumerate(paths):
        alone.apply(read_subscriptions(_batch(path), frame, weigh)[0], None)
        progress("buffers filled", number + 1, len(paths))
    fill_s = time.perf_counter() - began_s
    published, changes, spent_s, number = 0, 0, 0.0, -1
    while files.write_batch(number := number + 1, parameters.batch):
        path = files.folder / "messages" / f"b-{number:06d}.parquet"
        began_s = time.perf_counter()
        applied = alone.apply(None, read_messages(_batch(path), frame, weigh)[0])
        if number >= WARM:
            spent_s += time.perf_counter() - began_s
            published += applied.counts.published
            changes += len(applied.changes)
        if spent_s > parameters.budget_s:
            break
    return {
        "messages": published,
        "batch": parameters.batch,
        "messages_per_s": round(published / spent_s),
        "batch_s_p50": round(spent_s / published * parameters.batch, 2),
        "changes_per_message": round(changes / published, 1),
        "memory_mb": round(alone.partition.engine.memory_bytes() / 1e6, 1),
        "fill_s": round(fill_s, 1),
        "lists_audited": 0,
        "mismatches": 0,
    }


def _batch(path: Path) -> Any:  # noqa: ANN401 - a RecordBatch
    return pq.read_table(path).combine_chunks().to_batches()[0]
