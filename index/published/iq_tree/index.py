"""IQ-tree: one quadtree of objects whose nodes record the keywords that occur below them.

The baseline of lamps.txt section 7.1 ("Lamps w/o IQF"): "a hybrid structure of inverted file and
Quad-tree, like IR-tree". The paper that defines it is not among ours: this is our reading.

Operations: insert and remove O(keywords * depth) an object; best O(objects) at worst.

Plan of `best`: best-first from the root by dist(node, p) plus the least text part of an object that has
as many keywords in common with the subscription as occur below the node; none prunes the node. The search
ends when the least bound is above the n-th length.

Our choices:
1. The inverted files of all nodes, leaves included, are one hash of counts keyed by (node, keyword):
   deletion needs counts, and one hash needs no allocation for each node.
2. A node has the least number of keywords of an object below it, as in IQF, which makes the text part
   tighter; tree, cells and root square are IQF's too: the two differ only in what the paper compares.
"""

from __future__ import annotations

import numpy as np

from index.batches import Ints
from index.contracts import InconsistentIndexError
from index.published.iq_tree import kernels
from index.published.iq_tree.layout import Occurrences
from index.published.iq_tree.within_kernels import within
from index.square import Square
from index.tables import SlotTable, within_kernels
from index.tables.buckets import BucketTrees, objects_of, square_of
from index.tables.buckets.kernels import plant
from index.tables.buckets.layout import OBJECT_DTYPE, Objects
from index.tables.buckets.question_kernels import Queries
from index.tables.buckets.rankings import Answers
from index.tables.id_map import new_cells, rehashed
from index.tables.id_map_kernels import NO_KEY, find
from index.tables.objects import ObjectTable
from index.tables.quad_kernels import NO_NODE
from index.tables.slots import Slots

_KEYS_MIN = 64

_CHANGE = 2.0
"""The root square is tested again when the number of objects has grown by this factor."""


class IqTreeObjectIndex(ObjectTable):
    """See `index.contracts.ObjectIndex`."""

    def __init__(self) -> None:
        super().__init__(SlotTable(OBJECT_DTYPE, with_places=True))
        self._square = Square(0.0, 0.0, 1.0)
        self._squared_count = 0
        self._plant()

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        own = sum(array.nbytes for array in self._occurrences)
        return own + self._table.memory_bytes() + self._trees.memory_bytes()

    def check(self) -> None:
        """Verify every invariant.

        Raises
        ------
        InconsistentIndexError
            If an invariant is violated; the message names it.
        """
        self._table.check()
        nodes, _, entries, _ = self._trees.arrays
        slots: list[int] = []
        expected: dict[int, int] = {}
        for node, places in self._trees.check([self._root], self._table):
            for entry in entries[places]:
                if entry["ordinal"] != 0:
                    raise InconsistentIndexError(f"slot {entry['slot']} has a wrong ordinal")
                slots.append(int(entry["slot"]))
                above = node
                while above != NO_NODE:
                    for keyword in self._table.keywords(slots[-1]).tolist():
                        key = kernels.key_of(above, keyword)
                        expected[key] = expected.get(key, 0) + 1
                    above = int(nodes[above]["parent"])
        if sorted(slots) != self._table.used().tolist():
            raise InconsistentIndexError("the entries are not the objects")
        keys, values, meta = self._occurrences
        if len(expected) != (keys != NO_KEY).sum() or len(expected) != meta[kernels.KEY_COUNT]:
            raise InconsistentIndexError("the inverted file has a wrong count of keys")
        for key, count in expected.items():
            if find(keys, values, key) != count:
                raise InconsistentIndexError(
                    f"keyword {key & 0xFFFFFFFF} has a wrong count at node {key >> 32}"
                )

    def _objects(self) -> Objects:
        return objects_of(self._table)

    def _plant(self) -> None:
        """Create an empty tree about the root square."""
        self._trees = BucketTrees()
        self._root = plant(self._trees.arrays, *self._square)
        self._occurrences = Occurrences(
            *new_cells(_KEYS_MIN),
            np.zeros(kernels.META_COUNT, dtype=np.int64),
        )

    def _enter(self, slots: Slots) -> None:
        if len(self) > self._squared_count * _CHANGE:
            self._squared_count = len(self)
            used = self._table.used()
            square = square_of(self._table.rows["x_m"][used], self._table.rows["y_m"][used])
            if not self._square.fits(square):
                self._square = square
                self._plant()
                slots = used
        done = 0
        while True:
            done, status = kernels.insert(
                self._trees.arrays, self._occurrences, self._objects(), self._root, slots, done
            )
            if status == 0:
                return
            if status == kernels.TREES_FULL:
                self._trees.grow()
            else:
                self._grow_keys()

    def _leave(self, slots: Slots) -> None:
        kernels.remove(self._trees.arrays, self._occurrences, self._objects(), slots)

    def _settle(self) -> None:
        self._squared_count = min(self._squared_count, len(self))

    def _fill_best(self, queries: Queries, answers: Answers) -> None:
        kernels.best(
            self._trees.arrays,
            self._occurrences,
            self._objects(),
            self._root,
            queries,
            answers.arrays,
            answers.frontier,
        )

    def _node_end(self) -> int:
        return self._trees.node_end()

    def _fill_within(
        self, queries: within_kernels.BoxQueries, row: int, offsets: Ints, found: Ints
    ) -> int:
        arrays = (self._trees.arrays, self._occurrences, self._objects(), self._root)
        return within(*arrays, queries, row, offsets, found)

    def _grow_keys(self) -> None:
        keys, values, meta = self._occurrences
        self._occurrences = Occurrences(*rehashed(keys, values, 2 * len(keys)), meta)
