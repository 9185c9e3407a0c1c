"""Select the held objects from those that were found for subscriptions, if there may be too many."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from index.batches import Floats, Ints
from safe_region.jit import kernel

Flags = npt.NDArray[np.bool_]

HELD = 0
"""All found objects are held."""
CUT = 1
"""Only objects nearer than a bound are held: the slack is to be cut."""
TOO_MANY = 2
"""The nearest objects within the range itself are held."""


class Found(NamedTuple):
    """The found objects: row i has the pairs `offsets[i] : offsets[i + 1]`."""

    offsets: Ints
    ids: Ints
    distance_m: Floats
    nearest_m: Floats


@kernel
def cut(
    found: Found,
    inner_m: Floats,
    was_capped: Flags,
    limits: tuple[int, int, int],
    verdicts: npt.NDArray[np.int8],
    bound_m: Floats,
    bound_id: Ints,
    kept: Flags,
) -> None:
    """Decide for each row which objects are held.

    Parameters
    ----------
    found
        All objects within the range and the slack; or so many of the nearest that there are too many.
    inner_m
        The largest distance of an object within the range itself (`nearest_m`).
    was_capped
        Whether each row had too many.
    limits
        The most that are held; the number below which a row that had too many no longer has; and the
        number that a cut slack leaves.
    verdicts
        Output: HELD, CUT or TOO_MANY.
    bound_m, bound_id
        Output. With TOO_MANY, the farthest held object, infinite if all within the range are held. With
        CUT, the distance of the nearest object that is not to be held (`nearest_m`).
    kept
        Output, except for CUT.
    """
    most, least, kept_by_cut = limits
    for row in range(found.offsets.shape[0] - 1):
        start, stop = found.offsets[row], found.offsets[row + 1]
        inner = 0
        for i in range(start, stop):
            kept[i] = found.nearest_m[i] <= inner_m[row]
            inner += kept[i]
        bound_m[row], bound_id[row] = np.inf, np.iinfo(np.int64).max
        if inner > most or (was_capped[row] and inner >= least):
            verdicts[row] = TOO_MANY
            if inner > most:
                inside = np.flatnonzero(kept[start:stop]) + start
                farthest_m = np.partition(found.distance_m[inside], most - 1)[most - 1]
                nearer = np.count_nonzero(found.distance_m[inside] < farthest_m)
                ids = np.sort(found.ids[inside[found.distance_m[inside] == farthest_m]])
                bound_m[row], bound_id[row] = farthest_m, ids[most - nearer - 1]
            for i in range(start, stop):
                away_m = found.distance_m[i]
                kept[i] &= away_m < bound_m[row] or (
                    away_m == bound_m[row] and found.ids[i] <= bound_id[row]
                )
        elif stop - start > most:
            verdicts[row] = CUT
            last = max(inner, kept_by_cut)
            bound_m[row] = np.partition(found.nearest_m[start:stop], last)[last]
        else:
            verdicts[row] = HELD
            kept[start:stop] = True
