"""Whole groups from batches, without Spark."""

from itertools import pairwise

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.traces.batches import by_group, group_offsets

KEYS = ("a", "b")


def batches_of(rows, sizes):
    """Cut rows into batches; sizes are repeated."""
    schema = pa.schema([("a", pa.string()), ("b", pa.int64()), ("n", pa.int64())])
    found, first, k = [], 0, 0
    while first < len(rows):
        part = rows[first : first + sizes[k % len(sizes)]]
        columns = [pa.array([row[i] for row in part], field.type) for i, field in enumerate(schema)]
        found.append(pa.RecordBatch.from_arrays(columns, schema=schema))
        first, k = first + sizes[k % len(sizes)], k + 1
    return found


@settings(deadline=None)
@given(st.lists(st.integers(1, 9), max_size=12), st.lists(st.integers(0, 7), min_size=1).filter(any))
def test_every_group_is_handed_on_once_and_whole(lengths, sizes):
    rows = [("xy"[g % 2], g // 2, g) for g, length in enumerate(lengths) for _ in range(length)]
    handed = []

    def make(table, offsets):
        groups = table["n"].to_pylist()
        assert offsets[0] == 0
        assert offsets[-1] == table.num_rows
        handed.extend(groups[a:b] for a, b in pairwise(offsets))
        return table

    out = [
        n for batch in by_group(iter(batches_of(rows, sizes)), KEYS, make) for n in batch["n"].to_pylist()
    ]
    assert out == [row[2] for row in rows]
    assert handed == [[g] * length for g, length in enumerate(lengths)]


def test_offsets():
    (batch,) = batches_of([("x", 1, 0), ("x", 1, 0), ("y", 1, 0), ("y", 2, 0)], [9])
    assert group_offsets(pa.Table.from_batches([batch]), KEYS).tolist() == [0, 2, 3, 4]
    assert group_offsets(pa.Table.from_batches([batch]).slice(0, 0), KEYS).tolist() == [0]
