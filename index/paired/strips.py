"""The strips that belong to only one of two boxes of a clause, for many clauses."""

from __future__ import annotations

import numpy as np

from index.batches import Boxes, Floats, Ints
from index.paired import difference_kernels as kernels
from index.tables.clauses import columns_of

_POINTS_ONLY: Floats = np.zeros(4)


def strips_of(old: Boxes, new: Boxes, same: Boxes) -> tuple[Boxes, Ints]:
    """Return boxes that cover the new and the old box, except the part that is the same in both.

    Parameters
    ----------
    old, new
        The boxes of each clause.
    same
        The results within this box, and in both boxes, are the same.

    Returns
    -------
    Boxes, array of int64
        Up to eight for each clause, and the row of the clause.
    """
    count = len(new)
    changes = kernels.Changes(table_of(old), table_of(new), table_of(same), _POINTS_ONLY)
    strips: Floats = np.empty((4, kernels.STRIPS_MAX * count))
    owners: Ints = np.empty(kernels.STRIPS_MAX * count, dtype=np.int64)
    strip_count = kernels.cut(changes, strips, owners)
    return Boxes(*(edge[:strip_count] for edge in strips)), owners[:strip_count] // 2


def table_of(boxes: Boxes) -> Floats:
    """Return boxes as rows."""
    return np.stack(list(columns_of(boxes).values()), axis=1)
