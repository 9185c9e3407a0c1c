"""Sums of squared weights in eight bits, rounded down: for bounds."""

from __future__ import annotations

import math

import numpy as np

from safe_region.jit import leaf

LARGEST = 255
"""The largest code."""

_STEPS = 16
"""Codes from one power of two to the next, from 1 on; smaller norms have the code 0."""
_NORMS = np.array([0.0, *(2.0 ** (step / _STEPS) for step in range(LARGEST))])


@leaf
def norm_of_code(code: int) -> float:
    """Return the least norm of a code."""
    return float(_NORMS[code])


@leaf
def code_of_norm(norm: float) -> int:
    """Return the code of a norm: the largest whose least norm does not exceed it."""
    if norm < 1.0:
        return 0
    code = min(int(math.log2(norm) * _STEPS) + 2, LARGEST)
    while _NORMS[code] > norm:
        code -= 1
    return code
