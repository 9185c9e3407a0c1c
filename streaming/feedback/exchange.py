"""The driver's half: feedback written behind a batch, noted for the source, removed when it is read."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from streaming.feedback.notice import Notice
from streaming.feedback.source import FeedbackSource

_KEPT = 2
"""Batches whose feedback is kept: the one that is being read may be repeated."""


class Exchange:
    """Where owners leave feedback for replicas.

    Parameters
    ----------
    folder
        Of the job's checkpoint, seen by all hosts.
    notice
        Path of a file on the driver's own disk.
    keys
        Of the partitions.
    """

    def __init__(self, folder: Path, notice: Path, keys: Sequence[int]) -> None:
        self._folder, self._keys = folder, keys
        self._notice, self._path = Notice(notice), notice
        self._files: dict[int, list[str]] = {}

    def resume(self, files: dict[int, list[str]]) -> None:
        """Begin with what the last manifests name."""
        self._files = dict(sorted(files.items())[-_KEPT:])
        self._notice.write(self._files)

    def stream(self, spark: SparkSession) -> DataFrame:
        """Return the feedback as a stream of blocks."""
        spark.dataSource.register(FeedbackSource)
        reader = spark.readStream.format(FeedbackSource.name())
        return reader.option("notice", str(self._path)).load()

    def write(self, rows: DataFrame, number: int) -> list[str]:
        """Write the feedback of a batch; return its files, which the batch's manifest is to name.

        Parameters
        ----------
        rows
            Partition and block.
        number
            Of the batch.
        """
        folder = self._folder / f"batch={number:08d}"
        keys = F.array(*map(F.lit, self._keys))
        columns = (
            F.element_at(keys, F.col("partition") + 1).cast("int").alias("key"),
            "kind",
            "block",
        )
        rows.select(*columns).write.mode("overwrite").parquet(str(folder))
        return sorted(path.absolute().as_uri() for path in folder.glob("*.parquet"))

    def complete(self, number: int, files: list[str]) -> None:
        """Tell the source of a batch that is complete, and remove what has been read."""
        self._files[number] = files
        for batch in [batch for batch in self._files if batch <= number - _KEPT]:
            del self._files[batch]
        self._notice.write(self._files)
        if self._folder.exists():
            for old in self._folder.iterdir():
                if int(old.name.rpartition("=")[2]) <= number - _KEPT:
                    shutil.rmtree(old, ignore_errors=True)
