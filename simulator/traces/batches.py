"""Complete groups from batches of sorted rows: a group may start in one batch and end in another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Longs = npt.NDArray[np.int64]


def group_offsets(table: pa.Table, keys: Sequence[str]) -> Longs:
    """Return the starts of groups of equal keys, and the number of rows.

    Parameters
    ----------
    table
        Rows, those of a group together.
    keys
        Columns without nulls.
    """
    is_first = np.zeros(table.num_rows, np.bool_)
    is_first[:1] = True
    for key in keys:
        column = table[key].combine_chunks()
        differs = pc.not_equal(column[1:], column[:-1])
        is_first[1:] |= differs.to_numpy(zero_copy_only=False)
    return np.append(np.flatnonzero(is_first), table.num_rows).astype(np.int64)


def by_group(
    batches: Iterator[pa.RecordBatch],
    keys: Sequence[str],
    make: Callable[[pa.Table, Longs], pa.Table],
) -> Iterator[pa.RecordBatch]:
    """Pass complete groups to a function, many at a time, and yield its results.

    Parameters
    ----------
    batches
        Rows, those of a group together, possibly in several batches.
    keys
        The columns that identify a group.
    make
        Called with rows and the offsets of their groups.
    """
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        waiting.append(batch)
        if _is_one_group(waiting[0], batch, keys):
            continue
        table = pa.Table.from_batches(waiting).combine_chunks()
        offsets = group_offsets(table, keys)
        last = int(offsets[-2])
        yield from make(table.slice(0, last), offsets[:-1]).to_batches()
        waiting = table.slice(last).to_batches()
    if waiting:
        table = pa.Table.from_batches(waiting).combine_chunks()
        yield from make(table, group_offsets(table, keys)).to_batches()


def _is_one_group(first: pa.RecordBatch, last: pa.RecordBatch, keys: Sequence[str]) -> bool:
    """Whether the first row of one batch and the last of another are of the same group."""
    return all(first.column(key)[0] == last.column(key)[last.num_rows - 1] for key in keys)
