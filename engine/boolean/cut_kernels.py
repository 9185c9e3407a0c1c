"""What is held of that which was found for subscriptions, where it may be too much."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from index.batches import Floats, Ints
from safe_region.jit import kernel

Flags = npt.NDArray[np.bool_]

HELD = 0
"""All that was found is held."""
CUT = 1
"""No more than what is nearer than a bound is held: the slack is to be cut."""
TOO_MANY = 2
"""Those nearest are held, of what lies within the range itself."""


class Found(NamedTuple):
    """What was found: of row i the pairs `offsets[i] : offsets[i + 1]`."""

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
    """Decide, for each row, what is held.

    Parameters
    ----------
    found
        All that is within the range and the slack; or so much of the nearest that there are too many.
    inner_m
        How far what is within the range itself is at most (`nearest_m`).
    was_capped
        Whether each row had too many.
    limits
        The most that is held; with fewer than the second a row that had too many has not any more; and
        how many are left where a slack is cut.
    verdicts
        Written: HELD, CUT or TOO_MANY.
    bound_m, bound_id
        Written with TOO_MANY: the farthest that is held, infinite if all that is within the range is;
        and with CUT how far the nearest is that is not to be held (`nearest_m`).
    kept
        Written, but for CUT.
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
