"""Entries of a stream: rows in Arrow's format (field `arrow`), or as lines of JSON (field `json`).

Programs write Arrow's format, with many rows in an entry. JSON is for people and for other languages. A
line that cannot be parsed becomes a row of nulls, which the validator of rows refuses and counts. An
entry that cannot be parsed, or would need more memory than an entry may, is refused as a whole.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from feeds.bounds import BYTES_AT_ONCE_MAX, UnreadableError, require_small
from feeds.redis.ipc_messages import ENTRY_ROWS_MAX, require_small_messages

ARROW, JSON = b"arrow", b"json"

ROWS_MAX = 10_000
BYTES_MAX = BYTES_AT_ONCE_MAX // 2
"""Rows, and bytes, of an entry that is written: half of the bytes that are read."""


def batches_of(rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield rows in order, in batches for entries. Only a single row may have more than `BYTES_MAX`."""
    for batch in rows.combine_chunks().to_batches(max_chunksize=ROWS_MAX):
        yield from _halved(batch)


def _halved(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if batch.nbytes <= BYTES_MAX or batch.num_rows == 1:
        yield batch
        return
    half = batch.num_rows // 2
    yield from _halved(batch.slice(0, half))
    yield from _halved(batch.slice(half))


def packed(rows: pa.RecordBatch) -> bytes:
    """Serialise rows to bytes."""
    target = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(target, rows.schema, options=options) as writer:
        writer.write_batch(rows)
    return target.getvalue().to_pybytes()  # type: ignore[no-any-return]


def rows_of(entry: Mapping[bytes, bytes], schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows of an entry; a row of nulls if the entry cannot be parsed."""
    try:
        return read_rows(entry, schema)
    except UnreadableError:
        return pa.RecordBatch.from_pylist([{}], schema)


def read_rows(entry: Mapping[bytes, bytes], schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows of an entry; a line that cannot be parsed becomes a row of nulls.

    Raises
    ------
    UnreadableError
        If the entry cannot be parsed.
    """
    if ARROW in entry:
        return _of_arrow(entry[ARROW], schema)
    if JSON not in entry:
        raise UnreadableError("it has neither a field arrow nor a field json")
    if len(entry[JSON]) > BYTES_AT_ONCE_MAX:
        raise UnreadableError(
            f"it has {len(entry[JSON]):,} bytes, must have at most {BYTES_AT_ONCE_MAX:,}"
        )
    lines = entry[JSON].splitlines() or [b""]
    if len(lines) > ENTRY_ROWS_MAX:
        raise UnreadableError(f"it has {len(lines):,} lines, must have at most {ENTRY_ROWS_MAX:,}")
    return pa.RecordBatch.from_pylist([_of_json(line, schema) for line in lines], schema)


def _of_arrow(data: bytes, schema: pa.Schema) -> pa.RecordBatch:
    try:
        require_small_messages(data)
        with pa.ipc.open_stream(data) as reader:
            for name in schema.names:
                _require_plain(name, reader.schema.field(name).type)
            table = reader.read_all().select(schema.names)
        table.validate(full=True)  # otherwise reads of broken buffers exceed their ends
        for batch in table.to_batches():
            require_small(batch)
        columns = [table[name].combine_chunks().cast(schema.field(name).type) for name in schema.names]
        return pa.record_batch(columns, schema=schema)
    except (pa.ArrowException, KeyError, OSError, OverflowError, ValueError, MemoryError) as error:
        raise UnreadableError(f"it cannot be read ({type(error).__name__})") from None


def _require_plain(name: str, kind: pa.DataType) -> None:
    """Require that each value of a column is stored separately, or in a dictionary of texts.

    Other layouts, such as run-end encoding and views, can expand to any number of bytes.
    """
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    is_plain = (
        pa.types.is_null(kind)
        or pa.types.is_primitive(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_fixed_size_binary(kind)
    )
    if not is_plain:
        raise UnreadableError(f"its column {name} has an unsupported type")


def _of_json(line: bytes, schema: pa.Schema) -> dict[str, Any]:
    """Return the row of a line; empty if the line is not a row."""
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
