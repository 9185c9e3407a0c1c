"""The motion of clauses: the input of the costs of section 4.3.1.

Operations: O(1) a row, without a kernel.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from index.batches import Boxes, Floats
from index.tables.growth import longer

_MEMORY = 100_000
"""After this many objects, or moves of each clause, earlier ones have half the weight."""


class Motions:
    """The last displacement of each clause, and the number of moves of a clause per arriving object.

    Objects count from the first move on: earlier ones were present, however long ago they arrived. Moves
    count when the next objects arrive, so that both are of the same time.
    """

    def __init__(self) -> None:
        self.displacements: Floats = np.zeros((1, 2))
        """By slot: x and y in metres."""
        self.pace: Floats = np.zeros(1)
        """Moves of a clause for each object: 1 / (T_upd r_m)."""
        self._moves = 0.0
        self._objects = 0.0
        self._moves_since = 0.0
        """Moves since objects last arrived."""

    def reserve(self, slot_count: int) -> None:
        """Make space for this many slots."""
        if len(self.displacements) < slot_count:
            self.displacements = longer(self.displacements, slot_count)

    def stand(self, slots: npt.NDArray[np.int32]) -> None:
        """Record new clauses."""
        if len(slots):
            self.reserve(int(slots.max()) + 1)
            self.displacements[slots] = 0.0

    def move(
        self, slots: npt.NDArray[np.int32], rows: npt.NDArray[np.void], boxes: Boxes, count: int
    ) -> None:
        """Record clauses that get new boxes; `rows` has the old ones, of `count` clauses."""
        if len(slots):
            self.reserve(len(rows))
            x_m, y_m = (
                rows["x1_m"][slots] + rows["x2_m"][slots],
                rows["y1_m"][slots] + rows["y2_m"][slots],
            )
            self.displacements[slots, 0] = 0.5 * (boxes.x1_m + boxes.x2_m - x_m)
            self.displacements[slots, 1] = 0.5 * (boxes.y1_m + boxes.y2_m - y_m)
            self._moves_since += len(slots) / count

    def come(self, object_count: int) -> None:
        """Record arriving objects."""
        self._moves += self._moves_since
        self._moves_since = 0.0
        if self._moves == 0.0 or not object_count:
            return
        self._objects += object_count
        if max(self._objects, self._moves) > _MEMORY:
            self._objects /= 2.0
            self._moves /= 2.0
        self.pace[0] = self._moves / self._objects

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        return self.displacements.nbytes
