"""A feed in Redis as a streaming source of Spark, with one task for each stream and bounded batches.

An offset has the id of the last entry of each stream that was read. Spark stores offsets, and after a
fault the last batch reads its entries again. When streams are trimmed, these entries and the one before
them must remain (`batches/*.json` has the ranges that each batch has read); otherwise the job fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from feeds.redis.address import BEGIN, Credentials, RedisAddress, Span
from feeds.redis.streams import Streams
from feeds.schemas import KEYS, SOURCE, WITHOUT_PAYLOADS

FORMAT = "nearcast-redis"
_SOURCE = pa.field(SOURCE, pa.string())


class RedisSource(DataSource):
    """The source. Its options are `address`, `feed` (of `FEEDS`) and `entries_per_batch`.

    It reads no payloads.
    """

    @classmethod
    def name(cls) -> str:
        """Return the format's name in Spark."""
        return FORMAT

    def schema(self) -> StructType:
        """Return the columns of the feed, and the column of the range that has the row."""
        return from_arrow_schema(WITHOUT_PAYLOADS[self.options["feed"]].append(_SOURCE))

    def streamReader(self, schema: StructType) -> RedisReader:  # noqa: N802, ARG002 - Spark's names
        """Return the reader."""
        address = RedisAddress.parse(self.options["address"])
        return RedisReader(address, self.options["feed"], int(self.options["entries_per_batch"]))


@dataclass
class _Part(InputPartition):
    """Range that a task reads."""

    span: Span


class RedisReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a feed.

    Parameters
    ----------
    address
        Address of the feed.
    feed
        Name of the feed in `FEEDS`.
    entries_per_batch
        Largest number of entries of all streams in a batch. Each stream has an equal part of it.
    """

    def __init__(self, address: RedisAddress, feed: str, entries_per_batch: int) -> None:
        self._address, self._feed = address, feed
        self._entries = entries_per_batch
        self._credentials = Credentials.of_environment()
        """Credentials of the driver. Spark sends them to tasks with this reader."""
        self._last: dict[str, str] | None = None
        """Last offset of a job that reads only the existing entries."""

    def initialOffset(self) -> dict[str, str]:  # noqa: N802
        """Return the offset before the first entries."""
        return dict.fromkeys(self._address.names, BEGIN)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the largest number of entries in a batch."""
        return ReadMaxRows(self._entries)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Record the offset of the entries that exist now."""
        self._last = self._upto(self.initialOffset(), None)

    def latestOffset(self, start: dict[str, str], limit: ReadLimit) -> dict[str, str]:  # noqa: N802
        """Return the offset up to which the next batch reads."""
        share = None
        if isinstance(limit, ReadMaxRows):
            share = max(1, limit.max_rows // self._address.streams)
        found = self._upto({**self.initialOffset(), **start}, share)
        if self._last is None:
            return found
        return {name: min(found[name], self._last[name], key=_order) for name in found}

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> Sequence[InputPartition]:
        """Return the ranges that tasks read."""
        begin = {**self.initialOffset(), **start}
        return [
            _Part(Span(self._address.server, name, begin[name], upto))
            for name, upto in end.items()
            if upto != begin[name]
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the entries in a range."""
        streams = self._streams()
        span = cast("_Part", partition).span
        try:
            for batch in streams.read(span):
                yield batch.append_column(_SOURCE, pa.repeat(str(span), len(batch)))
        finally:
            streams.close()

    def _upto(self, start: dict[str, str], share: int | None) -> dict[str, str]:
        streams = self._streams()
        try:
            return {name: streams.upto(start[name], name, share) for name in self._address.names}
        finally:
            streams.close()

    def _streams(self) -> Streams:
        feed = WITHOUT_PAYLOADS[self._feed], KEYS[self._feed]
        return Streams(self._address, *feed, credentials=self._credentials)


def _order(entry_id: str) -> tuple[int, int]:
    """Return the sort key of an id."""
    time_ms, _, number = entry_id.partition("-")
    return int(time_ms), int(number)
