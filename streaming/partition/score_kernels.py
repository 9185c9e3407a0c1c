"""Scores of pairs of an object and a stationary subscription. O(1) a pair."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from index.batches import Floats, Ints
from index.tables.prefetch_kernels import prefetch
from index.tables.slots import Slots
from safe_region.jit import kernel

Rows = npt.NDArray[Any]

_AHEAD = 8
"""The kernel prefetches the memory for the turn that is this many turns ahead."""


@kernel
def scores_of(
    objects: Rows,
    subscriptions: Rows,
    items: Slots,
    owners: Slots,
    r_m: Floats,
    rows: Ints,
    maxdist_m: float,
    scores: Floats,
) -> None:
    """Write the scores of pairs: smaller is better, 1 is the worst possible score.

    Parameters
    ----------
    objects, subscriptions
        The tables.
    items, owners
        The slots of each pair in the tables.
    r_m
        The text distance in metres, of all rows.
    rows
        The row of each pair.
    maxdist_m
        The longest distance.
    scores
        Scores of all rows; the scores of the pairs are written.
    """
    count = rows.shape[0]
    for pair in range(count):
        if pair + _AHEAD < count:
            prefetch(objects, items[pair + _AHEAD])
            prefetch(subscriptions, owners[pair + _AHEAD])
        item, owner = objects[items[pair]], subscriptions[owners[pair]]
        dx, dy = owner["x_m"] - item["x_m"], owner["y_m"] - item["y_m"]
        length_m = np.sqrt(dx * dx + dy * dy) + r_m[rows[pair]]
        scores[rows[pair]] = length_m / (maxdist_m + owner["weight_m"])
