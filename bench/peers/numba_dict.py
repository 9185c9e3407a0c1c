"""The dict index compiled: a clause index that is a hash of (rarest keyword, cell) to runs of entries.

Operations: insert, move and remove O(cells of the box), and a scan of their lists; match O(clauses of the
object's keywords in its cell) an object.

Plan: as `clause_dict`, with open addressing in place of the dict and one table of clauses. A list has the
box of each clause next to its number, so that most clauses that do not match are skipped in one run of
memory.
"""

from __future__ import annotations

import numpy as np

from bench.peers import numba_dict_kernels as kernels
from bench.peers.clause_dict import cell_of_boxes
from bench.peers.numba_dict_kernels import Arrivals, Lists
from index.batches import Boxes, Ints, KeywordLists, Matches, ObjectBatch
from index.contracts import InconsistentIndexError
from index.tables import SlotTable
from index.tables.clauses import columns_of, validate_boxes, validate_clauses
from index.tables.growth import longer
from index.tables.id_map import new_cells, rehashed
from index.tables.runs import check_runs, lengthened, new_runs
from index.tables.slots import Slots

_KEYS_MIN = 64
_RUNS_MIN = 256
_FOUND_MIN = 256


class NumbaDict:
    """See `index.contracts.ClauseIndex`.

    Parameters
    ----------
    cell_m
        Width of cells; by default it is chosen by the first clauses.
    """

    def __init__(self, cell_m: float | None = None) -> None:
        self._table = SlotTable(kernels.CLAUSE_DTYPE)
        self._word_counts: Slots = np.zeros(_KEYS_MIN, dtype=np.int32)
        self._found: Ints = np.empty(_FOUND_MIN, dtype=np.int64)
        self._is_laid_out = cell_m is not None
        self._lists = Lists(
            *new_cells(_KEYS_MIN),
            np.zeros(_KEYS_MIN, dtype=kernels.LIST_DTYPE),
            new_runs(kernels.ENTRY_DTYPE, _RUNS_MIN),
            self._table.rows,
            self._table.pool,
            np.array([cell_m or 1.0]),
            np.zeros(kernels.META_COUNT, dtype=np.int64),
        )

    def __len__(self) -> int:
        return len(self._table)

    @property
    def candidate_count(self) -> int:
        """Return the number of entries examined so far."""
        return int(self._lists.meta[kernels.CANDIDATES])

    def insert(self, ids: Ints, boxes: Boxes, required: KeywordLists) -> None:
        """Add clauses."""
        validate_clauses(ids, boxes, required)
        if len(ids) == 0:
            return
        slots = self._table.append(ids, required, columns_of(boxes))
        if not self._is_laid_out:
            self._lists.cell_m[0] = cell_of_boxes(boxes)
            self._is_laid_out = True
        self._word_counts = longer(self._word_counts, int(required.ids.max()) + 1)
        self._adopt_table()
        kernels.count_words(self._lists, slots, self._word_counts, 1)
        kernels.choose_rarest(self._lists, slots, self._word_counts)
        self._enter(slots)

    def move(self, ids: Ints, boxes: Boxes) -> None:
        """Replace the boxes of clauses."""
        validate_boxes(ids, boxes)
        slots = self._table.distinct_slots(ids)
        kernels.leave(self._lists, slots)
        for name, values in columns_of(boxes).items():
            self._table.rows[name][slots] = values
        self._enter(slots)

    def remove(self, ids: Ints) -> None:
        """Remove clauses."""
        slots = self._table.take(ids)
        kernels.leave(self._lists, slots)
        kernels.count_words(self._lists, slots, self._word_counts, -1)
        self._table.discard(slots)
        self._adopt_table()

    def match(self, objects: ObjectBatch) -> Matches:
        """Find the clauses that each object matches."""
        box = objects.extents()
        words = objects.keywords
        arrivals = Arrivals(box.x1_m, box.y1_m, box.x2_m, box.y2_m, words.offsets, words.ids)
        offsets = np.zeros(len(objects) + 1, dtype=np.int64)
        row = 0
        while (row := kernels.match(self._lists, arrivals, row, offsets, self._found)) < len(objects):
            self._found = longer(self._found, 2 * len(self._found))
        return Matches(offsets, self._found[: offsets[-1]].copy())

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        lists = self._lists
        own = (lists.keys, lists.values, lists.lists, *lists.entries, self._word_counts, self._found)
        return sum(array.nbytes for array in own) + self._table.memory_bytes()

    def check(self) -> None:
        """Verify that the lists agree with the clauses."""
        self._table.check()
        count = int(self._lists.meta[kernels.LIST_COUNT])
        rows = self._lists.lists[:count]
        records = self._lists.entries.records
        pairs = [
            (int(row["key"]), int(slot))
            for row in rows
            for slot in records["slot"][row["start"] : row["start"] + row["count"]]
        ]
        wanted = {
            (int(key), slot)
            for slot in self._table.used().tolist()
            for key in kernels.keys_of(self._lists, slot)
        }
        if set(pairs) != wanted or len(pairs) != len(wanted):
            raise InconsistentIndexError("the lists do not match the clauses")
        check_runs(
            self._lists.entries, zip(rows["start"].tolist(), rows["size_class"].tolist(), strict=True)
        )

    def _enter(self, slots: Slots) -> None:
        row = 0
        while (row := kernels.enter(self._lists, slots, row)) < len(slots):
            lists = self._lists
            if row < 0:
                row = -1 - row
                keys, values = rehashed(lists.keys, lists.values, 2 * len(lists.keys))
                self._lists = lists._replace(
                    keys=keys, values=values, lists=longer(lists.lists, len(keys))
                )
            else:
                self._lists = lists._replace(
                    entries=lengthened(lists.entries, len(lists.entries.records) // 8)
                )

    def _adopt_table(self) -> None:
        """Adopt arrays that the table has replaced."""
        self._lists = self._lists._replace(clauses=self._table.rows, pool=self._table.pool)
