"""Changes of results, as arrays, as bytes and as rows.

As rows, there is one for each object of a partition and batch. It lists the subscriptions into whose
results the object enters, with the scores, and the subscriptions from whose results it leaves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from index.batches import Floats, Ints

ROWS = pa.schema(
    [
        ("object_id", pa.int64()),
        ("entered", pa.list_(pa.int64())),
        ("scores", pa.list_(pa.float64())),
        ("left", pa.list_(pa.int64())),
    ]
)
"""An object, the subscriptions that it enters, its scores there, and the subscriptions that it leaves."""


@dataclass(frozen=True, slots=True)
class Changes:
    """A value for each pair of an object and a subscription, ordered by object, then by subscription."""

    object_id: Ints
    subscription_id: Ints
    is_left: npt.NDArray[np.bool_]
    score: Floats
    """0 for objects that leave."""

    def __len__(self) -> int:
        return len(self.object_id)

    def part(self, start: int, stop: int) -> Changes:
        """Return a range of the changes."""
        rows = slice(start, stop)
        return Changes(
            self.object_id[rows], self.subscription_id[rows], self.is_left[rows], self.score[rows]
        )

    def rows(self) -> pa.RecordBatch:
        """Return a row for each object, in the order of changes, which are by object."""
        owners, is_left, scores = self.subscription_id, self.is_left, self.score
        is_first = np.ones(len(self), dtype=np.bool_)
        is_first[1:] = self.object_id[1:] != self.object_id[:-1]
        ids, rows = self.object_id[is_first], np.cumsum(is_first) - 1
        entered, left = _offsets(rows[~is_left], len(ids)), _offsets(rows[is_left], len(ids))
        columns = [
            pa.array(ids),
            pa.ListArray.from_arrays(entered, pa.array(owners[~is_left])),
            pa.ListArray.from_arrays(entered, pa.array(scores[~is_left])),
            pa.ListArray.from_arrays(left, pa.array(owners[is_left])),
        ]
        return pa.record_batch(columns, schema=ROWS)


def _offsets(rows: Ints, count: int) -> pa.Array:
    return pa.array(np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=count))]).astype(np.int32))


def to_bytes(batch: pa.RecordBatch) -> bytes:
    """Write rows as bytes."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def from_bytes(data: bytes) -> pa.RecordBatch:
    """Read rows."""
    (batch,) = pa.ipc.open_stream(pa.BufferReader(data))
    return batch
