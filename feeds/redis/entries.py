"""Entries of a stream: rows in Arrow's format (field `arrow`), or as lines of JSON (field `json`).

Programs write the first, many rows an entry; the second is for hands and for other languages. A line
that cannot be read is a row of nothing, so that whoever judges rows refuses and counts it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

ARROW, JSON = b"arrow", b"json"

ROWS_MAX = 10_000
"""Of an entry that is written here: some megabytes."""


def packed(rows: pa.RecordBatch) -> bytes:
    """Write rows as bytes."""
    target = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(target, rows.schema, options=options) as writer:
        writer.write_batch(rows)
    return target.getvalue().to_pybytes()  # type: ignore[no-any-return]


def rows_of(entry: Mapping[bytes, bytes], schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows of an entry: what cannot be read is a row of nulls."""
    if ARROW in entry:
        return _of_arrow(entry[ARROW], schema)
    lines = entry.get(JSON, b"").splitlines() or [b""]
    return pa.RecordBatch.from_pylist([_of_json(line, schema) for line in lines], schema)


def _of_arrow(data: bytes, schema: pa.Schema) -> pa.RecordBatch:
    try:
        table = pa.ipc.open_stream(data).read_all()
        table.validate(full=True)  # else what is broken is read beyond its end
        columns = [table[name].combine_chunks().cast(schema.field(name).type) for name in schema.names]
        return pa.record_batch(columns, schema=schema)
    except (pa.ArrowException, KeyError, OSError, OverflowError, ValueError):
        return pa.RecordBatch.from_pylist([{}], schema)


def _of_json(line: bytes, schema: pa.Schema) -> dict[str, Any]:
    """Return a row; nothing where a line is none."""
    try:
        row = json.loads(line)
        if row.get("payload") is not None:
            row["payload"] = base64.b64decode(row["payload"], validate=True)
        pa.RecordBatch.from_pylist([row], schema)
    except (
        ValueError,
        TypeError,
        AttributeError,
        OverflowError,
        RecursionError,
        pa.ArrowException,
    ):
        return {}
    return {name: row.get(name) for name in schema.names}
