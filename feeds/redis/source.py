"""A feed in Redis as a streaming source of Spark: a task a stream, and at most so many entries a batch.

An offset is the id of the last entry of each stream that was read. Spark keeps offsets, so an entry is
read again after a fault as long as Redis has it: whoever trims streams must be behind the job
(`batches/*.json` says what each batch has read).
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
from feeds.schemas import FEEDS, KEYS, SOURCE

FORMAT = "nearcast-redis"
_SOURCE = pa.field(SOURCE, pa.string())


class RedisSource(DataSource):
    """The source; its options are `address`, `feed` (of `FEEDS`) and `entries_per_batch`."""

    @classmethod
    def name(cls) -> str:
        """Return the name by which Spark knows it."""
        return FORMAT

    def schema(self) -> StructType:
        """Return the columns of the feed, and the stretch that has the row."""
        return from_arrow_schema(FEEDS[self.options["feed"]].append(_SOURCE))

    def streamReader(self, schema: StructType) -> RedisReader:  # noqa: N802, ARG002 - Spark's names
        """Return the reader."""
        address = RedisAddress.parse(self.options["address"])
        return RedisReader(address, self.options["feed"], int(self.options["entries_per_batch"]))


@dataclass
class _Part(InputPartition):
    """What a task reads."""

    span: Span


class RedisReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a feed.

    Parameters
    ----------
    address
        Where it is.
    feed
        Its name in `FEEDS`.
    entries_per_batch
        Of all streams together, at most; each stream has a share of it.
    """

    def __init__(self, address: RedisAddress, feed: str, entries_per_batch: int) -> None:
        self._address, self._feed = address, feed
        self._entries = entries_per_batch
        self._credentials = Credentials.of_environment()
        """The driver's, for tasks: they travel with this reader."""
        self._last: dict[str, str] | None = None
        """Where a job ends that reads what there is and no more."""

    def initialOffset(self) -> dict[str, str]:  # noqa: N802
        """Begin before the first entries."""
        return dict.fromkeys(self._address.names, BEGIN)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return how many entries make a batch."""
        return ReadMaxRows(self._entries)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Note what there is now."""
        self._last = self._upto(self.initialOffset(), None)

    def latestOffset(self, start: dict[str, str], limit: ReadLimit) -> dict[str, str]:  # noqa: N802
        """Return how far to read."""
        share = None
        if isinstance(limit, ReadMaxRows):
            share = max(1, limit.max_rows // self._address.streams)
        found = self._upto({**self.initialOffset(), **start}, share)
        if self._last is None:
            return found
        return {name: min(found[name], self._last[name], key=_order) for name in found}

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> Sequence[InputPartition]:
        """Return what tasks are to read."""
        begin = {**self.initialOffset(), **start}
        return [
            _Part(Span(self._address.server, name, begin[name], upto))
            for name, upto in end.items()
            if upto != begin[name]
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of entries."""
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
        feed = FEEDS[self._feed], KEYS[self._feed]
        return Streams(self._address, *feed, credentials=self._credentials)


def _order(entry_id: str) -> tuple[int, int]:
    """Return what ids are compared by."""
    time_ms, _, number = entry_id.partition("-")
    return int(time_ms), int(number)
