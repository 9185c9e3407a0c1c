"""The driver's part: writes feedback after a batch, notifies the source, and removes old feedback."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from feeds.storage import Stored
from streaming.feedback.notice import Notice
from streaming.feedback.source import FeedbackSource

_KEPT = 2
"""Batches whose feedback is kept: the one that is being read may be repeated."""


class Exchange:
    """Stores the feedback of owners for replicas.

    Parameters
    ----------
    folder
        A folder in the job's checkpoint.
    keys
        The keys of the partitions.
    """

    def __init__(self, folder: Stored, keys: Sequence[int]) -> None:
        self._folder, self._keys = folder, keys
        # A folder of the driver, which lasts as long as this object.
        self._scratch = TemporaryDirectory(prefix="nearcast-")
        self._path = Path(self._scratch.name) / "feedback.json"
        self._notice = Notice(self._path)
        self._files: dict[int, list[str]] = {}

    def resume(self, files: Mapping[int, list[str]]) -> None:
        """Start with the files that the manifests of the last batches name, by batch."""
        self._files = dict(sorted(files.items())[-_KEPT:])
        self._notice.write(self._files)

    def stream(self, spark: SparkSession) -> DataFrame:
        """Return the feedback as a stream of blocks."""
        spark.dataSource.register(FeedbackSource)
        reader = spark.readStream.format(FeedbackSource.name())
        return reader.option("notice", str(self._path)).load()

    def write(self, rows: DataFrame, own: str) -> list[str]:
        """Write the feedback of a batch; return its files, for the batch's manifest.

        Parameters
        ----------
        rows
            Partition and block.
        own
            Folder of the batch and the driver (`manifest.folder_of`).
        """
        keys = F.array(*map(F.lit, self._keys))
        key = F.element_at(keys, F.col("partition") + 1).cast("int").alias("key")
        rows.select(key, "kind", "block").write.mode("overwrite").parquet(f"{self._folder}/{own}")
        folder = self._folder / own
        return [(folder / name).resolved() for name in folder.names() if name.endswith(".parquet")]

    def complete(self, number: int, files: list[str]) -> None:
        """Notify the source of a batch that is complete, and remove feedback that has been read."""
        self._files[number] = files
        for batch in [batch for batch in self._files if batch <= number - _KEPT]:
            del self._files[batch]
        self._notice.write(self._files)
        for name in self._folder.names():
            if int(name.rpartition("=")[2]) <= number - _KEPT:
                (self._folder / name).remove()
