"""Bounds on the memory that a file or an entry of a feed needs.

With compression and dictionaries, a few bytes of a file can expand to many gigabytes. So rows are read in
chunks with their dictionaries, and are only expanded to plain values if these are small.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

ROWS_AT_ONCE = 2_000
"""Rows in one chunk."""

BYTES_AT_ONCE_MAX = 64 * 1024 * 1024
"""Bytes of the rows in one chunk: twice as many as rows can have that a server accepts."""

_NUMBER_BYTES = 8


class UnreadableError(Exception):
    """A file or an entry cannot be read. The message has the reason, and no contents."""


def require_small(rows: pa.RecordBatch, bytes_max: int = BYTES_AT_ONCE_MAX) -> None:
    """Require that rows are small when expanded to plain values. O(values).

    Raises
    ------
    UnreadableError
        If the expanded rows have more than `bytes_max` bytes.
    """
    found = sum(_expanded_bytes(column) for column in rows.columns)
    if found > bytes_max:
        raise UnreadableError(
            f"{rows.num_rows} of its rows have {found:,} bytes, must have at most {bytes_max:,}"
        )


def _expanded_bytes(column: pa.Array) -> int:
    """Return the bytes of the values of a column, with the values of a dictionary expanded."""
    kind = column.type
    numbers = _NUMBER_BYTES * len(column)
    if pa.types.is_dictionary(kind):
        lengths = _lengths(column.dictionary)
        return numbers + (0 if lengths is None else _sum(lengths.take(column.indices)))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return numbers + _expanded_bytes(column.flatten())
    lengths = _lengths(column)
    return numbers + (0 if lengths is None else _sum(lengths))


def _lengths(column: pa.Array) -> pa.Array | None:
    """Return the lengths of texts or bytes; None for a column of another type."""
    kind = column.type
    is_long = pa.types.is_large_binary(kind) or pa.types.is_large_string(kind)
    if is_long or pa.types.is_binary(kind) or pa.types.is_string(kind):
        return pc.binary_length(column).cast(pa.int64())
    if pa.types.is_fixed_size_binary(kind):
        return pa.repeat(pa.scalar(kind.byte_width, pa.int64()), len(column))
    return None


def _sum(lengths: pa.Array) -> int:
    return pc.sum(lengths).as_py() or 0
