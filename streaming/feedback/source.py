"""Feedback as a streaming source of Spark: an offset is the last batch whose feedback was read.

The source also reads feedback that was written since a job with `--once` started. Each batch reads the
feedback of the one before, and the job ends when nothing is left to read and no batch has written any.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from feeds.storage import open_resolved
from streaming.feedback.notice import NONE, Notice
from streaming.tasks.routing import ROUTED

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = "nearcast-feedback"
_BATCH = "batch"


class FeedbackSource(DataSource):
    """The source; its option is `notice`, the path of the driver's notice."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the source in Spark."""
        return FORMAT

    def schema(self) -> StructType:
        """Return the columns: a block for the replicas of a partition, by its key."""
        return from_arrow_schema(ROUTED)

    def streamReader(self, schema: StructType) -> FeedbackReader:  # noqa: N802, ARG002 - Spark's names
        """Return the reader."""
        return FeedbackReader(Path(self.options["notice"]))


@dataclass
class _Part(InputPartition):
    """The input of a task."""

    file: str


class FeedbackReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads feedback.

    Parameters
    ----------
    notice
        Path of the notice; only the driver reads it.
    """

    def __init__(self, notice: Path) -> None:
        self._notice = notice

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """Start before the first batch."""
        return {_BATCH: NONE}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Do nothing: the job itself writes feedback, as long as there are other rows to read."""

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802, ARG002
        """Return the last batch that has written feedback."""
        return {_BATCH: max(start[_BATCH], Notice(self._notice).last())}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Return the inputs of tasks, without files removed meanwhile; replicas detect the gap."""
        files = Notice(self._notice).read()
        batches = [batch for batch in sorted(files) if start[_BATCH] < batch <= end[_BATCH]]
        return [_Part(file) for batch in batches for file in files[batch]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file."""
        system, path = open_resolved(cast("_Part", partition).file)
        with pq.ParquetFile(path, filesystem=system) as file:
            for batch in file.iter_batches():
                yield batch.cast(ROUTED)
