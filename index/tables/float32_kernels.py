"""Conversion of float64 to float32, rounded to the side on which a bound stays valid.

Operations: each O(1).
"""

from __future__ import annotations

import math

import numpy as np

from safe_region.jit import leaf

_LARGEST = float(np.finfo(np.float32).max)


@leaf
def lower(value: float) -> float:
    """Return a number as float32, rounded down."""
    if abs(value) > _LARGEST:
        return _LARGEST if value > 0.0 else -math.inf
    found = np.float32(value)
    if float(found) > value:
        found = np.nextafter(found, np.float32(-np.inf))
    return float(found)


@leaf
def upper(value: float) -> float:
    """Return a number as float32, rounded up."""
    return -lower(-value)
