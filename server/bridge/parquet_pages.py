"""The sizes of the pages of a Parquet file, read from their headers before any is decompressed.

The footer of a file has the sizes of its columns, but its writer may put any values there. The reader
allocates by the header of each page, so the headers are checked first: each is a struct of Thrift's
compact protocol, a few dozen bytes.

Source: parquet-format, `parquet.thrift` (PageHeader); Thrift's compact protocol. O(pages).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from feeds.bounds import UnreadableError

PAGE_BYTES_MAX = 64 * 1024 * 1024
"""Maximum size of a page, decompressed. Writers aim at one MiB."""

VALUES_MAX = 16 * 1024 * 1024
"""Maximum number of values of a column in a row group: a million rows of sixteen keywords.

The values of one row are decoded at once.
"""

LIST_BYTES_MAX = 1024 * 1024 * 1024
"""Maximum bytes of texts in lists of a row group, if each had the maximum length in its dictionary."""

_WORDS_MAX = 1024 * 1024
"""Maximum number of entries of a dictionary. Writers stop using it before a tenth of that."""

_PAGES_MAX = 100_000
"""Maximum number of pages of a file: twenty times as many as ten million rows have."""

_HEADER_BYTES, _HEADER_BYTES_MAX = 4_096, 256 * 1024
"""Bytes to read at first, and at most, as the smallest and the largest value may be present."""

_DEPTH_MAX = 8
_VARINT_BITS_MAX = 70

_CODECS = {one.upper(): one for one in ("snappy", "gzip", "brotli", "zstd")} | {"LZ4": "lz4_raw"}
_LENGTH = struct.Struct("<I")
_NUMBER_BYTES = 8

_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _STRUCT = 1, 2, 3, 7, 8, 12
_INTEGERS = (4, 5, 6)

_PAGE_BYTES, _PACKED_BYTES = 2, 3
_DATA, _DICTIONARY, _DATA_V2 = 5, 7, 8
"""Fields of a header: sizes; and structs, of which a page has one."""

_ENCODING = {_DATA: 2, _DICTIONARY: 2, _DATA_V2: 4}
_VALUES = 1
_INCREMENTAL = 7
"""DELTA_BYTE_ARRAY: a value starts with any part of the one before it, so a page grows without bound."""


class _Header(NamedTuple):
    """The header of a page: integers by their field paths, and the position where the page starts."""

    numbers: dict[tuple[int, ...], int]
    end: int


class _EndError(Exception):
    """The bytes end in the middle."""


def require_small_pages(file: BinaryIO, metadata: pq.FileMetaData, columns: frozenset[str]) -> None:
    """Require that each page of some columns, named by their first parts, can be decompressed.

    Raises
    ------
    UnreadableError
        Naming the bound that is broken.
    """
    pages = 0
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for number in range(row_group.num_columns):
            chunk = row_group.column(number)
            if chunk.path_in_schema.partition(".")[0] not in columns:
                continue
            values = longest = 0
            for header in _pages(file, chunk):
                pages += 1
                values += _checked(header)
                if (_DICTIONARY, _VALUES) in header.numbers and "." in chunk.path_in_schema:
                    longest = max(longest, _longest_word(file, chunk, header))
                if values * longest > LIST_BYTES_MAX:
                    raise UnreadableError(
                        f"texts in lists of a row group may take {values * longest:,} bytes, must take "
                        f"at most {LIST_BYTES_MAX:,}"
                    )
                if values > VALUES_MAX:
                    raise UnreadableError(
                        f"a row group has over {VALUES_MAX:,} values of a column, must have fewer"
                    )
                if pages > _PAGES_MAX:
                    raise UnreadableError(f"it has over {_PAGES_MAX:,} pages, must have fewer")


def _checked(header: _Header) -> int:
    """Verify the bounds of a page; return its number of data values, 0 for a dictionary."""
    size = header.numbers.get((_PAGE_BYTES,), 0)
    if not 0 <= size <= PAGE_BYTES_MAX:
        raise UnreadableError(f"a page has {size:,} bytes, must have at most {PAGE_BYTES_MAX:,}")
    for kind, encoding in _ENCODING.items():
        if header.numbers.get((kind, encoding)) == _INCREMENTAL:
            raise UnreadableError("a page has the encoding DELTA_BYTE_ARRAY, must have another one")
    found = [header.numbers.get((kind, _VALUES), 0) for kind in (_DATA, _DATA_V2)]
    if min(found) < 0 or not 0 <= header.numbers.get((_DICTIONARY, _VALUES), 0) <= _WORDS_MAX:
        raise UnreadableError("a page has an invalid number of values")
    return sum(found)


def _pages(file: BinaryIO, chunk: pq.ColumnChunkMetaData) -> Iterator[_Header]:
    """Yield the headers of a column's pages, as the reader finds them."""
    at = chunk.data_page_offset
    first = chunk.dictionary_page_offset if chunk.has_dictionary_page else None
    if first is not None and 0 < first < at:
        at = first
    end, seen = at + chunk.total_compressed_size, 0
    while at < end and seen < chunk.num_values:
        header = _header_at(file, at)
        packed = header.numbers.get((_PACKED_BYTES,), -1)
        if packed < 0:
            raise UnreadableError("the header of a page has no size")
        yield header
        seen += sum(header.numbers.get((kind, _VALUES), 0) for kind in (_DATA, _DATA_V2))
        at = header.end + packed


def _header_at(file: BinaryIO, at: int) -> _Header:
    size = _HEADER_BYTES
    while True:
        try:
            file.seek(at)
            numbers: dict[tuple[int, ...], int] = {}
            return _Header(numbers, at + _read_struct(file.read(size), 0, (), numbers))
        except _EndError:
            if size >= _HEADER_BYTES_MAX:
                raise UnreadableError("the header of a page is invalid") from None
            size = _HEADER_BYTES_MAX
        except (ValueError, OverflowError):  # of a position that no file has
            raise UnreadableError("the position of a page is invalid") from None


def _longest_word(file: BinaryIO, chunk: pq.ColumnChunkMetaData, header: _Header) -> int:
    """Return the length of the longest text of a dictionary; its whole size if it cannot be unpacked."""
    size = header.numbers.get((_PAGE_BYTES,), 0)
    if chunk.physical_type != "BYTE_ARRAY":
        return _NUMBER_BYTES
    file.seek(header.end)
    data = file.read(header.numbers.get((_PACKED_BYTES,), 0))
    codec = _CODECS.get(chunk.compression)
    try:
        if codec is not None:
            data = pa.Codec(codec).decompress(data, size, asbytes=True)
        longest = at = 0
        while at < len(data):
            (length,) = _LENGTH.unpack_from(data, at)
            longest, at = max(longest, length), at + _LENGTH.size + length
    except (pa.ArrowException, OSError, ValueError, struct.error):
        return size
    return longest


def _read_struct(data: bytes, at: int, path: tuple[int, ...], numbers: dict[tuple[int, ...], int]) -> int:
    """Read a struct; return its end."""
    if len(path) > _DEPTH_MAX:
        raise UnreadableError("the header of a page is invalid")
    field = 0
    while True:
        head = _byte(data, at)
        at += 1
        if head == 0:
            return at
        if head >> 4:
            field += head >> 4
        else:
            number, at = _varint(data, at)
            field = _signed(number)
        at = _read_value(data, at, head & 15, (*path, field), numbers)


def _read_value(
    data: bytes, at: int, kind: int, path: tuple[int, ...], numbers: dict[tuple[int, ...], int]
) -> int:
    """Read the value of a field; return its end."""
    if kind in (_TRUE, _FALSE):
        return at
    if kind == _BYTE:
        return at + 1
    if kind in _INTEGERS:
        number, at = _varint(data, at)
        numbers[path] = _signed(number)
        return at
    if kind == _DOUBLE:
        return at + 8
    if kind == _BINARY:
        length, at = _varint(data, at)
        return _within(data, at + length)
    if kind == _STRUCT:
        return _read_struct(data, at, path, numbers)
    # A page's header has no lists, sets and maps.
    raise UnreadableError("the header of a page is invalid")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    found = shift = 0
    while True:
        one = _byte(data, at)
        at += 1
        found |= (one & 127) << shift
        if one < 128:  # noqa: PLR2004 - the last byte of a number
            return found, at
        shift += 7
        if shift > _VARINT_BITS_MAX:
            raise UnreadableError("the header of a page is invalid")


def _signed(number: int) -> int:
    return (number >> 1) ^ -(number & 1)


def _byte(data: bytes, at: int) -> int:
    if at >= len(data):
        raise _EndError
    return data[at]


def _within(data: bytes, at: int) -> int:
    if at > len(data):
        raise _EndError
    return at
