"""Base of indexes with a geometry library: a table whose rows have boxes in shapely's STRtree."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import shapely

from index.batches import Boxes
from index.contracts import InconsistentIndexError
from index.tables import SlotTable
from index.tables.slots import Slots

_BOX_BYTES = 500
"""Bytes of a box and its place in the tree: the growth of a process for each of a million."""


class BoxTree:
    """Rows with boxes. The tree is immutable: it is rebuilt before a query, O(n log n).

    Parameters
    ----------
    dtype
        Type of the rows.
    """

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self.candidate_count = 0
        """Rows that were verified so far."""
        self.table = SlotTable(np.dtype(dtype))
        self.boxed: Slots = np.empty(0, dtype=np.int32)
        """Rows in the tree, in its order."""
        self.apart: Slots = np.empty(0, dtype=np.int32)
        """Rows without a box."""
        self.is_stale = False
        self._tree: Any = shapely.STRtree([])

    def __len__(self) -> int:
        return len(self.table)

    def boxes(self, used: Slots) -> tuple[Slots, Boxes]:
        """Return the rows that have a box, and their boxes."""
        raise NotImplementedError

    def tree(self) -> Any:  # noqa: ANN401 - shapely has no types for its methods
        """Return the tree of all rows that have a box."""
        if self.is_stale:
            used = self.table.used()
            self.boxed, boxes = self.boxes(used)
            self.apart = np.setdiff1d(used, self.boxed)
            shapes = shapely.box(boxes.x1_m, boxes.y1_m, boxes.x2_m, boxes.y2_m)
            self._tree = shapely.STRtree(shapes)
            self.is_stale = False
        return self._tree

    def memory_bytes(self) -> int:
        """Return the size of the arrays, and the approximate size of the boxes."""
        return self.table.memory_bytes() + _BOX_BYTES * len(self.boxed)

    def check(self) -> None:
        """Verify the table, and that every row is in the tree or among the rows without a box."""
        self.table.check()
        known = np.sort(np.concatenate([self.boxed, self.apart]))
        if not self.is_stale and not np.array_equal(known, self.table.used()):
            raise InconsistentIndexError("the tree does not match the rows")
