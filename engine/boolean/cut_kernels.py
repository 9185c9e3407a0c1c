"""Select the held objects from those that were found for subscriptions, if there may be too many.

A heap keeps the nearest: with numba's own `partition` and `sort` this kernel took nine times as long to
compile.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from index.batches import Floats, Ints
from index.tables.selection_kernels import offer
from safe_region.jit import kernel, leaf

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


_LARGEST_ID = np.iinfo(np.int64).max


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
    room = 0
    for row in range(found.offsets.shape[0] - 1):
        room = max(room, found.offsets[row + 1] - found.offsets[row])
    room = min(room, most + 1)
    heap = np.empty(room), np.empty(room, dtype=np.int64), np.empty(room)
    for row in range(found.offsets.shape[0] - 1):
        start, stop = found.offsets[row], found.offsets[row + 1]
        inner = 0
        for i in range(start, stop):
            kept[i] = found.nearest_m[i] <= inner_m[row]
            inner += kept[i]
        bound_m[row], bound_id[row] = np.inf, _LARGEST_ID
        if inner > most or (was_capped[row] and inner >= least):
            verdicts[row] = TOO_MANY
            if inner > most:
                bound_m[row], bound_id[row] = _farthest_of_least(
                    heap, most, found.distance_m[start:stop], found.ids[start:stop], kept[start:stop]
                )
            for i in range(start, stop):
                away_m = found.distance_m[i]
                kept[i] &= away_m < bound_m[row] or (
                    away_m == bound_m[row] and found.ids[i] <= bound_id[row]
                )
        elif stop - start > most:
            verdicts[row] = CUT
            kept[start:stop] = True
            bound_m[row], _ = _farthest_of_least(
                heap,
                max(inner, kept_by_cut) + 1,
                found.nearest_m[start:stop],
                found.ids[start:stop],
                kept[start:stop],
            )
        else:
            verdicts[row] = HELD
            kept[start:stop] = True


@leaf
def _farthest_of_least(
    heap: tuple[Floats, Ints, Floats], count: int, distance_m: Floats, ids: Ints, are_offered: Flags
) -> tuple[float, int]:
    """Return the last of the `count` least pairs of distance and id, of those that are offered."""
    least_m, least_ids, unused = heap[0][:count], heap[1][:count], heap[2][:count]
    size = 0
    for i in range(ids.shape[0]):
        if are_offered[i]:
            size = offer(least_m, least_ids, unused, size, distance_m[i], ids[i], 0.0)
    return least_m[0], least_ids[0]
