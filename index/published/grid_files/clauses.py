"""Clauses in grid files: the SubIndexes of the SS-Index and the KK-Index.

Operations: insert O(cells that a box intersects) a clause; remove O(entries of the lists it is in), move
both; match O(keywords * cells that an object intersects) look-ups an object, and the clauses in the lists
found. See `index.published.grid_files` for the plan.
"""

from __future__ import annotations

import numpy as np

from index.batches import Boxes, Ints, KeywordLists, Matches, ObjectBatch
from index.published.clause_cells.scan_kernels import published_of
from index.published.grid_files import clause_kernels
from index.published.grid_files.invariants import check_clauses
from index.published.grid_files.match_kernels import match
from index.published.grid_files.sides import SIDE, long_of
from index.published.postings import layout as L
from index.published.postings import word_kernels
from index.published.postings.arrays import PostingArrays
from index.square import Square
from index.tables.buckets import square_of
from index.tables.clauses import columns_of, validate_boxes, validate_clauses
from index.tables.matches import collected

_LOOK_MIN = 64
"""Clauses that are placed at least before the fit of the square is tested again."""


class _GridClauses:
    """See `index.contracts.ClauseIndex`."""

    def __init__(self, shape: int, square: Square | None, side: int) -> None:
        self._arrays = PostingArrays(
            L.CLAUSE_DTYPE,
            L.CLAUSE_ENTRY_DTYPE,
            shape=shape,
            side=side,
            long=long_of(side),
            square=square or Square(0.0, 0.0, 1.0),
        )
        self._table = self._arrays.table
        self._is_fixed = square is not None
        self._placed_count = 0
        self.candidate_count = 0
        """The number of clauses that `match` has tested one by one so far."""

    def __len__(self) -> int:
        return len(self._table)

    def insert(self, ids: Ints, boxes: Boxes, required: KeywordLists) -> None:
        """Add clauses."""
        validate_clauses(ids, boxes, required)
        slots = self._table.append(ids, required, columns_of(boxes))
        if not self._fit_square(len(slots)):
            self._arrays.run(word_kernels.count_words, slots)
            self._arrays.run(clause_kernels.place, slots)

    def move(self, ids: Ints, boxes: Boxes) -> None:
        """Change the boxes of clauses."""
        validate_boxes(ids, boxes)
        slots = self._table.distinct_slots(ids)
        new = np.stack(list(columns_of(boxes).values()), axis=1)
        self._arrays.run(lambda files, some, cursor: clause_kernels.move(files, some, new, cursor), slots)
        self._fit_square(len(slots))

    def remove(self, ids: Ints) -> None:
        """Remove clauses."""
        slots = self._table.take(ids)
        clause_kernels.take_out(self._arrays.now(), slots)
        word_kernels.release_words(self._arrays.now(), slots)
        self._table.discard(slots)

    def match(self, objects: ObjectBatch) -> Matches:
        """Find the clauses that match each object."""
        published = published_of(objects)
        files = self._arrays.now()
        found = collected(
            len(objects), lambda row, offsets, found: match(files, published, row, offsets, found)
        )
        self.candidate_count += int(files.meta[L.CANDIDATES])
        files.meta[L.CANDIDATES] = 0
        return found

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        return self._arrays.memory_bytes()

    def check(self) -> None:
        """Verify every invariant. O(entries) in Python.

        Raises
        ------
        InconsistentIndexError
            If an invariant is violated; the message names it.
        """
        self._table.check()
        check_clauses(self._arrays.now(), self._table)

    def _fit_square(self, placed_count: int) -> bool:
        """Test from time to time if the square suits the clauses; return whether all were placed anew."""
        self._placed_count += placed_count
        if self._is_fixed or self._placed_count < max(_LOOK_MIN, len(self)):
            return False
        self._placed_count = 0
        used = self._table.used()
        rows = self._table.rows[used]
        square = square_of(rows["x1_m"] / 2 + rows["x2_m"] / 2, rows["y1_m"] / 2 + rows["y2_m"] / 2)
        if self._arrays.square.fits(square):
            return False
        self._arrays.plant(square)
        self._arrays.run(word_kernels.count_words, used)
        self._arrays.run(clause_kernels.place, used)
        return True


class SsClauses(_GridClauses):
    """The SubIndex of the SS-Index: a grid, in each cell a list by ranked keyword.

    Parameters
    ----------
    square
        The square of the grid; by default it is laid about the clauses.
    side
        Cells of a row.
    """

    def __init__(self, square: Square | None = None, side: int = SIDE) -> None:
        super().__init__(L.GRID_OF_LISTS, square, side)


class KkClauses(_GridClauses):
    """The SubIndex of the KK-Index: a list by ranked keyword, a long one divided by a grid.

    Parameters
    ----------
    square
        The square of the grids; by default it is laid about the clauses.
    side
        Cells of a row.
    """

    def __init__(self, square: Square | None = None, side: int = SIDE) -> None:
        super().__init__(L.LISTS_OF_GRIDS, square, side)
