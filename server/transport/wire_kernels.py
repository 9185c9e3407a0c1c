"""Kernel: the structure of a message on the wire, walked once before the message is parsed.

Operations: a few nanoseconds per field; the content of texts is skipped. Nothing is allocated except the
stack of the walk.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from safe_region.jit import kernel, leaf

Bytes = npt.NDArray[np.uint8]
Fields = npt.NDArray[np.int64]
Path = npt.NDArray[np.int64]

KIND, SUBMESSAGE, COUNT_MAX, BYTES_MAX = 0, 1, 2, 3
"""Columns of `Fields[message, number]`."""

UNKNOWN, NUMBER, PACKED_VARINTS, PACKED_FIXED, TEXT, MESSAGE = 0, 1, 2, 3, 4, 5
"""Kinds of fields. A field that the message does not have is skipped."""

FINE, MALFORMED, TOO_MANY, TOO_LONG, TOO_LARGE = 0, 1, 2, 3, 4
"""Results of a walk. TOO_LARGE: the message has more fields in all than it may have."""

FIELDS = 16
"""Field numbers that a message may have, and one more."""

DEPTH_MAX = 12
"""Maximum depth of nested messages. The deepest, a corner of a hole in an entry of a fleet, has 9.

No message nests itself.
"""

PATH_WIDTH = 3
"""Columns of a path: the message, the field, how many of the field there were."""

_VARINT_BYTES_MAX = 10
_MORE = 0x80
_NUMBER_SHIFT, _WIRE_MASK = 3, 7
_VARINT, _FIXED_64, _LENGTH, _FIXED_32 = 0, 1, 2, 5


@leaf
def _varint(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """Return a number and the position of the next field; -1 as the position if it is cut off."""
    value = 0
    for i in range(_VARINT_BYTES_MAX):
        if at >= end:
            return 0, -1
        byte = int(data[at])
        at += 1
        if i < _VARINT_BYTES_MAX - 1:
            value |= (byte & (_MORE - 1)) << (7 * i)
        if byte < _MORE:
            return value, at
    return 0, -1


@leaf
def _packed_count(data: Bytes, at: int, length: int, kind: int) -> int:
    """Return how many numbers a packed field has."""
    if kind == PACKED_FIXED:
        return length // 8
    count = 0
    for i in range(at, at + length):
        count += data[i] < _MORE
    return count


@leaf
def _skip(data: Bytes, at: int, end: int, wire: int) -> tuple[int, int]:
    """Return the length of a value and its start, or its end if it has no length; -1 if cut off."""
    length = 0
    if wire == _VARINT:
        _, at = _varint(data, at, end)
    elif wire == _FIXED_64:
        at += 8
    elif wire == _FIXED_32:
        at += 4
    elif wire == _LENGTH:
        length, at = _varint(data, at, end)
    else:
        at = -1
    return (length, at) if 0 <= at <= end and length <= end - at else (0, -1)


@leaf
def _count(data: Bytes, at: int, length: int, wire: int, kind: int) -> int:
    """Return how many values of a field start at a position."""
    if wire == _LENGTH and (kind == PACKED_VARINTS or kind == PACKED_FIXED):  # noqa: PLR1714, SIM109
        return _packed_count(data, at, length, kind)
    return 1


@leaf
def _verdict(row: Fields, count: int, length: int, wire: int) -> int:
    """Return FINE, or the bound that a field breaks."""
    if count > row[COUNT_MAX]:
        return TOO_MANY
    if wire == _LENGTH and row[KIND] == TEXT and length > row[BYTES_MAX]:
        return TOO_LONG
    return FINE


@kernel
def walk(
    data: Bytes, fields: Fields, root: int, elements_max: int, path: Path
) -> tuple[int, int, int, int]:
    """Walk a message; stop at the first field that breaks a bound.

    Parameters
    ----------
    data
        The message, shape (n,).
    fields
        By message and field number: kind, number of the nested message, maximum count, maximum bytes of
        one.
    root
        The number of the message's type.
    elements_max
        Maximum number of fields, including those of nested messages.
    path
        Written: the path to the last field visited, shape (DEPTH_MAX, PATH_WIDTH).

    Returns
    -------
    tuple
        The result of the walk; the number of steps in the path; the length of the last field; the number
        of fields walked.
    """
    ends = np.zeros(DEPTH_MAX, dtype=np.int64)
    types = np.zeros(DEPTH_MAX, dtype=np.int64)
    counts = np.zeros((DEPTH_MAX, FIELDS), dtype=np.int64)
    depth = at = elements = 0
    ends[0], types[0] = data.shape[0], root
    while depth >= 0:
        if at == ends[depth]:
            depth -= 1
            continue
        tag, at = _varint(data, at, ends[depth])
        number, wire = tag >> _NUMBER_SHIFT, tag & _WIRE_MASK
        if at < 0 or number == 0:
            return MALFORMED, depth, 0, elements
        length, at = _skip(data, at, ends[depth], wire)
        if at < 0:
            return MALFORMED, depth, 0, elements
        elements += 1
        path[depth, 0], path[depth, 1], path[depth, 2] = types[depth], number, 0
        kind = fields[types[depth], number, KIND] if number < FIELDS else UNKNOWN
        if kind != UNKNOWN:
            count = _count(data, at, length, wire, kind)
            elements += count - 1
            counts[depth, number] += count
            path[depth, 2] = counts[depth, number]
            row = fields[types[depth], number]
            verdict = _verdict(row, counts[depth, number], length, wire)
            if verdict != FINE:
                return verdict, depth + 1, length, elements
        if elements > elements_max:
            return TOO_LARGE, depth + 1, length, elements
        if kind == MESSAGE and wire == _LENGTH:
            if depth + 1 == DEPTH_MAX:
                return MALFORMED, depth, length, elements
            depth += 1
            ends[depth] = at + length
            types[depth] = fields[types[depth - 1], number, SUBMESSAGE]
            counts[depth, :] = 0
        else:
            at += length
    return FINE, 0, 0, elements
