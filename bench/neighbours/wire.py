"""Write Protocol Buffers by hand: messages that no library would write, such as a megabyte of one id."""

from __future__ import annotations

import struct

_VARINT_BITS = 7
_MORE = 1 << _VARINT_BITS
_VARINT, _FIXED64, _LENGTH = 0, 1, 2
"""Wire types."""


def varint(value: int) -> bytes:
    """Write a non-negative number."""
    found = bytearray()
    while value >= _MORE:
        found.append(value & (_MORE - 1) | _MORE)
        value >>= _VARINT_BITS
    found.append(value)
    return bytes(found)


def number(field: int, value: int) -> bytes:
    """Write a field of an integer type."""
    return varint(field << 3 | _VARINT) + varint(value)


def double(field: int, value: float) -> bytes:
    """Write a field of type double."""
    return varint(field << 3 | _FIXED64) + struct.pack("<d", value)


def nested(field: int, content: bytes) -> bytes:
    """Write a field that has a length: a message, bytes, or packed numbers."""
    return varint(field << 3 | _LENGTH) + varint(len(content)) + content


def empties(field: int, size: int) -> bytes:
    """Write as many empty messages of a repeated field as fit into `size` bytes."""
    one = nested(field, b"")
    return one * (size // len(one))
