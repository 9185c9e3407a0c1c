"""Sort a few numbers. numba's own `sort` takes a second to compile in each kernel that calls it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from safe_region.jit import leaf


@leaf
def sort(values: npt.NDArray[np.float64]) -> None:
    """Sort numbers in place. O(numbers^2)."""
    for i in range(1, values.shape[0]):
        value = values[i]
        place = i
        while place and values[place - 1] > value:
            values[place] = values[place - 1]
            place -= 1
        values[place] = value
