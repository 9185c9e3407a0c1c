"""The inverted grid."""

from __future__ import annotations

from typing import Any

import numpy as np

from index.batches import Boxes, Floats, Ints, KeywordLists, Matches, ObjectBatch
from index.inverted_grid import layout as L
from index.inverted_grid import match_kernels, update_kernels
from index.inverted_grid.invariants import check_grid
from index.inverted_grid.layout import Grid, Numbers
from index.inverted_grid.match_kernels import Searched
from index.inverted_grid.step_kernels import STEP_MAX
from index.square import Square
from index.tables import SlotTable
from index.tables.clauses import columns_of, validate_boxes, validate_clauses
from index.tables.free_kernels import NOTHING
from index.tables.growth import as_long, longer
from index.tables.runs import lengthened, new_runs

_WORDS_MIN = 64
_NODES_MIN = 64
_RUNS_MIN = 256
_WORK_MIN = 256
_PENDING_MIN = 64
_FOUND_MIN = 256
_LISTS_MIN = 3 << 9
_WORLD_M = 30_000_000.0
"""Half a side of the frame if none is given: it contains the Earth."""


class InvertedGrid:
    """See `index.contracts.ClauseIndex`.

    Parameters
    ----------
    square
        The square that contains most boxes and objects; by default the whole Earth, in steps of 6 cm.
    """

    def __init__(self, square: Square | None = None) -> None:
        self._table = SlotTable(L.CLAUSE_DTYPE, with_places=True)
        self._meta: Ints = np.zeros(L.META_COUNT, dtype=np.int64)
        self._found: Ints = np.empty(_FOUND_MIN, dtype=np.int64)
        self._searched: Searched | None = None
        self._items = np.zeros(L.BLOCK, dtype=L.ITEM_DTYPE)
        self._lists: Ints = np.zeros(_LISTS_MIN, dtype=np.int64)
        self._grid = Grid(
            np.zeros(_WORDS_MIN, dtype=np.int32),
            np.zeros(_WORDS_MIN, dtype=np.int32),
            np.zeros(_NODES_MIN, dtype=L.NODE_DTYPE),
            np.zeros(_NODES_MIN, dtype=np.int32),
            np.full(L.SPANS, NOTHING, dtype=np.int32),
            new_runs(L.ENTRY_DTYPE, _RUNS_MIN),
            self._table.rows,
            self._table.pool,
            self._table.places,
            _frame_of(square or Square(0.0, 0.0, _WORLD_M)),
            np.zeros(_WORK_MIN, dtype=np.int32),
            np.zeros(_PENDING_MIN, dtype=np.int32),
            self._meta,
        )

    def __len__(self) -> int:
        return len(self._table)

    @property
    def candidate_count(self) -> int:
        """Return the number of clauses verified so far."""
        return int(self._meta[L.CANDIDATES])

    @property
    def scanned_count(self) -> int:
        """Return the number of entries scanned so far."""
        return int(self._meta[L.SCANNED])

    def insert(self, ids: Ints, boxes: Boxes, required: KeywordLists) -> None:
        """Add clauses."""
        validate_clauses(ids, boxes, required)
        if len(ids) == 0:
            return
        slots = self._table.append(ids, required, columns_of(boxes))
        words = int(required.ids.max()) + 1
        roots = longer(self._grid.roots, words)
        counts = as_long(self._grid.word_counts, len(roots))
        self._change(roots=roots, word_counts=counts)
        self._adopt_table()
        self._meta[L.CLAUSES] += len(ids)
        update_kernels.count_words(self._grid, slots, 1)
        self._enter(slots)

    def move(self, ids: Ints, boxes: Boxes) -> None:
        """Change the boxes of clauses."""
        validate_boxes(ids, boxes)
        slots = self._table.distinct_slots(ids)
        self._leave(slots)
        for name, values in columns_of(boxes).items():
            self._table.rows[name][slots] = values
        self._enter(slots)

    def remove(self, ids: Ints) -> None:
        """Remove clauses."""
        slots = self._table.take(ids)
        self._leave(slots)
        update_kernels.count_words(self._grid, slots, -1)
        self._meta[L.CLAUSES] -= len(ids)
        self._table.discard(slots)
        self._adopt_table()

    def match(self, objects: ObjectBatch) -> Matches:
        """Find the clauses that each object matches."""
        count = len(objects)
        keywords = objects.keywords
        box = objects.boxes
        if box is None:
            x_m, y_m = objects.x_m, objects.y_m
            corners = (x_m, y_m, x_m, y_m)
        else:
            corners = (box.x1_m, box.y1_m, box.x2_m, box.y2_m)
        offsets = np.zeros(count + 1, dtype=np.int64)
        row = 0
        while True:
            searched = self._searched or self._for_match()
            status = match_kernels.match(
                *searched, *corners, keywords.offsets, keywords.ids, row, offsets, self._found
            )
            row, is_short = status >> 1, status & 1
            if row == count:
                return Matches(offsets, self._found[: offsets[count]].copy())
            needed = int(self._meta[L.NEEDED])
            if is_short:
                self._lists = longer(self._lists, needed, 3)
                self._searched = None
            else:
                self._found = longer(self._found, needed)

    def check(self) -> None:
        """Verify every invariant. Slow."""
        self._table.check()
        check_grid(self._grid, self._table)

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        grid = self._grid
        own = (
            grid.roots,
            grid.word_counts,
            grid.nodes,
            grid.parents,
            grid.free_nodes,
            *grid.entries,
            grid.work,
            grid.pending,
            grid.meta,
            self._found,
            self._items,
            self._lists,
        )
        return sum(array.nbytes for array in own) + self._table.memory_bytes()

    def _enter(self, slots: Numbers) -> None:
        rarest = np.empty(len(slots), dtype=np.int32)
        update_kernels.rank_words(self._grid, slots, rarest)
        if len(slots) > 1:
            slots = slots[np.argsort(rarest, kind="stable")]
        cursor = np.zeros(3, dtype=np.int64)
        while (status := update_kernels.insert(self._grid, slots, cursor)) != L.DONE:
            self._grow(status)

    def _leave(self, slots: Numbers) -> None:
        cursor = np.zeros(1, dtype=np.int64)
        while (status := update_kernels.remove(self._grid, slots, cursor)) != L.DONE:
            self._grow(status)

    def _change(self, **arrays: Any) -> None:  # noqa: ANN401 - arrays of several types, and runs
        self._grid = self._grid._replace(**arrays)
        self._searched = None

    def _for_match(self) -> Searched:
        grid = self._grid
        self._searched = Searched(
            grid.roots,
            grid.nodes,
            grid.parents,
            grid.entries.records,
            grid.clauses,
            grid.pool,
            grid.frame,
            grid.meta,
            self._items,
            self._lists,
        )
        return self._searched

    def _adopt_table(self) -> None:
        """Use the arrays of the table, which may have been replaced."""
        table = self._table
        if self._grid.clauses is not table.rows or self._grid.pool is not table.pool:
            self._change(clauses=table.rows, pool=table.pool, ranks=table.places)

    def _grow(self, status: int) -> None:
        """Lengthen the arrays that a kernel has filled."""
        grid = self._grid
        needed = int(self._meta[L.NEEDED])
        if status == L.RUNS_FULL:
            self._change(entries=lengthened(grid.entries, needed))
        elif status == L.NODES_FULL:
            nodes = longer(grid.nodes, len(grid.nodes) + needed)
            self._change(nodes=nodes, parents=as_long(grid.parents, len(nodes)))
        elif status == L.PENDING_FULL:
            self._change(pending=longer(grid.pending, needed))
        else:
            self._change(work=longer(grid.work, needed))


def _frame_of(square: Square) -> Floats:
    """Return the start of the steps, and the number of steps per metre."""
    return np.array(
        [
            square.x_m - square.half_m,
            square.y_m - square.half_m,
            STEP_MAX / (2.0 * square.half_m),
        ]
    )
