"""Messages put together from pieces that are written already.

A message with fields of length is the bytes of each behind its number and length, in any order, so what
does not change (an object, an answer of which only the envelope differs) need not be written again.
"""

from __future__ import annotations

_LENGTH_DELIMITED = 2
_SHORT = 0x80
"""A varint below this is one byte."""
_MIDDLE = 0x4000
"""A varint below this is two bytes at most."""


def field(number: int, content: bytes) -> bytes:
    """Write a field that has a length: a message, a text, bytes. `number` is at most 15."""
    tag = number << 3 | _LENGTH_DELIMITED
    size = len(content)
    if size < _SHORT:
        return bytes((tag, size)) + content
    if size < _MIDDLE:
        return bytes((tag, size & 0x7F | _SHORT, size >> 7)) + content
    return bytes((tag,)) + _varint(size) + content


def _varint(value: int) -> bytes:
    found = bytearray()
    while value >= _SHORT:
        found.append(value & 0x7F | _SHORT)
        value >>= 7
    found.append(value)
    return bytes(found)
