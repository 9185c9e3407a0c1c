"""Moving keyword lists together."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from index.batches import KeywordIds
from safe_region.jit import kernel


@kernel
def compact(rows: npt.NDArray[Any], pool: KeywordIds, packed: KeywordIds) -> int:
    """Copy the keyword lists of all rows, one behind the other; return how much they take."""
    end = 0
    for slot in range(rows.shape[0]):
        start = rows[slot]["keyword_start"]
        count = rows[slot]["keyword_count"]
        for i in range(count):
            packed[end + i] = pool[start + i]
        rows[slot]["keyword_start"] = end
        end += count
    return end
