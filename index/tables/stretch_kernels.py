"""Stretches of an array; free ones are chained by length, the link in their first value."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from index.batches import Ints
from safe_region.jit import kernel

Values = npt.NDArray[np.int32]

_NOTHING = -1


@kernel
def take(values: Values, free: Values, counts: Ints, starts: Values, end: int) -> int:
    """Write the start of a stretch of each length; return the new end of what is used."""
    for i in range(counts.shape[0]):
        start = free[counts[i]]
        if start == _NOTHING:
            start = end
            end += counts[i]
        else:
            free[counts[i]] = values[start]
        starts[i] = start
    return end


@kernel
def give_back(values: Values, free: Values, starts: Values, counts: Ints) -> None:
    """Chain stretches as free."""
    for i in range(starts.shape[0]):
        values[starts[i]] = free[counts[i]]
        free[counts[i]] = starts[i]
