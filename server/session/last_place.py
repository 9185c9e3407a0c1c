"""The position that a device sent last, as one number: a fifth of the memory of a `Place` and its time.

Operations: 0.3 us to pack a place, 0.5 us to unpack one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from index.batches import Floats, Ints
from server.model import Place

UNITS = 10_000_000
"""Units of positions in a degree: some centimetres each."""

_LON, _LAT = 180 * UNITS, 90 * UNITS
_LON_UP, _LAT_UP = _LON + 0.5, _LAT + 0.5
_BITS = 32
_MARGIN_BITS = 24
_MARGIN_MAX = (1 << _MARGIN_BITS) - 1
_MASK = (1 << _BITS) - 1
_DECIMETRES = 10.0
_UP = 0.9999

NOWHERE = 0
"""In place of a position: there is none."""


class LastPlaces(NamedTuple):
    """Positions, a row each."""

    lon: Floats
    lat: Floats
    margin_m: Floats
    received_ms: Ints


def packed(place: Place, received_ms: int) -> int:
    """Return a number above 0 for a position, to 10**-7 degrees, its margin, and when it was received.

    The margin is rounded up to decimetres.
    """
    lon, lat, margin_m, _, _ = place
    margin = min(_MARGIN_MAX, int(_DECIMETRES * margin_m + _UP))
    east, north = int(lon * UNITS + _LON_UP), int(lat * UNITS + _LAT_UP)
    return ((received_ms + 1 << _MARGIN_BITS | margin) << _BITS | east) << _BITS | north


def unpacked(numbers: Sequence[int]) -> LastPlaces:
    """Return the positions of numbers that `packed` has returned."""
    count, shift = len(numbers), 2 * _BITS
    north = np.fromiter((one & _MASK for one in numbers), dtype=np.int64, count=count)
    east = np.fromiter((one >> _BITS & _MASK for one in numbers), dtype=np.int64, count=count)
    margin = np.fromiter((one >> shift & _MARGIN_MAX for one in numbers), dtype=np.int64, count=count)
    after = shift + _MARGIN_BITS
    received_ms = np.fromiter((one >> after for one in numbers), dtype=np.int64, count=count)
    return LastPlaces(
        (east - _LON) / UNITS, (north - _LAT) / UNITS, margin / _DECIMETRES, received_ms - 1
    )
