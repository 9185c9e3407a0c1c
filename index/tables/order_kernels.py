"""Stable sort orders of integers by counting their digits: several times faster than by comparison.

Operations: O(keys) for every eleven bits of the range of the keys.
"""

from __future__ import annotations

import numpy as np

from index.batches import Ints
from safe_region.jit import kernel

_BITS = 11
_MASK = (1 << _BITS) - 1
_KEY_BITS = 63


@kernel
def order_of(keys: Ints, before: Ints) -> Ints:
    """Return the rows in the order of their keys; those of equal keys in the order of `before`.

    Parameters
    ----------
    keys
        Of all rows. They may be negative, but must lie within 2^63 of each other.
    before
        All rows, in an order; it is overwritten.

    Returns
    -------
    ndarray
        One of two arrays: `before`, or a new one.
    """
    count = keys.shape[0]
    if not count:
        return before
    least, most = keys[0], keys[0]
    for i in range(count):
        least = min(least, keys[i])
        most = max(most, keys[i])
    span = most - least
    after = np.empty_like(before)
    starts = np.empty(_MASK + 1, dtype=np.int64)
    shift = 0
    while shift < _KEY_BITS and span >> shift:  # the last digit may have fewer bits
        starts[:] = 0
        for i in range(count):
            starts[((keys[i] - least) >> shift) & _MASK] += 1
        total = 0
        for digit in range(_MASK + 1):
            total, starts[digit] = total + starts[digit], total
        for i in range(count):
            row = before[i]
            digit = ((keys[row] - least) >> shift) & _MASK
            after[starts[digit]] = row
            starts[digit] += 1
        before, after = after, before
        shift += _BITS
    return before
