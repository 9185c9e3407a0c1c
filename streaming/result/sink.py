"""The sink: writes each batch atomically, and identically if the batch is repeated.

changes/batch=00000012/driver=3-1f2e3d4c/*.parquet   partition, object_id, entered, scores, left
refused/batch=00000012/driver=3-1f2e3d4c/*.txt       invalid rows of the feeds, and the reasons, if any
batches/00000012.json                                the manifest, written last (`manifest`)

A driver writes to folders with its own name; only the folders that a manifest names count. Tasks write
the rows, by Spark's writers; the driver receives counts only.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from feeds.redis import RedisAddress
from feeds.schemas import FEEDS
from feeds.storage import StorageError, Stored
from streaming.arrays.changes import ROWS, from_bytes
from streaming.claim import Claim
from streaming.feedback.exchange import Exchange
from streaming.result import manifest
from streaming.result.manifest import folder_of, manifest_of, read_batch
from streaming.result.updates import append_batch, append_changes
from streaming.tasks.answers import CHANGES, COUNTS
from streaming.tasks.routing import FEEDBACK, READ, REFUSED

CHANGES_DDL = "partition int, object_id long, entered array<long>, scores array<double>, left array<long>"

_OWN = frozenset(
    {
        "apply_us",
        "started",
        "block_bytes",
        "ended",
        "entered",
        "evaluated",
        "feedback",
        "feedback_blocks",
        "index_bytes",
        "left",
        "pairs",
        "match_us",
        "matched",
        "rebuilt",
        "received",
        "refilled",
        "refused",
        "replicas",
        "subscriptions",
        "window_bytes",
    }
)
"""Counts that are separate for each partition; the total is their sum."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch that is complete.

    Parameters
    ----------
    number
        From 0.
    counts
        The outcome of its rows (`streaming.partition.applied.Counts`); the numbers of entries into
        results and of departures; the number of messages that partitions have received together, and the
        time that they worked.
    loads_us
        The time that each partition worked, of those that had any work. If subscriptions have replicas,
        the time of the replicas: a rebalancing does not divide owners.
    seconds
        From the start of the batch in Spark to its manifest.
    """

    number: int
    counts: dict[str, int]
    loads_us: list[int]
    seconds: float = 0.0

    @property
    def refused(self) -> int:
        """The number of invalid rows."""
        return self.counts.get("refused", 0)


class Sink(NamedTuple):
    """Writes the batches of a driver.

    Parameters
    ----------
    out
        Folder of the results.
    claim
        The claim of the driver.
    on_batch
        Called with each batch that is complete.
    exchange
        Takes feedback for replicas, if there are any.
    updates
        Redis address to which changes are also sent.
    """

    out: Stored
    claim: Claim
    on_batch: Callable[[Batch], None]
    exchange: Exchange | None = None
    updates: RedisAddress | None = None

    def __call__(self, answers: DataFrame, number: int) -> None:
        """Write a batch; Spark calls this with the responses to the batch.

        Raises
        ------
        TakenOverError
            If another driver has taken the job over.
        """
        began_s = time.monotonic()
        self.claim.require()
        if manifest_of(self.out, number).exists():
            # Spark did not record the batch in time, and must write its state again.
            answers.write.format("noop").mode("overwrite").save()
            self._exchanged(number, read_batch(self.out, number))
            return
        kept = answers.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            batch, about = self._written(kept, number)
        finally:
            kept.unpersist()
        if self.updates is not None:
            append_batch(about, self.updates, number)
        self.claim.require()
        self._exchanged(number, self._completed(number, about))
        self.on_batch(replace(batch, seconds=time.monotonic() - began_s))

    def _completed(self, number: int, about: dict[str, Any]) -> dict[str, Any]:
        """Write the manifest; return it, or that of an earlier driver, whose output is the same."""
        complete = manifest_of(self.out, number)
        try:
            complete.create(json.dumps(about).encode() + b"\n")
        except StorageError:
            if not complete.exists():
                raise
            return read_batch(self.out, number)
        return about

    def _exchanged(self, number: int, about: dict[str, Any]) -> None:
        """Let replicas have the feedback of a batch that is complete."""
        if self.exchange is not None:
            self.exchange.complete(number, about["feedback_files"])

    def _written(self, answers: DataFrame, number: int) -> tuple[Batch, dict[str, Any]]:
        """Write a batch except its manifest; return the batch, and the contents of the manifest."""
        described = partial(_describe, answers, number)
        described("applies its rows to partitions")
        small = answers.where(F.col("kind").isin(COUNTS, READ)).collect()
        found = [(row.kind, json.loads(bytes(row.block))) for row in small]
        counts = _total(about for kind, about in found if kind == COUNTS)
        loads_us = Counter[int]()
        load = "apply_us" if self.exchange is None else "match_us"
        for row, (kind, about) in zip(small, found, strict=True):
            if kind == COUNTS:
                loads_us[row.partition] += about.get(load, 0)
        changes = answers.where(F.col("kind") == CHANGES)
        own = folder_of(number, self.claim.name)
        if counts.get("entered", 0) or counts.get("left", 0):
            described(f"writes changes: {_figures(counts)}")
            unpacked = changes.mapInArrow(_unpacked, CHANGES_DDL)
            unpacked.write.mode("overwrite").parquet(f"{self.out}/{manifest.CHANGES}/{own}")
        if counts.get("refused", 0):
            described(f"writes {counts['refused']:,} refused rows")
            refused = answers.where(F.col("kind") == REFUSED)
            lines = refused.select(F.explode(F.split(F.decode("block", "UTF-8"), "\n")).alias("value"))
            lines.coalesce(1).write.mode("overwrite").text(f"{self.out}/{manifest.REFUSED}/{own}")
        feedback_files: list[str] = []
        if self.exchange is not None and counts.get("feedback_blocks", 0):
            described(f"writes feedback: {counts.get('feedback', 0):,} placements")
            rows = answers.where(F.col("kind") == FEEDBACK)
            feedback_files = self.exchange.write(rows, own)
        if self.updates is not None:
            described("sends changes to Redis")
            append_changes(changes, self.updates, number)
        loads = [load for _, load in sorted(loads_us.items())]
        about = {
            "batch": number,
            "driver": self.claim.name,
            "at_ms": time.time_ns() // 1_000_000,
            "files": _files(read for kind, read in found if kind == READ),
            "feedback_files": feedback_files,
            "loads_us": loads,
            **counts,
        }
        return Batch(number, counts, loads), about


def _describe(answers: DataFrame, number: int, text: str) -> None:
    """Set the description of Spark's next jobs in its web pages."""
    answers.sparkSession.sparkContext.setJobDescription(f"batch {number} {text}")


def _figures(counts: Mapping[str, int]) -> str:
    """Return the main counts of a batch as text."""
    names = "published", "entered", "left", "evaluated", "refilled", "rebuilt"
    return ", ".join(f"{counts.get(name, 0):,} {name}" for name in names)


def _files(read: Iterable[dict[str, Any]]) -> dict[str, list[str]]:
    """Return the sources that a batch has read of each feed, each once."""
    found: dict[str, set[str]] = {name: set() for name in FEEDS}
    for about in read:
        found[about["feed"]].update(about["sources"])
    return {name: sorted(sources) for name, sources in found.items()}


def _total(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    """Add up the counts of partitions; counts that are the same on all partitions are taken once."""
    sums = Counter[str]()
    common: dict[str, int] = {}
    for own in counts:
        for name, count in own.items():
            if name in _OWN:
                sums[name] += count
            else:
                common[name] = max(common.get(name, 0), count)
    return {**common, **sums}


def _unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for partition, block in zip(batch["partition"], batch["block"], strict=True):
            rows = from_bytes(block.as_py())
            partitions = pa.array([partition.as_py()] * len(rows), pa.int32())
            columns: list[Any] = [partitions, *rows.columns]
            yield pa.record_batch(columns, names=["partition", *ROWS.names])
