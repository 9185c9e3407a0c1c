"""Compaction of keyword lists."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from index.batches import Ints, KeywordIds
from safe_region.jit import kernel

Places = npt.NDArray[np.int32]


@kernel
def compact(
    starts: Ints,
    counts: npt.NDArray[np.int32],
    pool: KeywordIds,
    places: Places,
    packed: KeywordIds,
    packed_places: Places,
) -> int:
    """Copy keyword lists contiguously, and set their starts; return their total length.

    The places beside them are copied as well, if there are any. Starts and counts are columns of rows,
    which have many dtypes: with rows this would be compiled for each.
    """
    has_places = places.shape[0] > 0
    end = 0
    for slot in range(starts.shape[0]):
        start = starts[slot]
        count = counts[slot]
        for i in range(count):
            packed[end + i] = pool[start + i]
            if has_places:
                packed_places[end + i] = places[start + i]
        starts[slot] = end
        end += count
    return end
