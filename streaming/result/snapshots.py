"""Snapshots: all results after a batch as a table, so that readers can skip the earlier changes.

snapshots/batch=00000100/attempt=1f2e3d4c/*.parquet   subscription_id, object_id, score
snapshots/00000100.json                               written last: the snapshot is complete
"""

from __future__ import annotations

import json
import secrets
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from feeds.storage import Stored
from streaming.result.manifest import CHANGES, REFUSED, batch_name, complete_batches, manifest_of

_FOLDER = "snapshots"
_DDL = "subscription_id long, object_id long, score double"
_NONE = -1
_KEPT = 2
"""Manifests that a job may still read when it resumes."""


class Snapshots:
    """The snapshots of a result.

    Parameters
    ----------
    out
        Folder of the results.
    spark
        The session.
    """

    def __init__(self, out: Stored, spark: SparkSession) -> None:
        self._out, self._spark = out, spark
        self._folder = out / _FOLDER

    def last(self, batch: int) -> int:
        """Return the last batch up to `batch` that has a snapshot; -1 if there is none."""
        return max((number for number in self._numbers() if number <= batch), default=_NONE)

    def removed(self) -> int:
        """Return the batch up to which changes were removed; -1 if none were."""
        numbers = sorted(self._numbers(), reverse=True)
        return next((number for number in numbers if self._about(number)["changes_removed"]), _NONE)

    def read(self, batch: int) -> DataFrame:
        """Return a snapshot; that of batch -1 is empty."""
        if batch == _NONE:
            return self._spark.createDataFrame([], _DDL)
        return self._spark.read.schema(_DDL).parquet(f"{self._folder}/{self._about(batch)['folder']}")

    def write(self, rows: DataFrame, batch: int) -> int:
        """Write a snapshot; return its number of rows."""
        name = f"batch={batch_name(batch)}/attempt={secrets.token_hex(4)}"
        rows.select("subscription_id", "object_id", "score").write.mode("overwrite").parquet(
            f"{self._folder}/{name}"
        )
        count = self._spark.read.schema(_DDL).parquet(f"{self._folder}/{name}").count()
        is_removed = batch <= self.removed()
        self._note(batch, {"batch": batch, "folder": name, "rows": count, "changes_removed": is_removed})
        return count

    def remove_before(self, batch: int) -> int:
        """Remove earlier snapshots, and changes up to a batch; return the number of batches of these.

        Also remove earlier manifests and refused rows, but not those of the last batches.
        """
        self._note(batch, self._about(batch) | {"changes_removed": True})
        for name in self._folder.names():
            number = name.removesuffix(".json").removeprefix("batch=")
            if number.isdecimal() and int(number) < batch:
                (self._folder / name).remove()
        older = [one for one in complete_batches(self._out) if one <= batch][:-_KEPT]
        self._remove_rows(REFUSED, older[-1] if older else _NONE)
        for one in older:
            manifest_of(self._out, one).remove()
        return self._remove_rows(CHANGES, batch)

    def _remove_rows(self, kind: str, batch: int) -> int:
        """Remove the rows that batches up to a batch have written; return the number of batches."""
        folder = self._out / kind
        names = [name for name in folder.names() if int(name.removeprefix("batch=")) <= batch]
        for name in names:
            (folder / name).remove()
        return len(names)

    def _numbers(self) -> list[int]:
        names = (name.removesuffix(".json") for name in self._folder.names() if name.endswith(".json"))
        return [int(name) for name in names if name.isdecimal()]

    def _file(self, batch: int) -> Stored:
        return self._folder / f"{batch_name(batch)}.json"

    def _about(self, batch: int) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._file(batch).read())
        return found

    def _note(self, batch: int, about: dict[str, Any]) -> None:
        self._file(batch).replace(json.dumps(about).encode() + b"\n")
