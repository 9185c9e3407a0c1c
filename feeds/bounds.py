"""Bounds on what a file or an entry of a feed comes to in memory.

Compression and dictionaries make a few bytes of a file as many gigabytes as their writer likes. So rows
are read in portions with dictionaries as they are, and are made rows of values only where that is small.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

ROWS_AT_ONCE = 2_000
"""Rows that are decoded at once."""

BYTES_AT_ONCE_MAX = 64 * 1024 * 1024
"""Of so many rows: twice as much as they can have if a server accepts each of them."""

_NUMBER_BYTES = 8


class UnreadableError(Exception):
    """A file or an entry cannot be read. The message says why, and nothing of what it has."""


def require_small(rows: pa.RecordBatch, bytes_max: int = BYTES_AT_ONCE_MAX) -> None:
    """Require that rows are small, each with values of its own. O(values).

    Raises
    ------
    UnreadableError
        If they are not.
    """
    found = sum(_expanded_bytes(column) for column in rows.columns)
    if found > bytes_max:
        raise UnreadableError(
            f"{rows.num_rows} of its rows come to {found:,} bytes, must be at most {bytes_max:,}"
        )


def _expanded_bytes(column: pa.Array) -> int:
    """Return how much the values of a column come to, those that a dictionary keeps once as well."""
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
    """Return how long texts and bytes are; None of a column that has others."""
    kind = column.type
    is_long = pa.types.is_large_binary(kind) or pa.types.is_large_string(kind)
    if is_long or pa.types.is_binary(kind) or pa.types.is_string(kind):
        return pc.binary_length(column).cast(pa.int64())
    if pa.types.is_fixed_size_binary(kind):
        return pa.repeat(pa.scalar(kind.byte_width, pa.int64()), len(column))
    return None


def _sum(lengths: pa.Array) -> int:
    return pc.sum(lengths).as_py() or 0
