"""Changes in Redis: a stream for each partition of the job, and one of complete batches.

The job sets the ids of entries, `batch + 1` and a number, so a repeated batch finds its entries already
there. An entry has rows as `arrays.changes.ROWS` has them, in Arrow's format. A key beside the streams
has the id of the job.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from feeds.redis import RedisAddress
from feeds.redis.address import Credentials
from feeds.redis.streams import Streams, connected
from streaming.arrays.changes import ROWS, from_bytes

_OBJECTS_MAX = 5_000
"""Rows of an entry: about a megabyte, if an object changes a usual number of results."""
_WRITTEN_DDL = "entries int"
_BATCH = pa.schema([("batch", pa.int64()), ("about", pa.string())])


def owner_of(where: RedisAddress, job: str, *, is_new: bool) -> str | None:
    """Return the id of the job whose changes a feed has; bind the feed to `job` if it has no id.

    A feed with batches and without an id is not bound to a new job, and None is returned.
    """
    redis, key = connected(where.server), f"{where.feed}:job"
    try:
        if is_new and redis.exists(where.feed) and not redis.exists(key):
            return None
        redis.set(key, job, nx=True)
        return cast("bytes", redis.get(key)).decode()
    finally:
        redis.close()


def append_changes(changes: DataFrame, where: RedisAddress, number: int) -> None:
    """Append the changes of a batch, which are rows of the operator's responses."""
    # A task that is repeated finds its entries already there.
    changes.mapInArrow(_appender(where, number), _WRITTEN_DDL).agg(F.sum("entries")).collect()


def append_batch(about: dict[str, Any], where: RedisAddress, number: int) -> None:
    """Append an entry that marks a batch as complete."""
    rows = pa.RecordBatch.from_pylist([{"batch": number, "about": json.dumps(about)}], _BATCH)
    streams = Streams(where, _BATCH, "batch")
    streams.put(where.feed, f"{number + 1}-0", rows)
    streams.close()


def _appender(
    where: RedisAddress, number: int
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    credentials = Credentials.of_environment()  # the driver's, for tasks

    def append(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        streams = Streams(where, ROWS, "object_id", credentials=credentials)
        written = Counter[int]()
        for batch in batches:
            for partition, block in zip(batch["partition"].to_pylist(), batch["block"], strict=True):
                rows = from_bytes(block.as_py())
                for start in range(0, len(rows), _OBJECTS_MAX):
                    entry_id = f"{number + 1}-{written[partition]}"
                    streams.put(f"{where.feed}:{partition}", entry_id, rows.slice(start, _OBJECTS_MAX))
                    written[partition] += 1
        streams.close()
        yield pa.record_batch([pa.array([written.total()], pa.int32())], names=["entries"])

    return append
