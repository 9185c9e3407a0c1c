"""Stretches whose lengths are powers of two, of an array that grows at its end.

Free stretches are chained by length: the link lies in the first of the `links` that go with the stretch.
Take and give back O(1).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from index.batches import Ints
from safe_region.jit import leaf

Links = npt.NDArray[np.int32]

_NOTHING = -1


@leaf
def take_power(links: Links, free: Links, meta: Ints, end: int, room: int) -> int:
    """Return the start of a stretch of 2**room; `meta[end]` is where the unused part begins."""
    start = free[room]
    if start != _NOTHING:
        free[room] = links[start]
        return int(start)
    start = meta[end]
    meta[end] += 1 << int(room)
    return int(start)


@leaf
def give_back_power(links: Links, free: Links, start: int, room: int) -> None:
    """Chain a stretch as free."""
    links[start] = free[room]
    free[room] = start
