"""IQF+: an inverted file whose long lists are quadtrees, with a list for each pair of long keywords too.

Operations: insert and remove O(depth) an entry, amortised; an object has an entry for each keyword and
for each pair of long ones. best O(entries of the subscription's keywords) at worst; within O(entries in
cells that intersect the box, of one list: see `within_kernels`).

Origin: our IQF (`index.published.iqf`, after lamps.txt section 5) scans the objects of a subscription's
keywords, rarest first, nearest first, and stops when the remaining objects have too few common keywords
to be good enough. On the list of a frequent keyword nearly every object has only one of two frequent
keywords, while the bound has to allow for both. A list of the objects that have both avoids that.

Plan of `best`. The keywords of a subscription are ranked by the length of their lists. Every object that
has one of them is offered once, at its rarest common keyword, rank r, and

1. for r ascending: if keyword r is not long, in its list; if it is long, and so is another common one,
   rank s, in the list of the pair (r, s), with the rarest s; if the object has many keywords, in the list
   of wide objects;
2. last, for each long r, in its tree, objects that have no other long keyword in common. Here nearly
   always exactly one keyword is common, so the bound is exact but for the distance, and most of these
   searches end at once.

Each list has its own bound on the number of common keywords, and hence on the text part of the length
(Theorem 8, as in `index.tables.buckets.scan_kernels`). It is skipped if that is above the worst kept
length.

Decisions:

* Entries are 20 bytes: a position rounded to float32, and a mark (`mark_kernels`). Bounds allow for the
  largest rounding so far; lengths are computed from the object itself.
* An object has no references to its entries. Its position leads to the leaf, or its list is short.
* Keywords become long and cease to be long one at a time, when the length of their lists requires it
  (`list_kernels`).
* Trees start with a small root and grow upwards on demand (`tree_kernels`); a change of the number of
  objects causes no rebuild.

Measured (`nearcast bench run retrieve --set data=places`, a million objects): the figures are in
docs/performance.md. LONG_MIN 64 takes more memory and 256 more time; so do leaves of 16 entries.
"""

from __future__ import annotations

import numpy as np

from index.batches import Ints
from index.contracts import InconsistentIndexError
from index.iqf_plus import kernels, list_kernels, node_kernels, tree_kernels
from index.iqf_plus.invariants import check
from index.iqf_plus.layout import ENTRY_DTYPE, LIST_DTYPE, NODE_DTYPE, Lists, Objects
from index.iqf_plus.within_kernels import within
from index.tables import SlotTable, within_kernels
from index.tables.buckets.layout import OBJECT_DTYPE
from index.tables.buckets.question_kernels import Queries
from index.tables.buckets.rankings import Answers
from index.tables.growth import longer
from index.tables.id_map import new_cells, rehashed
from index.tables.objects import ObjectTable
from index.tables.quad_kernels import NO_NODE
from index.tables.runs import lengthened, new_runs
from index.tables.slots import Slots

_LISTS_MIN = 16
_KEYS_MIN = 32
_NODES_MIN = 64
_RUNS_MIN = 256


class IqfPlusObjectIndex(ObjectTable):
    """See `index.contracts.ObjectIndex`.

    Parameters
    ----------
    long_min
        The maximum number of entries of a list without a tree.
    """

    def __init__(self, long_min: int = 128) -> None:
        if long_min < 1:
            raise ValueError(f"long_min is {long_min}, must be at least 1")
        super().__init__(SlotTable(OBJECT_DTYPE))
        meta = np.zeros(list_kernels.META_COUNT, dtype=np.int64)
        meta[list_kernels.LIST_FREE] = list_kernels.NO_LIST
        meta[list_kernels.LONG_MIN] = long_min
        meta[node_kernels.NODE_FREE] = NO_NODE
        self._lists = Lists(
            np.zeros(_LISTS_MIN, dtype=LIST_DTYPE),
            *new_cells(_KEYS_MIN),
            np.zeros(_NODES_MIN, dtype=NODE_DTYPE),
            new_runs(ENTRY_DTYPE, _RUNS_MIN),
            meta,
            np.zeros(1),
            np.zeros(node_kernels.STACK_MAX, dtype=np.int32),
        )

    def long_keywords(self) -> list[int]:
        """Return the keywords whose lists are trees, increasing."""
        lists = self._lists.lists[: self._lists.meta[list_kernels.LIST_END]]
        is_word = (lists["key"] >= 0) & (lists["key"] < list_kernels.PAIR_KEY_MIN)
        return sorted(lists["key"][is_word & (lists["root"] != NO_NODE)].tolist())

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        lists = self._lists
        own = (lists.lists, lists.keys, lists.values, lists.nodes, *lists.runs, lists.meta, lists.stack)
        return sum(array.nbytes for array in own) + self._table.memory_bytes()

    def check(self) -> None:
        """Verify every invariant.

        Raises
        ------
        InconsistentIndexError
            If an invariant is violated; the message names it.
        """
        self._table.check()
        check(self._lists, self._table)

    def _enter(self, slots: Slots) -> None:
        cursor = np.zeros(2, dtype=np.int64)
        while True:
            status = kernels.insert(self._lists, self._objects(), slots, cursor)
            if status == node_kernels.DONE:
                return
            self._grow(status)

    def _leave(self, slots: Slots) -> None:
        done = kernels.remove(self._lists, self._objects(), slots)
        if done < len(slots):
            object_id = self._table.rows["id"][slots[done]]
            raise InconsistentIndexError(f"object {object_id} is not in all of its lists")

    def _fill_best(self, queries: Queries, answers: Answers) -> None:
        kernels.best(self._lists, self._objects(), queries, answers.arrays, answers.frontier)

    def _node_end(self) -> int:
        return int(self._lists.meta[node_kernels.NODE_END])

    def _fill_within(
        self, queries: within_kernels.BoxQueries, row: int, offsets: Ints, found: Ints
    ) -> int:
        return within(self._lists, self._objects(), queries, row, offsets, found)

    def _objects(self) -> Objects:
        return Objects(self._table.rows, self._table.pool)

    def _grow(self, status: int) -> None:
        """Lengthen the arrays that a kernel has filled."""
        lists = self._lists
        if status == node_kernels.RUNS_FULL:
            self._lists = lists._replace(runs=lengthened(lists.runs, tree_kernels.SPLIT_ROOM))
        elif status == node_kernels.NODES_FULL:
            self._lists = lists._replace(nodes=longer(lists.nodes, len(lists.nodes) + 4))
        elif status == list_kernels.LISTS_FULL:
            self._lists = lists._replace(lists=longer(lists.lists, len(lists.lists) + 1))
        else:
            keys, values = rehashed(lists.keys, lists.values, 2 * len(lists.keys))
            self._lists = lists._replace(keys=keys, values=values)
