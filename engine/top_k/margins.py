"""Find the buffer size for positions known up to a margin, so that the device can stay silent.

A device within m of its anchor a may stay silent at any such place if reach > f_k(a) + 2 m: its k-th
length and its distance from the anchor are each at most m more than there.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from index.batches import Floats, Ints, Ranking
from safe_region.scoring.formulas import REACH_SLACK

Rows = npt.NDArray[np.bool_]

_STRICT = 1.0 - 2.0 * REACH_SLACK
"""Stricter than the device's own test, so that its rounding does not matter."""


def are_short(
    ranking: Ranking, count: Ints, k: Ints, margin_m: Floats | None, extra_max: int
) -> Rows | None:
    """Return which subscriptions need more than the requested `count` best; None if none does.

    Subscriptions with `extra_max` objects beyond k get no more. O(rows).
    """
    if margin_m is None or not margin_m.any():
        return None
    begin, end = ranking.offsets[:-1], ranking.offsets[1:]
    may_grow = count - 1 - k < extra_max
    # If fewer objects were found than requested, the reach is infinite.
    (rows,) = np.nonzero((margin_m > 0.0) & may_grow & (end - begin >= count))
    worst_m = ranking.length_m[begin[rows] + k[rows] - 1]
    reach_m = ranking.length_m[end[rows] - 1]
    short = np.zeros(len(count), dtype=np.bool_)
    short[rows] = reach_m * _STRICT <= worst_m + 2.0 * margin_m[rows]
    return short if short.any() else None
