"""The result: a folder a batch, there as a whole or not at all, and the same if a batch is repeated.

changes/batch=00000012/*.parquet   partition, object_id, entered, scores, left (`arrays.changes`)
batches/00000012.json              counts, files that were read, when it was complete; written last
refused/00000012.jsonl             rows of the feeds that are wrong, and why, if there are any
"""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from feeds.schemas import FEEDS
from streaming.arrays.changes import ROWS, from_bytes
from streaming.feedback.exchange import Exchange
from streaming.parameters import StreamParameters
from streaming.result.updates import tell_batch, tell_changes
from streaming.tasks.processor import CHANGES, COUNTS
from streaming.tasks.routing import FEEDBACK, READ, REFUSED

CHANGES_DDL = "partition int, object_id long, entered array<long>, scores array<double>, left array<long>"


_OWN = frozenset(
    {"begun", "ended", "entered", "left", "received", "apply_us", "evaluated"}
    | {
        "subscriptions",
        "replicas",
        "matched",
        "feedback",
        "feedback_blocks",
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
        What became of its rows (`streaming.partition.partition.Counts`); how many results objects have
        entered and left; how many messages partitions have received together, and how long they worked.
    refused
        Rows that were wrong.
    """

    number: int
    counts: dict[str, int]
    refused: int


def batch_name(number: int) -> str:
    """Return the name of a batch in folders and files."""
    return f"{number:08d}"


def read_batch(out: Path, number: int) -> dict[str, Any]:
    """Return what is noted of a batch that is complete."""
    found: dict[str, Any] = json.loads((out / "batches" / f"{batch_name(number)}.json").read_text())
    return found


def feedback_files(out: Path) -> dict[int, list[str]]:
    """Return the files of feedback that the manifests of the last batches name."""
    numbers = sorted(int(path.stem) for path in (out / "batches").glob("[0-9]*.json"))
    return {number: read_batch(out, number)["feedback_files"] for number in numbers[-2:]}


def sink(
    parameters: StreamParameters, on_batch: Callable[[Batch], None], exchange: Exchange | None = None
) -> Callable[[DataFrame, int], None]:
    """Return what Spark calls with the answers to a batch."""
    out = parameters.out

    def write(answers: DataFrame, number: int) -> None:
        done = out / "batches" / f"{batch_name(number)}.json"
        if done.exists():  # Spark had no time to note it, and wants its state to be written
            answers.write.format("noop").mode("overwrite").save()
            return
        kept = answers.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            small = kept.where(~F.col("kind").isin(CHANGES, FEEDBACK)).collect()
            changes = kept.where(F.col("kind") == CHANGES)
            _write_changes(changes, out / "changes", number)
            if parameters.updates is not None:
                tell_changes(changes, parameters.updates, number)
            counts = _total(json.loads(bytes(row.block)) for row in small if row.kind == COUNTS)
            fed_back: list[str] = []
            if exchange is not None and counts.get("feedback_blocks", 0):
                fed_back = exchange.write(kept.where(F.col("kind") == FEEDBACK), number)
        finally:
            kept.unpersist()
        lines = b"\n".join(bytes(row.block) for row in small if row.kind == REFUSED)
        if lines:
            _write(out / "refused" / f"{batch_name(number)}.jsonl", lines + b"\n")
        batch = Batch(number, counts, lines.count(b"\n") + bool(lines))
        about = {
            "batch": number,
            "at_ms": time.time_ns() // 1_000_000,
            "files": _files(json.loads(bytes(row.block)) for row in small if row.kind == READ),
            "refused": batch.refused,
            "feedback_files": fed_back,
            **counts,
        }
        if parameters.updates is not None:
            tell_batch(about, parameters.updates, number)
        _write(done, json.dumps(about).encode() + b"\n")
        if exchange is not None:
            exchange.complete(number, fed_back)
        on_batch(batch)

    return write


def _files(read: Iterable[dict[str, Any]]) -> dict[str, list[str]]:
    """Return what a batch has read of each feed, each once."""
    found: dict[str, set[str]] = {name: set() for name in FEEDS}
    for one in read:
        found[one["feed"]].update(one["sources"])
    return {name: sorted(sources) for name, sources in found.items()}


def _total(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    """Add up what partitions count: what all of them are sent, once."""
    alone = Counter[str]()
    common: dict[str, int] = {}
    for one in counts:
        for name, count in one.items():
            if name in _OWN:
                alone[name] += count
            else:
                common[name] = max(common.get(name, 0), count)
    return {**common, **alone}


def _write_changes(answers: DataFrame, folder: Path, number: int) -> None:
    """Write the changes of a batch beside where they belong, then move them there."""
    fresh = folder / f"_batch={batch_name(number)}"
    there = folder / f"batch={batch_name(number)}"
    answers.mapInArrow(_unpacked, CHANGES_DDL).write.mode("overwrite").parquet(str(fresh))
    shutil.rmtree(there, ignore_errors=True)
    fresh.rename(there)


def _unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for partition, block in zip(batch["partition"], batch["block"], strict=True):
            rows = from_bytes(block.as_py())
            partitions = pa.array([partition.as_py()] * len(rows), pa.int32())
            columns: list[Any] = [partitions, *rows.columns]
            yield pa.record_batch(columns, names=["partition", *ROWS.names])


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"_{path.name}")
    fresh.write_bytes(data)
    fresh.rename(path)
