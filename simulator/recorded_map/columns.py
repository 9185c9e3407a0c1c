"""The format of a recorded run: a header and columns of numbers.

The page of the gateway reads a file whole (`gateway/map/recorded_file.js`). It has, with little-endian
numbers: 8 bytes `NCRUN002`, of which the digits are the version; the length of the header; the header as
JSON; then columns, each beginning at a multiple of 8. The header has the type, the offset and the length
of each column. Positions are integers of 1e-7 degrees; `NOWHERE` stands for none. Times are milliseconds
since the start of the run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

MAGIC = b"NCRUN002"
NOWHERE = -(2**31)

_E7 = 1e7
_ALIGNED = 8
_TIME_MAX = 2**32 - 1

Column = npt.NDArray[Any]


def encoded(header: dict[str, Any], columns: dict[str, Column]) -> bytes:
    """Return the bytes of a file. Offsets are texts of one width, so the header's length is known."""
    described = {name: _description(column, 0) for name, column in columns.items()}
    size = len(MAGIC) + 4 + len(_json(header, described))
    end = size
    for name, column in columns.items():
        begin = -(-end // _ALIGNED) * _ALIGNED
        described[name] = _description(column, begin)
        end = begin + column.nbytes
    text = _json(header, described)
    data = bytearray(end)
    data[:size] = MAGIC + len(text).to_bytes(4, "little") + text
    for name, column in columns.items():
        begin = int(described[name]["offset"])
        data[begin : begin + column.nbytes] = column.tobytes()
    return bytes(data)


def times(times_ms: Iterable[int]) -> Column:
    """Return times since the start; the greatest number stands for later ones."""
    return np.clip(np.fromiter(times_ms, np.int64), 0, _TIME_MAX).astype(np.uint32)


def fixed(degrees: Column) -> Column:
    """Return degrees as integers of 1e-7; 180 degrees fit into 32 bits."""
    return np.round(degrees * _E7).astype(np.int32)


def _json(header: dict[str, Any], described: dict[str, dict[str, Any]]) -> bytes:
    return json.dumps({**header, "columns": described}).encode()


def _description(column: Column, offset: int) -> dict[str, Any]:
    return {"type": column.dtype.name, "offset": f"{offset:012d}", "length": len(column)}
