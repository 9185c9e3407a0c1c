"""IR-tree: an R-tree of objects whose nodes have an inverted file of the objects below them.

Skype's message index (skype.txt sections 4 and 8.1.1). Its own paper is not among ours; this follows the
descriptions of Skype and others.

Operations: insert and remove O(fanout * depth + keywords * depth) an object, amortised; best and within
O(objects) at worst.

Plan of `best`: best-first from the root by the distance to a node's box plus the least text part of any
object below, which follows from the postings of the subscription's keywords in the node's file; a node
with none of them is skipped. The search ends when the least bound is above the n-th length.

Our choices:
1. A node has 32 children at most. An object descends to the child whose box grows least. A full node is
   split on the path, at the centre of its children along the longer side of its box, so that its parent
   always has space.
2. The files of all nodes, leaves included, are one hash. A posting has the least norm and the least
   number of keywords of the objects with its keyword: hence the largest weight in a unit vector, and a
   bound for sets too. Norms are in eight bits, rounded down.
3. A split gives both halves of a node new files, made from the objects below: some 40 postings a level
   and object, in the long run. Postings of unused files stay in the hash until it would have to grow.
4. A removal deletes the object from its leaf and leaves boxes and files above too loose, until more
   objects have been removed below a node than remain: then its box and its file are rebuilt. A node
   without objects is freed at once. Leaves are not merged.
5. Objects are always inserted one by one.
"""

from __future__ import annotations

import numpy as np

from index.batches import Ints
from index.published.ir_tree import kernels, search_kernels
from index.published.ir_tree import layout as L
from index.published.ir_tree.file_kernels import DONE, KEYWORD_BITS, KEYWORD_MASK, NODES_FULL
from index.published.ir_tree.invariants import check_tree
from index.published.ir_tree.layout import Tree
from index.tables import SlotTable, within_kernels
from index.tables.buckets import objects_of
from index.tables.buckets.layout import OBJECT_DTYPE, Objects
from index.tables.buckets.question_kernels import Queries
from index.tables.buckets.rankings import Answers
from index.tables.growth import as_long, longer
from index.tables.id_map import new_cells, rehashed
from index.tables.id_map_kernels import LOAD_MAX, NO_KEY
from index.tables.objects import ObjectTable
from index.tables.slots import Slots

_KEYS_MIN = 64
_NODES_MIN = 4 * L.DEPTH_MAX
_FILES_MIN = 64


class IrTreeObjectIndex(ObjectTable):
    """See `index.contracts.ObjectIndex`."""

    def __init__(self) -> None:
        super().__init__(SlotTable(OBJECT_DTYPE, with_places=True))
        meta = np.zeros(L.META_SIZE, dtype=np.int64)
        meta[L.FREE_NODE] = L.NOTHING
        meta[L.NODE_END] = 1
        self._tree = Tree(
            np.zeros(_NODES_MIN, dtype=L.NODE_DTYPE),
            np.zeros((_NODES_MIN, L.FANOUT), dtype=np.int32),
            np.full(_FILES_MIN, L.NOTHING, dtype=np.int32),
            *new_cells(_KEYS_MIN),
            np.zeros(4 * L.DEPTH_MAX, dtype=np.int32),
            np.zeros(L.FANOUT * L.DEPTH_MAX, dtype=np.int32),
            meta,
        )
        self._keywords_max = 1
        root = self._tree.nodes[meta[L.ROOT]]
        root["is_leaf"] = 1
        root["parent"] = root["file"] = L.NOTHING
        root["x1_m"] = root["y1_m"] = np.inf
        root["x2_m"] = root["y2_m"] = -np.inf

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        return self._table.memory_bytes() + sum(array.nbytes for array in self._tree)

    def check(self) -> None:
        """Verify every invariant.

        Raises
        ------
        InconsistentIndexError
            If an invariant is violated; the message names it.
        """
        self._table.check()
        check_tree(self._tree, self._table)

    def _enter(self, slots: Slots) -> None:
        most = int(self._table.rows["keyword_count"][slots].max(initial=0))
        self._keywords_max = max(self._keywords_max, most)
        middles = np.empty(L.FANOUT)
        done, status = kernels.insert(self._tree, self._objects(), slots, 0, middles)
        while status != DONE:
            self._grow(status)
            done, status = kernels.insert(self._tree, self._objects(), slots, done, middles)

    def _leave(self, slots: Slots) -> None:
        done, status = kernels.remove(self._tree, self._objects(), slots, 0)
        while status != DONE:
            self._grow(status)
            done, status = kernels.remove(self._tree, self._objects(), slots, done)

    def _fill_best(self, queries: Queries, answers: Answers) -> None:
        search_kernels.best(self._tree, self._objects(), queries, answers.arrays, answers.frontier)

    def _node_end(self) -> int:
        return int(self._tree.meta[L.NODE_END])

    def _fill_within(
        self, queries: within_kernels.BoxQueries, row: int, offsets: Ints, found: Ints
    ) -> int:
        return search_kernels.within(self._tree, self._objects(), queries, row, offsets, found)

    def _objects(self) -> Objects:
        return objects_of(self._table)

    def _grow(self, status: int) -> None:
        """Lengthen the arrays that a kernel has filled."""
        if status == NODES_FULL:
            nodes = longer(self._tree.nodes, len(self._tree.nodes) + L.DEPTH_MAX)
            children = as_long(self._tree.children, len(nodes))
            self._tree = self._tree._replace(nodes=nodes, children=children)
        else:
            self._tidy()

    def _tidy(self) -> None:
        """Drop the postings of unused files, renumber the others; double tables that remain too full."""
        tree = self._tree
        is_used = tree.owners != L.NOTHING
        numbers = np.cumsum(is_used) - 1
        files = int(np.count_nonzero(is_used))
        owners = np.full(_doubled(len(tree.owners), files), L.NOTHING, dtype=np.int32)
        owners[:files] = tree.owners[is_used]
        tree.nodes["file"][owners[:files]] = np.arange(files)
        kept = np.flatnonzero(tree.keys != NO_KEY)
        kept = kept[is_used[tree.keys[kept] >> KEYWORD_BITS]]
        keys = np.full_like(tree.keys, NO_KEY)
        keys[kept] = (
            numbers[tree.keys[kept] >> KEYWORD_BITS] << KEYWORD_BITS | tree.keys[kept] & KEYWORD_MASK
        )
        size = _doubled(len(keys), len(kept) + L.DEPTH_MAX * self._keywords_max)
        keys, values = rehashed(keys, tree.values, size)
        self._tree = tree._replace(owners=owners, keys=keys, values=values)
        tree.meta[L.FILE_END] = files
        tree.meta[L.KEY_COUNT] = len(kept)


def _doubled(length: int, count: int) -> int:
    """Return the length of a table that is doubled until its load is at most half of LOAD_MAX."""
    while 2 * count > LOAD_MAX * length:
        length *= 2
    return length
