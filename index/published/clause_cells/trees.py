"""The arrays of clauses in cells: their creation and growth, and the operations of both structures.

See `index.published.quad_inverted` and `index.published.inverted_quad`, which differ in the location of
lists and in the search for them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from index.batches import Boxes, Ints, KeywordLists, Matches, ObjectBatch
from index.published.clause_cells import cell_kernels, list_kernels, placing_kernels, update_kernels
from index.published.clause_cells import layout as L
from index.published.clause_cells import workload_kernels as workload
from index.published.clause_cells.invariants import check
from index.published.clause_cells.layout import Cells
from index.published.clause_cells.scan_kernels import Published, published_of
from index.square import Square
from index.tables import SlotTable
from index.tables.buckets import square_of
from index.tables.clauses import columns_of, validate_boxes, validate_clauses
from index.tables.growth import as_long, longer
from index.tables.id_map import new_cells, rehashed
from index.tables.matches import collected
from index.tables.quad_kernels import GROUP_FREE, NO_NODE
from index.tables.runs import lengthened, new_runs
from index.tables.slots import Slots

_ROOM_MIN = 16
_LOOK_MIN = 64
"""Clauses that are placed at least before the fit of the root is tested again."""

LIFETIME = 100_000.0
"""Objects between two updates of a clause, if nothing else is known. With 100,000 clauses of boxes up to
a tenth of the space's side, an object is tested against 72 of them for 10,000, 31 for this, 18 for a
million; a clause takes 204, 257 and 419 bytes in the IQ-Tree, 229, 414 and 1,041 in the RQ-Tree."""

VERIFY, ENTER, PASS = 1.0, 8.0, 2.0
"""The costs of testing a clause, of inserting and removing an entry, and of a cell on the path there:
roughly their times, in units of some 50 ns."""

Match = Callable[[Cells, Published, int, Ints, Ints], int]


class CellTrees:
    """A clause index over quadtrees of cells.

    Parameters
    ----------
    match
        The kernel that matches objects.
    keyword_first
        Whether each key has a tree; otherwise there is one.
    square
        The roots; by default they are laid about the clauses.
    lifetime
        Objects between two updates of a clause, for the cost model.
    """

    def __init__(
        self, match: Match, *, keyword_first: bool, square: Square | None, lifetime: float
    ) -> None:
        if not lifetime > 0.0:
            raise ValueError(f"lifetime is {lifetime:g}, must be positive")
        self._match = match
        self._keyword_first = keyword_first
        self._is_fixed = square is not None
        self._prices = np.zeros(placing_kernels.PRICES)
        self._prices[placing_kernels.LIFETIME] = lifetime
        self._prices[placing_kernels.VERIFY] = VERIFY
        self._prices[placing_kernels.ENTER] = ENTER
        self._prices[placing_kernels.PASS] = PASS
        self._table = SlotTable(L.CLAUSE_DTYPE)
        self._placed_count = 0
        self.candidate_count = 0
        """The number of clauses that `match` has tested one by one so far."""
        self._plant(square or Square(0.0, 0.0, 1.0))

    def __len__(self) -> int:
        return len(self._table)

    def insert(self, ids: Ints, boxes: Boxes, required: KeywordLists) -> None:
        """Add clauses. O(cells drafted) each, amortised."""
        validate_clauses(ids, boxes, required)
        columns: dict[str, npt.NDArray[np.generic]] = {**columns_of(boxes)}
        columns["home_count"] = np.zeros(len(ids), dtype=np.int32)
        slots = self._table.append(ids, required, columns)
        if not self._fit_root(len(slots)):
            self._enter(slots)

    def move(self, ids: Ints, boxes: Boxes) -> None:
        """Change the boxes of clauses. O(cells drafted, and entries of the lists they leave) each."""
        validate_boxes(ids, boxes)
        slots = self._table.distinct_slots(ids)
        update_kernels.take_out(self._arrays(), slots)
        for name, values in columns_of(boxes).items():
            self._table.rows[name][slots] = values
        if not self._fit_root(len(slots)):
            self._place(slots)

    def remove(self, ids: Ints) -> None:
        """Remove clauses. O(entries of the lists they leave) each."""
        slots = self._table.take(ids)
        update_kernels.take_out(self._arrays(), slots)
        update_kernels.release(self._arrays(), slots)
        self._table.discard(slots)

    def match(self, objects: ObjectBatch) -> Matches:
        """Find the clauses that match each object; count the objects for the cost model."""
        published = published_of(objects)
        arrays = (self._arrays(), published)
        found = collected(
            len(objects), lambda row, offsets, found: self._match(*arrays, row, offsets, found)
        )
        self.candidate_count += int(self._cells.meta[cell_kernels.CANDIDATES])
        self._cells.meta[cell_kernels.CANDIDATES] = 0
        return found

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        cells = self._cells
        own = (cells.cells, cells.lists, cells.list_keys, cells.list_values, *cells.entries, *cells.homes)
        rest = (cells.words, cells.word_keys, cells.word_values, cells.seen, cells.drafts, cells.meta)
        return sum(array.nbytes for array in (*own, *rest)) + self._table.memory_bytes()

    def check(self) -> None:
        """Verify every invariant. O(clauses * cells) in Python.

        Raises
        ------
        InconsistentIndexError
            If an invariant is violated; the message names it.
        """
        self._table.check()
        check(self._arrays(), self._table)

    def _arrays(self) -> Cells:
        """Return all arrays, as kernels take them."""
        return self._cells._replace(clauses=self._table.rows, pool=self._table.pool)

    def _plant(self, square: Square) -> None:
        """Create the arrays without entries."""
        meta = np.zeros(cell_kernels.META_SIZE, dtype=np.int64)
        meta[GROUP_FREE] = NO_NODE
        meta[cell_kernels.ROOT_FREE] = NO_NODE
        meta[cell_kernels.LIST_FREE] = list_kernels.NO_LIST
        meta[workload.WORD_FREE] = workload.NO_WORD
        meta[cell_kernels.KEYWORD_FIRST] = self._keyword_first
        meta[cell_kernels.ROOT] = NO_NODE
        self._square = square
        self._cells = Cells(
            self._table.rows,
            self._table.pool,
            np.zeros(_ROOM_MIN, dtype=L.CELL_DTYPE),
            np.zeros(_ROOM_MIN, dtype=L.LIST_DTYPE),
            *new_cells(2 * _ROOM_MIN),
            new_runs(L.ENTRY_DTYPE, _ROOM_MIN),
            new_runs(L.HOME_DTYPE, _ROOM_MIN),
            np.zeros(_ROOM_MIN, dtype=L.WORD_DTYPE),
            *new_cells(2 * _ROOM_MIN),
            np.zeros(workload.PYRAMID_SIZE, dtype=np.int64),
            np.zeros(placing_kernels.DRAFTS_MAX, dtype=L.DRAFT_DTYPE),
            np.array(square),
            self._prices,
            meta,
        )
        if not self._keyword_first:
            update_kernels.plant_one(self._cells)

    def _enter(self, slots: Slots) -> None:
        """Count new clauses, then place them: the most frequent keywords are known by then."""
        update_kernels.see_clauses(self._arrays(), slots)
        cursor = np.zeros(update_kernels.CURSOR_SIZE, dtype=np.int64)
        while (status := update_kernels.require(self._arrays(), slots, cursor)) != workload.DONE:
            self._grow(status)
        self._place(slots)

    def _place(self, slots: Slots) -> None:
        cursor = np.zeros(update_kernels.CURSOR_SIZE, dtype=np.int64)
        while (status := update_kernels.place(self._arrays(), slots, cursor)) != workload.DONE:
            self._grow(status)

    def _fit_root(self, placed_count: int) -> bool:
        """Test from time to time if the root suits the clauses; return whether all were placed again."""
        self._placed_count += placed_count
        if self._is_fixed or self._placed_count < max(_LOOK_MIN, len(self)):
            return False
        self._placed_count = 0
        used = self._table.used()
        rows = self._table.rows[used]
        square = square_of(rows["x1_m"] / 2 + rows["x2_m"] / 2, rows["y1_m"] / 2 + rows["y2_m"] / 2)
        if self._square.fits(square):
            return False
        self._table.rows["home_count"][used] = 0
        self._plant(square)
        self._enter(used)
        return True

    def _grow(self, status: int) -> None:
        """Lengthen the arrays that a kernel has filled."""
        cells = self._cells
        if status == cell_kernels.CELLS_FULL:
            rows = longer(cells.cells, len(cells.cells) + 4)
            lists = as_long(cells.lists, len(rows)) if self._keyword_first else cells.lists
            self._cells = cells._replace(cells=rows, lists=lists)
        elif status == list_kernels.LISTS_FULL:
            self._cells = cells._replace(lists=longer(cells.lists, len(cells.lists) + 1))
        elif status == list_kernels.LIST_KEYS_FULL:
            keys, values = rehashed(cells.list_keys, cells.list_values, 2 * len(cells.list_keys))
            self._cells = cells._replace(list_keys=keys, list_values=values)
        elif status == list_kernels.ENTRIES_FULL:
            self._cells = cells._replace(entries=lengthened(cells.entries))
        elif status == update_kernels.HOMES_FULL:
            self._cells = cells._replace(homes=lengthened(cells.homes))
        elif status == workload.WORDS_FULL:
            self._cells = cells._replace(words=longer(cells.words, len(cells.words) + 1))
        else:
            keys, values = rehashed(cells.word_keys, cells.word_values, 2 * len(cells.word_keys))
            self._cells = cells._replace(word_keys=keys, word_values=values)
