"""Collecting matches from kernels, and the difference of two sets of matches.

A kernel fills an array row by row, and continues with a larger one when it was too short.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from index.batches import Boxes, Ints, KeywordLists, Matches
from index.tables.within_kernels import BoxQueries

_ROOM_MIN = 64
_ROOM_A_ROW = 4

Fill = Callable[[int, Ints, Ints], int]
"""Fills `offsets` and `found` from a row on; returns the first row that is not done. The offset at the
end of that row is the capacity that it needs."""


def collected(row_count: int, fill: Fill) -> Matches:
    """Return the matches of this many rows. Only a row that exceeds the capacity is processed again."""
    offsets = np.zeros(row_count + 1, dtype=np.int64)
    found = np.empty(_ROOM_MIN + _ROOM_A_ROW * row_count, dtype=np.int64)
    row = fill(0, offsets, found)
    while row < row_count:
        larger = np.empty(max(2 * len(found), int(offsets[row + 1])), dtype=np.int64)
        larger[: offsets[row]] = found[: offsets[row]]
        found = larger
        row = fill(row, offsets, found)
    return Matches(offsets, found[: offsets[-1]])


def box_queries(required: KeywordLists, boxes: Boxes) -> BoxQueries:
    """Return the arrays of a batch of boxes with keywords, as kernels take them."""
    return BoxQueries(required.offsets, required.ids, boxes.x1_m, boxes.y1_m, boxes.x2_m, boxes.y2_m)


def without(these: Matches, those: Matches) -> Matches:
    """Return, row by row, the matches in the first and not in the second. O(matches log matches)."""
    known, numbers = np.unique(np.concatenate([these.ids, those.ids]), return_inverse=True)
    rows = np.arange(len(these.offsets) - 1)
    keys = numbers + np.concatenate(
        [np.repeat(rows, np.diff(one.offsets)) for one in (these, those)]
    ) * len(known)
    split = len(these.ids)
    is_kept = ~np.isin(keys[:split], keys[split:])
    kept_rows = np.repeat(rows, np.diff(these.offsets))[is_kept]
    return Matches.of(np.bincount(kept_rows, minlength=len(rows)), these.ids[is_kept])
