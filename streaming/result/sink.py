"""The result: a batch is there as a whole or not at all, and the same if it is repeated.

changes/batch=00000012/driver=3-1f2e3d4c/*.parquet   partition, object_id, entered, scores, left
refused/batch=00000012/driver=3-1f2e3d4c/*.txt       rows of the feeds that are wrong, and why, if any
batches/00000012.json                                the manifest, written last (`manifest`)

A driver writes to folders of its own; those that a manifest names count. Tasks write, by Spark's
writers; what comes to the driver are counts.
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
from feeds.storage import Stored
from streaming.arrays.changes import ROWS, from_bytes
from streaming.claim import Claim
from streaming.feedback.exchange import Exchange
from streaming.result import manifest
from streaming.result.manifest import folder_of, manifest_of
from streaming.result.updates import append_batch, append_changes
from streaming.tasks.processor import CHANGES, COUNTS
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
        "matched",
        "rebuilt",
        "received",
        "refilled",
        "refused",
        "replicas",
        "subscriptions",
    }
)
"""What each partition counts for itself: the sum is of interest."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch that is complete.

    Parameters
    ----------
    number
        From 0.
    counts
        What became of its rows (`streaming.partition.applied.Counts`); how many results objects have
        entered and left; how many messages partitions have received together, and how long they worked.
    loads_us
        How long each partition has worked, of those that had anything to do.
    seconds
        From when Spark gave the batch out to its manifest.
    """

    number: int
    counts: dict[str, int]
    loads_us: list[int]
    seconds: float = 0.0

    @property
    def refused(self) -> int:
        """How many rows were wrong."""
        return self.counts.get("refused", 0)


class Sink(NamedTuple):
    """Where a driver writes its batches.

    Parameters
    ----------
    out
        Folder of the results.
    claim
        The driver's.
    on_batch
        Is called with each batch that is complete.
    exchange
        Where feedback for replicas goes, if there are any.
    updates
        Where changes are sent besides.
    """

    out: Stored
    claim: Claim
    on_batch: Callable[[Batch], None]
    exchange: Exchange | None = None
    updates: RedisAddress | None = None

    def __call__(self, answers: DataFrame, number: int) -> None:
        """Write a batch; what Spark calls with the answers to it.

        Raises
        ------
        TakenOverError
            If another driver has the job.
        """
        began_s = time.monotonic()
        self.claim.require()
        complete = manifest_of(self.out, number)
        if complete.exists():  # Spark had no time to note it, and wants its state to be written
            answers.write.format("noop").mode("overwrite").save()
            return
        kept = answers.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            batch, about = self._written(kept, number)
        finally:
            kept.unpersist()
        if self.updates is not None:
            append_batch(about, self.updates, number)
        self.claim.require()
        complete.create(json.dumps(about).encode() + b"\n")
        if self.exchange is not None:
            self.exchange.complete(number, about["feedback_files"])
        self.on_batch(replace(batch, seconds=time.monotonic() - began_s))

    def _written(self, answers: DataFrame, number: int) -> tuple[Batch, dict[str, Any]]:
        """Write all of a batch but its manifest; return the batch, and what that is to say."""
        described = partial(_describe, answers, number)
        described("applies its rows to partitions")
        small = answers.where(F.col("kind").isin(COUNTS, READ)).collect()
        found = [(row.kind, json.loads(bytes(row.block))) for row in small]
        counts = _total(about for kind, about in found if kind == COUNTS)
        loads_us = Counter[int]()
        for row, (kind, about) in zip(small, found, strict=True):
            if kind == COUNTS:
                loads_us[row.partition] += about.get("apply_us", 0)
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
    """Name Spark's next jobs on its pages."""
    answers.sparkSession.sparkContext.setJobDescription(f"batch {number} {text}")


def _figures(counts: Mapping[str, int]) -> str:
    """Return what is of most interest of a batch."""
    names = "published", "entered", "left", "evaluated", "refilled", "rebuilt"
    return ", ".join(f"{counts.get(name, 0):,} {name}" for name in names)


def _files(read: Iterable[dict[str, Any]]) -> dict[str, list[str]]:
    """Return what a batch has read of each feed, each once."""
    found: dict[str, set[str]] = {name: set() for name in FEEDS}
    for about in read:
        found[about["feed"]].update(about["sources"])
    return {name: sorted(sources) for name, sources in found.items()}


def _total(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    """Add up what partitions count: what all of them are sent, once."""
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
