"""The rows of a Parquet file of messages, a chunk at a time, in bounded memory.

Errors in a file are found before its first row is used: a first pass reads the whole file, and a second
one yields the rows. Arrow checks each value (`validate(full=True)`); otherwise text that is not UTF-8
would only fail later, when it is converted to a `str`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from feeds.bounds import ROWS_AT_ONCE, UnreadableError, require_small
from feeds.schemas import MESSAGES
from server.bridge.parquet_pages import require_small_pages

ROWS_MAX = 10_000_000
"""Maximum number of rows of a file: some minutes of processing."""

ROW_GROUP_BYTES_MAX = 1024 * 1024 * 1024
"""Maximum size of a row group, decompressed, according to the footer: writers make them of 128 MiB."""

_FOOTER_BYTES_MAX = 4 * 1024 * 1024
"""Maximum size of a footer, which is read at once: a thousand row groups have less than one MiB."""

_COLUMNS_MAX = 1_000
_NODES_MAX = 100_000
"""Maximum length of a list in a footer."""

_MAGIC = b"PAR1"
_TAIL_BYTES = 8
_BUFFER_BYTES = 1024 * 1024


def chunks(file: BinaryIO) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file, up to `ROWS_AT_ONCE` at a time, with the columns of `MESSAGES`.

    Raises
    ------
    UnreadableError
        If the file breaks a bound, before anything is yielded.
    pyarrow.ArrowException, OSError, ValueError
        If it is no Parquet file of messages, before anything is yielded.
    """
    _require_end(file)
    reader = _reader(file)
    for _ in _batches(reader):
        pass
    yield from _batches(_reader(file))


def _require_end(file: BinaryIO) -> None:
    """Require that a file ends like a Parquet file, with a footer that may be read at once."""
    size = file.seek(0, os.SEEK_END)
    if size < len(_MAGIC) + _TAIL_BYTES:
        raise UnreadableError(f"it is not a Parquet file: it has {size} bytes")
    file.seek(size - _TAIL_BYTES)
    tail = file.read(_TAIL_BYTES)
    if tail[4:] != _MAGIC:
        raise UnreadableError("it is not a Parquet file: the magic number at its end is missing")
    length = int.from_bytes(tail[:4], "little")
    if length > min(_FOOTER_BYTES_MAX, size - _TAIL_BYTES):
        raise UnreadableError(f"its footer has {length:,} bytes, must have at most {_FOOTER_BYTES_MAX:,}")
    file.seek(0)


def _reader(file: BinaryIO) -> pq.ParquetFile:
    """Return the reader of a file whose sizes have been checked."""
    options: dict[str, Any] = {
        "buffer_size": _BUFFER_BYTES,
        "pre_buffer": False,
        "thrift_string_size_limit": _FOOTER_BYTES_MAX,
        "thrift_container_size_limit": _NODES_MAX,
        "arrow_extensions_enabled": False,
    }
    metadata = pq.ParquetFile(file, **options).metadata
    _require_small(metadata)
    require_small_pages(file, metadata, frozenset(MESSAGES.names))
    # Dictionary-encoded columns are expanded to a value for each row only if that is small. The library
    # does not support that for lists; the check of their pages bounds them.
    leaves = [metadata.schema.column(number) for number in range(metadata.num_columns)]
    texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY" and "." not in leaf.path]
    file.seek(0)
    return pq.ParquetFile(file, read_dictionary=texts, **options)


def _require_small(metadata: pq.FileMetaData) -> None:
    if metadata.num_columns > _COLUMNS_MAX:
        raise UnreadableError(
            f"it has {metadata.num_columns:,} columns, must have at most {_COLUMNS_MAX:,}"
        )
    if not 0 <= metadata.num_rows <= ROWS_MAX:
        raise UnreadableError(f"it has {metadata.num_rows:,} rows, must have at most {ROWS_MAX:,}")
    rows = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        rows += group.num_rows
        if group.num_rows < 0 or rows > metadata.num_rows:
            raise UnreadableError("the number of rows of its row groups differs from that of the file")
        if not 0 <= group.total_byte_size <= ROW_GROUP_BYTES_MAX:
            raise UnreadableError(
                f"a row group has {group.total_byte_size:,} bytes, must have at most "
                f"{ROW_GROUP_BYTES_MAX:,}"
            )


def _batches(reader: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
    """Yield rows in the types of messages; missing columns are nulls."""
    known = set(reader.schema_arrow.names)
    columns = [name for name in MESSAGES.names if name in known]
    if not {"action", "object_id", "time_ms"} <= known:
        raise UnreadableError("it lacks the columns action, object_id and time_ms")
    for batch in reader.iter_batches(ROWS_AT_ONCE, columns=columns, use_threads=False):
        batch.validate(full=True)
        require_small(batch)
        found = [
            batch[field.name].cast(field.type)
            if field.name in known
            else pa.nulls(batch.num_rows, field.type)
            for field in MESSAGES
        ]
        rows = pa.record_batch(found, schema=MESSAGES)
        rows.validate(full=True)
        yield rows
