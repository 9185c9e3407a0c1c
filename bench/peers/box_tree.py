"""What indexes of a geometry library share: a table whose rows have boxes in shapely's STRtree."""

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
"""Of a box and its place in the tree: what a process grew by for each of a million."""


class BoxTree:
    """Rows with boxes. The tree cannot be changed: it is built again before a query, O(n log n).

    Parameters
    ----------
    dtype
        Of the rows.
    """

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self.candidate_count = 0
        """How many rows were verified so far."""
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
        """Return which of the rows have a box, and their boxes."""
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
        """Size of the arrays, and about that of the boxes."""
        return self.table.memory_bytes() + _BOX_BYTES * len(self.boxed)

    def check(self) -> None:
        """Verify the table, and that every row is in the tree or apart."""
        self.table.check()
        known = np.sort(np.concatenate([self.boxed, self.apart]))
        if not self.is_stale and not np.array_equal(known, self.table.used()):
            raise InconsistentIndexError("the tree does not hold the rows")
