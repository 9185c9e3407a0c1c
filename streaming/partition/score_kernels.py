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
"""What so many turns later is needed of memory is asked for before."""


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
    """Write the scores of pairs: smaller is better, 1 is the worst there can be.

    Parameters
    ----------
    objects, subscriptions
        Their tables.
    items, owners
        The slots of each pair there.
    r_m
        Metres that a text distance is worth, of all rows.
    rows
        Of each pair.
    maxdist_m
        The longest distance.
    scores
        Of all rows; gets those of the pairs.
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
