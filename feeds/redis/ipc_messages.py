"""Sizes of the messages of an Arrow stream, read from their headers before they are decompressed.

Each message starts with a table of FlatBuffers that has the numbers of values of its columns and the
positions of their buffers. A compressed buffer starts with its uncompressed length. This module adds up
the memory that the library would allocate.

Source: Arrow's columnar format ("Serialization and interprocess communication"), `Message.fbs`.
O(buffers).
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import pyarrow as pa

from feeds.bounds import BYTES_AT_ONCE_MAX, UnreadableError

ENTRY_ROWS_MAX = 100_000
"""Rows of an entry: ten times as many as `Streams.append` writes."""

_MESSAGES_MAX = 1_000
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
_HEADER_TYPE, _HEADER = 1, 2
_LENGTH, _NODES, _BUFFERS, _COMPRESSION = 0, 1, 2, 3
_DICTIONARY_ROWS = 1
_PAIR_BYTES = 16
_NUMBER_BYTES = 8
_OFFSET_BYTES = 4


class _Table(NamedTuple):
    """A table of FlatBuffers, by its position in the bytes."""

    data: memoryview
    at: int

    def place(self, field: int) -> int:
        """Return the position of a field; 0 if it is absent."""
        vtable = self.at - _number("<i", self.data, self.at)
        inner = _OFFSET_BYTES + 2 * field
        if inner >= _number("<H", self.data, vtable):
            return 0
        offset = _number("<H", self.data, vtable + inner)
        return self.at + offset if offset else 0

    def number(self, field: int, form: str) -> int:
        """Return a number; 0 if it is absent."""
        place = self.place(field)
        return _number(form, self.data, place) if place else 0

    def table(self, field: int) -> _Table | None:
        """Return an inner table; None if it is absent."""
        place = self.place(field)
        return _Table(self.data, place + _number("<I", self.data, place)) if place else None

    def pairs(self, field: int) -> list[tuple[int, int]]:
        """Return a vector of structs of two numbers; empty if it is absent."""
        place = self.place(field)
        if not place:
            return []
        start = place + _number("<I", self.data, place)
        end = start + _OFFSET_BYTES + _PAIR_BYTES * _number("<I", self.data, start)
        return list(struct.iter_unpack("<qq", self.data[start + _OFFSET_BYTES : end]))


def require_small_messages(data: bytes) -> None:
    """Require that the messages of an Arrow stream, compressed or not, are within the bounds.

    Raises
    ------
    UnreadableError
        If a bound is exceeded; the message names it.
    pyarrow.ArrowException, OSError
        If the data is not a stream of messages.
    """
    total = rows = 0
    for number, message in enumerate(pa.ipc.MessageReader.open_stream(data)):
        if number >= _MESSAGES_MAX:
            raise UnreadableError(f"it has over {_MESSAGES_MAX:,} messages, must have fewer")
        try:
            size, count = _size(message)
        except (struct.error, ValueError):
            raise UnreadableError("the header of one of its messages is invalid") from None
        total, rows = total + size, rows + count
        if rows > ENTRY_ROWS_MAX:
            raise UnreadableError(f"it has over {ENTRY_ROWS_MAX:,} rows, must have fewer")
        if total > BYTES_AT_ONCE_MAX:
            raise UnreadableError(f"it has over {BYTES_AT_ONCE_MAX:,} bytes, must have fewer")


def _size(message: pa.ipc.Message) -> tuple[int, int]:
    """Return the bytes that a message needs in memory, and its number of rows."""
    data = memoryview(message.metadata).cast("B")
    root = _Table(data, _number("<I", data, 0))
    kind, batch, is_dictionary = root.number(_HEADER_TYPE, "<B"), root.table(_HEADER), False
    if batch is not None and kind == _DICTIONARY_BATCH:
        batch, is_dictionary = batch.table(_DICTIONARY_ROWS), True
    if batch is None or kind not in (_DICTIONARY_BATCH, _RECORD_BATCH):
        return 0, 0
    rows = batch.number(_LENGTH, "<q")
    nodes, buffers = batch.pairs(_NODES), batch.pairs(_BUFFERS)
    if rows < 0 or min((length for length, _ in nodes), default=0) < 0:
        raise ValueError
    size = sum(_NUMBER_BYTES * length for length, _ in nodes)
    body = memoryview(b"" if message.body is None else message.body).cast("B")
    for offset, length in buffers:
        if offset < 0 or length < 0:
            raise ValueError
        size += length
        if batch.place(_COMPRESSION) and length:
            size += max(0, _number("<q", body, offset))  # -1 for a buffer that is not compressed
    return size, 0 if is_dictionary else rows


def _number(form: str, data: memoryview, at: int) -> int:
    if at < 0:
        raise ValueError
    found: int = struct.unpack_from(form, data, at)[0]
    return found
