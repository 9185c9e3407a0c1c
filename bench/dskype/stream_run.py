"""Run the job of `nearcast stream` on one workload: fill it, restart it, drive it, audit it."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import unquote, urlparse

import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress

from bench.benchmark import Progress, Row
from bench.dskype.balance import balance_of
from bench.dskype.experiments import WARM, DskypeParameters
from bench.dskype.feeds import FeedFiles
from bench.dskype.replication import expected_replication
from bench.errors import BenchError
from feeds.storage import Stored
from safe_region.earth.frame import Frame
from streaming.distribution.keywords import Keyword, loose_prefixes
from streaming.distribution.words import Vocabulary
from streaming.job import start
from streaming.parameters import StreamParameters
from streaming.plan import Plan
from streaming.planning import planned, read_plan, sample_of
from streaming.result.audit import audit
from streaming.result.lists import lists
from streaming.result.manifest import read_batch
from streaming.result.sink import Batch
from streaming.tasks.processor import release
from streaming.window_size import WindowSize

_FILLED = 4
"""Files of a batch while windows and buffers are filled."""
_EDGES = ("matched", "received", "pairs", "feedback")
"""Counts of rows that one partition sends to another."""
_SAMPLE = 2_000
"""Subscriptions whose replicas are counted independently."""
_AHEAD = 3
"""Files that are ready to be read, while messages come as fast as the job reads them."""
_PACED_S = 2.0
"""Seconds of messages in a file, while messages come at a rate."""


class StreamRun:
    """Run the job on one workload.

    Parameters
    ----------
    mechanism
        The way to divide subscriptions.
    files
        The feeds.
    parameters
        Size and shape.
    spark
        The session.
    progress
        Function that receives the progress.
    """

    def __init__(
        self,
        mechanism: str,
        files: FeedFiles,
        parameters: DskypeParameters,
        spark: SparkSession,
        progress: Progress,
    ) -> None:
        self._files, self._workload, self._shape = files, files.workload, parameters
        self._spark, self._progress = spark, progress
        self._batches: list[Batch] = []
        self._written = 0
        """Files of the stream that were written."""
        self._end_s = 0.0
        self._stages: list[StreamingQueryProgress] = []
        """Progress reports of Spark on the batches that were read last."""
        self.parameters = StreamParameters(
            messages=files.folder / "messages",
            subscriptions=files.folder / "subscriptions",
            out=files.folder / "out",
            checkpoint=files.folder / "checkpoint",
            area=files.area,
            window=WindowSize(count=parameters.window),
            mechanism=mechanism,
            partitions=parameters.partitions,
            first_level=parameters.first_level,
            idf=files.folder / "idf.json",
            once=True,
        )

    def measured(self) -> Row:
        """Fill the job, process messages, and check the final state; return all figures and the audit."""
        try:
            fill_s = self.fill()
            started_again = self.restarted() if self._shape.restarts else {}
            figures = self.go(self._shape.budget_s) | started_again
            if self._shape.paced_s:
                figures |= self.go_at_pace(figures["messages_per_s"] / 2.0, self._shape.paced_s)
        finally:
            self.close()
        figures |= self.expected_replication() | self.balance()
        compared, mismatches = self.audit(self._shape.audited)
        return {
            **figures,
            "fill_s": round(fill_s, 1),
            "lists_audited": compared,
            "mismatches": mismatches,
        }

    def fill(self) -> float:
        """Fill the window and the buffers; return the seconds that this took."""
        began_s = time.perf_counter()
        self._files.write_window()
        self._files.write_subscriptions()
        planned(self.parameters, self._spark)  # while the folder has subscriptions
        filling = self.parameters.changed(files_per_batch=_FILLED)
        with self._files.without_subscriptions():
            self._read("window filled", filling, _until_all)
        self._read("buffers filled", filling, _until_all)
        return time.perf_counter() - began_s

    def go(self, budget_s: float) -> Row:
        """Process messages as fast as the job reads them; return figures."""
        self._end_s = time.perf_counter() + budget_s
        parameters, before = self.parameters.changed(files_per_batch=1, once=False), self._written
        notes = self._noted("batches", parameters, lambda done: self._write_ahead(before + done))
        return self._figures(notes)

    def go_at_pace(self, rate: float, seconds: float) -> Row:
        """Process messages at a rate; return the time from writing a file to its complete batch."""
        first, stop = self._workload.parameters.window + self._written * self._shape.batch, Event()
        batch = max(1, round(rate * _PACED_S))
        writer = Thread(target=self._files.write_at_pace, args=(first, rate, batch, stop))
        writer.start()
        self._end_s = time.perf_counter() + seconds
        try:
            parameters = self.parameters.changed(once=False)
            notes = self._noted("at half load", parameters, lambda _: time.perf_counter() < self._end_s)
        finally:
            stop.set()
            writer.join()
        took_s = [
            one["at_ms"] / 1000.0 - Path(unquote(urlparse(path).path)).stat().st_mtime
            for one in notes[WARM:]
            for path in one["files"]["messages"]
        ]
        if not took_s:
            raise BenchError(
                f"no batch was complete at {rate:.0f} messages per second: give more messages"
            )
        return {
            "paced_messages_per_s": round(rate),
            "latency_s_p50": round(float(np.median(took_s)), 2),
            "latency_s_p99": round(float(np.quantile(took_s, 0.99)), 2),
        }

    def restarted(self) -> Row:
        """Measure the time of a restart, with engines in memory and without."""
        return {
            "restart_s": self._restart(memory_lost=False),
            "rebuild_s": self._restart(memory_lost=True),
        }

    def _restart(self, *, memory_lost: bool) -> float:
        """Restart the job at its last position; return the seconds to its next complete batch.

        Spark is already running; to start it takes a few seconds more.
        """
        if memory_lost:
            self.close()
        if not self._files.write_batch(self._written, self._shape.batch):
            raise BenchError("messages is too small: two batches are needed for the restart")
        self._written += 1
        began_s = time.perf_counter()
        parameters = self.parameters.changed(once=False)
        self._noted("restarted", parameters, lambda done: done == 0)
        return round(time.perf_counter() - began_s, 1)

    def _write_ahead(self, done: int) -> bool:
        """Write ahead, so that the job always has files to read; return whether the job continues."""
        is_time = time.perf_counter() < self._end_s
        while is_time and self._written < done + _AHEAD:
            if not self._files.write_batch(self._written, self._shape.batch):
                break
            self._written += 1
        return done < self._written

    def _noted(
        self, stage: str, parameters: StreamParameters, goes_on: Callable[[int], bool]
    ) -> list[dict[str, Any]]:
        """Let the job read; return the records of its batches."""
        before = len(self._batches)
        self._read(stage, parameters, goes_on)
        out = Stored(self._spark, self.parameters.out)
        return [read_batch(out, one.number) for one in self._batches[before:]]

    def _read(self, stage: str, parameters: StreamParameters, goes_on: Callable[[int], bool]) -> None:
        """Let the job read; `goes_on` receives the number of complete batches."""
        before = len(self._batches)
        query = start(parameters, self._spark, self._batches.append)
        try:
            while query.isActive and goes_on(len(self._batches) - before):
                time.sleep(0.2)
                self._progress(stage, len(self._batches) - before, 0)
            self._stages = [one for one in query.recentProgress if one.numInputRows]
        finally:
            query.stop()
        error = query.exception()
        if error is not None:
            raise BenchError(f"the job has ended: {error}")

    def _figures(self, notes: list[dict[str, Any]]) -> Row:
        if len(notes) <= WARM + 1:
            raise BenchError(
                f"only {len(notes)} batches were complete: give more time or smaller batches"
            )
        ends_ms = np.array([one["at_ms"] for one in notes], dtype=np.float64)
        took_s = np.diff(ends_ms)[WARM - 1 :] / 1000.0
        measured = notes[WARM:]
        published = sum(one["published"] for one in measured)
        out_bytes = [
            _size(self._files.folder / "out" / "changes" / f"batch={one['batch']:08d}")
            for one in measured
        ]
        counts = Counter[str]()
        for one in measured:
            counts.update({name: one.get(name, 0) for name in _EDGES})
        # As the paper counts them (Figure 21): the messages sent to subscription bolts.
        tuples = counts["matched"] or counts["received"]
        # And on all edges (Table 1): messages to distributors, replicas and windows; then messages
        # from replicas to owners, and from owners to replicas, which the paper does not have.
        everywhere = published + sum(counts.values())
        plan = self._plan()
        return {
            "messages": published,
            "batch": self._shape.batch,
            "messages_per_s": round(published / took_s.sum()),
            "batch_s_p50": round(float(np.median(took_s)), 2),
            "batch_s_p99": round(float(np.quantile(took_s, 0.99)), 2),
            "apply_us_per_message": round(sum(one["apply_us"] for one in measured) / published, 1),
            "tuples_per_message": round(tuples / published, 2),
            "tuples_everywhere_per_message": round(everywhere / published, 2),
            "received_bytes_per_message": round(sum(one["block_bytes"] for one in measured) / published),
            "replication": round(measured[-1]["replicas"] / measured[-1]["subscriptions"], 2),
            "evaluated_per_message": round(sum(one["evaluated"] for one in measured) / published, 2),
            "changes_per_message": round(
                sum(one["entered"] + one["left"] for one in measured) / published, 1
            ),
            "out_bytes_per_message": round(sum(out_bytes) / published),
            **_stage_times(self._stages),
            "checkpoint_mb": round(_size(self._files.folder / "checkpoint") / 1e6, 1),
            "memory_mb": round(_size(self.parameters.memory / plan.run) / 1e6, 1),
        }

    def balance(self) -> Row:
        """Return the balance of the costs of partitions, in the sample by which the job was divided."""
        plan = self._plan()
        sample = sample_of(self.parameters, plan, self._spark)
        prefixes = loose_prefixes(Vocabulary.of(sample), sample).tolist()
        return {
            "cost_max_mean": round(
                balance_of(plan.make_distribution(), sample, prefixes).cost_max_mean, 2
            )
        }

    def expected_replication(self) -> Row:
        """Return the replicas that a subscription needs, counted independently, by keyword mechanisms."""
        mechanism = self._plan().make_distribution()
        if not isinstance(mechanism, Keyword):
            return {}
        count, k = self._workload.parameters.subscriptions, self._workload.parameters.k
        sample = random.Random(1).sample(range(count), min(count, _SAMPLE))
        scores: dict[int, list[float]] = {}
        for row in lists(self.parameters.out, self._spark, only=sample).collect():
            scores.setdefault(row.subscription_id, []).append(row.score)
        worst = {one: max(found) for one, found in scores.items() if len(found) == k}
        maxdist_m = Frame.of(self._files.area).maxdist_m
        needed = expected_replication(mechanism, self._workload, maxdist_m, worst, sample)
        return {"replication_expected": round(needed, 2)}

    def audit(self, sample: int) -> tuple[int, int]:
        """Compare results with the definition; return the numbers of compared and of wrong results."""
        found = audit(self.parameters.checkpoint, self.parameters.out, self._spark, sample)
        return found.lists, len(found.mismatches)

    def close(self) -> None:
        """Release the shared memory of the job."""
        release(self._spark, self._plan().run, self.parameters.memory)

    def _plan(self) -> Plan:
        return read_plan(Stored(self._spark, self.parameters.checkpoint))


def _stage_times(batches: Sequence[StreamingQueryProgress]) -> Row:
    """Return the median times of Spark's stages of a batch, and the size of its state."""
    names = {name for one in batches for name in one.durationMs if name != "triggerExecution"}
    operators = [operator for one in batches for operator in one.stateOperators]
    commits_ms = [one.commitTimeMs for one in operators]
    return {
        "stages_ms": {
            name: round(float(np.median([one.durationMs.get(name, 0) for one in batches])))
            for name in sorted(names)
        },
        "state_commit_ms": round(float(np.median(commits_ms))) if commits_ms else 0,
        "state_mb": round(operators[-1].memoryUsedBytes / 1e6, 1) if operators else 0.0,
    }


def _until_all(_done: int) -> bool:
    """Continue until all files have been read."""
    return True


def _size(folder: Path) -> int:
    """Return the bytes that a folder occupies on its file system: files in memory are sparse."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())
