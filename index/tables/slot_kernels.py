"""Moving keyword lists together."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from index.batches import KeywordIds
from safe_region.jit import kernel

Places = npt.NDArray[np.int32]


@kernel
def compact(
    rows: npt.NDArray[Any], pool: KeywordIds, places: Places, packed: KeywordIds, packed_places: Places
) -> int:
    """Copy the keyword lists of all rows, one behind the other; return how much they take.

    The places beside them go along, if there are any.
    """
    has_places = places.shape[0] > 0
    end = 0
    for slot in range(rows.shape[0]):
        start = rows[slot]["keyword_start"]
        count = rows[slot]["keyword_count"]
        for i in range(count):
            packed[end + i] = pool[start + i]
            if has_places:
                packed_places[end + i] = places[start + i]
        rows[slot]["keyword_start"] = end
        end += count
    return end
