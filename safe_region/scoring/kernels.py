"""Compile the functions of `formulas`, and compute the common keywords of two lists for kernels."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from safe_region.jit import leaf
from safe_region.scoring import formulas

_TFIDF = int(formulas.Similarity.TFIDF)

text_distance = leaf(formulas.text_distance)
length = leaf(formulas.length)


@leaf
def nearest_length(dx_m: float, dy_m: float, radius_m: float, r_m: float) -> float:
    """Return the least length within a radius of a point; with radius 0 the same float64 as `length`."""
    return max(0.0, math.sqrt(dx_m * dx_m + dy_m * dy_m) - radius_m) + r_m


@leaf
def common_count(left: npt.NDArray[np.int32], right: npt.NDArray[np.int32]) -> int:
    """Return the number of keywords that two strictly increasing id arrays share. O(|left| + |right|)."""
    i = 0
    j = 0
    common = 0
    while i < left.shape[0] and j < right.shape[0]:
        if left[i] == right[j]:
            common += 1
            i += 1
            j += 1
        elif left[i] < right[j]:
            i += 1
        else:
            j += 1
    return common


@leaf
def norm_of(similarity: int, count: int, norm2: float) -> float:
    """Return a set's norm for `text_distance`: its number of keywords, or for TFIDF `norm2`."""
    return norm2 if similarity == _TFIDF else float(count)


@leaf
def sum_of(squares: npt.NDArray[np.float64]) -> float:
    """Return the sum of squared weights, added in their order."""
    total = 0.0
    for square in squares:
        total += square
    return total


@leaf
def common_square(
    left: npt.NDArray[np.int32], squares: npt.NDArray[np.float64], right: npt.NDArray[np.int32]
) -> float:
    """Return the sum of the squared weights of the keywords that two increasing id arrays share.

    Both arrays are strictly increasing. `squares` are the squared weights of `left`, in the same order.
    O(|left| + |right|).
    """
    i = 0
    j = 0
    common = 0.0
    while i < left.shape[0] and j < right.shape[0]:
        if left[i] == right[j]:
            common += squares[i]
            i += 1
            j += 1
        elif left[i] < right[j]:
            i += 1
        else:
            j += 1
    return common
