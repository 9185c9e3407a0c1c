"""Choose rows of a block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from index.batches import Ints

_Number = TypeVar("_Number", np.int32, np.int64)


def chunks(rows: npt.NDArray[_Number], count_max: int) -> Iterator[npt.NDArray[_Number]]:
    """Yield rows in chunks of at most `count_max`."""
    for start in range(0, len(rows), count_max):
        yield rows[start : start + count_max]


def last_of_each(ids: Ints, time_ms: Ints) -> Ints:
    """Return the last row of each id, by time, then by position; in the order of ids."""
    order = np.lexsort((time_ms, ids))
    is_last = np.ones(len(order), dtype=np.bool_)
    is_last[:-1] = ids[order][1:] != ids[order][:-1]
    found: Ints = order[is_last]
    return found
