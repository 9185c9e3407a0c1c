"""R^t-trees: an R-tree of clauses whose nodes have tokens (keywords) of the clauses below.

The structures of rt-tree.txt, and the three that it compares them with (section 2.2):

rt-tree                 R^t: nodes have all tokens below; filter, then verify (section 3)
rt-plus-tree            R^t+: nodes have one token of each clause below, the first in its order (section
                        4)
rt-plus-plus-tree       R^t++: nodes have a token of each clause, another at each level, with the list
                        of the clauses; the search descends for clauses with a token at each level
                        (section 5). Texts are not verified.
keyword-first           one inverted file of all clauses, tokens counted; then boxes are tested
spatial-first           the R-tree alone; clauses in the visited leaves are verified
ir-tree-subscriptions   IRTree: nodes have an inverted file of their children, leaves one of their
                        clauses

Operations: insert and remove O((fanout + tokens) * depth) a clause, amortised, and O(clauses of a list)
with lists; match O(clauses) an object at worst.

Our choices, where the paper leaves one:

1. Nodes have 50 children at most. A clause descends to the child whose box grows least; a full node is
   split on the path, at the centre of its children along the longer side of its box. Clauses that are
   inserted together into an empty tree are sorted into tiles (STR), 35 to a node.
2. Nodes without clauses are freed, others are not merged. Boxes are as small as possible at all times.
3. The tokens of all nodes are one hash: with the number of clauses below that have them, or with a list.
   They are updated with every insert, removal and split at once. If the root is split, all are inserted
   again: in an R^t++-tree every token moves down by a level.
4. The paper's levels begin below the root, whose own box is never tested: so the root has no tokens.
   While it is the only node, an R^t++-tree has the file of all tokens there.
5. A clause's order of tokens is fixed at its insertion (`orders`). For df the paper selects greedily
   among all clauses; ours is the order of frequencies at that moment.
6. Figure 5 returns when an entry's box is apart (line 3), and does not reset its flag: the former loses
   matches in later entries, the latter causes needless visits. Ours continues with the next entry, and
   each has its own flag. Boxes are compared by their sides: by vertices, as section 3.2 has it, a cross
   of two is missed.
7. The paper's least number of entries of a node, 25, is not kept. R^t and R^t+ verify the keywords of a
   clause by their ids, and not in the order of the node.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from index.batches import Boxes, Ints, KeywordLists, Matches, ObjectBatch
from index.published.clause_cells.scan_kernels import published_of
from index.published.rt_tree import bulk, list_kernels, search_kernels, tree_kernels
from index.published.rt_tree import layout as at
from index.published.rt_tree.invariants import check_tree
from index.published.rt_tree.layout import DEPTH_MAX, FANOUT, NOTHING, Tree
from index.published.rt_tree.orders import Order
from index.square import Square
from index.tables import SlotTable
from index.tables.clauses import columns_of, validate_boxes, validate_clauses
from index.tables.growth import as_long, longer
from index.tables.id_map import new_cells, rehashed
from index.tables.matches import collected
from index.tables.runs import lengthened, new_runs
from index.tables.slots import Slots

KINDS = {
    "spatial-first": at.PLAIN,
    "rt-tree": at.TOKENS,
    "rt-plus-tree": at.REPRESENTATIVES,
    "rt-plus-plus-tree": at.COUNTED,
    "ir-tree-subscriptions": at.FILES,
    "keyword-first": at.FLAT,
}
"""The data at the nodes, by name."""

_ROOM_MIN = 64


class RtTree:
    """See `index.contracts.ClauseIndex`.

    Parameters
    ----------
    name
        One of KINDS.
    square
        The grid of the order `local`; by default it is laid about the first clauses.
    order
        Of the tokens of clauses: see `orders`.
    """

    def __init__(self, name: str, square: Square | None = None, order: str = "local") -> None:
        self._kind = KINDS[name]
        self._order = Order(order, square)
        self._table = SlotTable(at.CLAUSE_DTYPE, with_places=True)
        self.candidate_count = 0
        """The number of clauses that `match` has tested one by one so far."""
        self.visited_count = 0
        """The number of nodes whose children it has visited."""
        meta = np.zeros(at.META_SIZE, dtype=np.int64)
        meta[at.KIND] = self._kind
        meta[at.NODE_END] = 1
        meta[at.FREE_NODE] = meta[at.FREE_LIST] = NOTHING
        self._tree = Tree(
            self._table.rows,
            self._table.pool,
            self._table.places,
            np.zeros(_ROOM_MIN, dtype=at.NODE_DTYPE),
            np.zeros((_ROOM_MIN, FANOUT), dtype=np.int32),
            *new_cells(_ROOM_MIN),
            np.zeros(_ROOM_MIN, dtype=at.LIST_DTYPE),
            new_runs(at.MEMBER_DTYPE, _ROOM_MIN),
            np.zeros(_ROOM_MIN, dtype=np.int64),
            np.zeros(FANOUT * DEPTH_MAX, dtype=np.int32),
            meta,
        )
        self._node_marks: Ints = np.zeros(_ROOM_MIN, dtype=np.int64)
        root = self._tree.nodes[0]
        root["is_leaf"], root["parent"] = 1, NOTHING
        root["x1_m"] = root["y1_m"] = np.inf
        root["x2_m"] = root["y2_m"] = -np.inf

    def __len__(self) -> int:
        return len(self._table)

    def insert(self, ids: Ints, boxes: Boxes, required: KeywordLists) -> None:
        """Add clauses. O((fanout + tokens) * depth) each, amortised."""
        validate_clauses(ids, boxes, required)
        is_bulk = not len(self) and len(ids) > 0 and self._kind != at.FLAT
        self._order.count(boxes, required, 1)
        try:
            columns: dict[str, npt.NDArray[np.generic]] = {**columns_of(boxes)}
            slots = self._table.append(ids, required, columns)
        except KeyError:
            self._order.count(boxes, required, -1)
            raise
        self._sort(ids, slots, boxes, required)
        if is_bulk:
            self._load(slots)
        else:
            self._place(slots)

    def move(self, ids: Ints, boxes: Boxes) -> None:
        """Change the boxes of clauses: a removal and an insert each."""
        validate_boxes(ids, boxes)
        slots = self._table.distinct_slots(ids)
        tree_kernels.remove(self._arrays(), slots)
        tokens = self._table.keyword_lists(slots)
        self._order.count(self._boxes(slots), tokens, -1)
        self._order.count(boxes, tokens, 1)
        for name, values in columns_of(boxes).items():
            self._table.rows[name][slots] = values
        self._place(slots)

    def remove(self, ids: Ints) -> None:
        """Remove clauses. O((fanout + tokens) * depth) each, and the clauses of the lists they leave."""
        slots = self._table.take(ids)
        tree_kernels.remove(self._arrays(), slots)
        self._order.count(self._boxes(slots), self._table.keyword_lists(slots), -1)
        self._table.discard(slots)

    def match(self, objects: ObjectBatch) -> Matches:
        """Find the clauses that match each object."""
        published = published_of(objects)
        self._tree = self._tree._replace(marks=as_long(self._tree.marks, len(self._table.rows)))
        self._node_marks = as_long(self._node_marks, len(self._tree.nodes))
        depths = np.empty(len(self._tree.stack), dtype=np.int32)
        arrays = (self._arrays(), published, self._node_marks, depths)
        found = collected(
            len(objects), lambda row, offsets, found: search_kernels.match(*arrays, row, offsets, found)
        )
        meta = self._tree.meta
        self.candidate_count += int(meta[at.CANDIDATES])
        self.visited_count += int(meta[at.VISITED])
        meta[at.CANDIDATES] = meta[at.VISITED] = 0
        return found

    def visited(self) -> Ints:
        """Return the nodes whose children were visited for the last object. Not of `keyword-first`."""
        found: Ints = np.flatnonzero(self._node_marks == self._tree.meta[at.EPOCH])
        return found

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        tree = self._tree
        own = (tree.nodes, tree.children, tree.keys, tree.values, tree.lists, *tree.members, tree.marks)
        rest = (self._node_marks, tree.stack, tree.meta)
        size = sum(array.nbytes for array in (*own, *rest))
        return size + self._table.memory_bytes() + self._order.memory_bytes()

    def check(self) -> None:
        """Verify every invariant. O(clauses * tokens * depth) in Python.

        Raises
        ------
        InconsistentIndexError
            If an invariant is violated; the message names it.
        """
        self._table.check()
        check_tree(self._arrays(), self._table)

    def _arrays(self) -> Tree:
        """Return all arrays, as kernels take them."""
        table = self._table
        return self._tree._replace(clauses=table.rows, pool=table.pool, places=table.places)

    def _sort(self, ids: Ints, slots: Slots, boxes: Boxes, required: KeywordLists) -> None:
        """Record the order of the tokens of new clauses."""
        starts = self._table.rows["keyword_start"][slots] - required.offsets[:-1]
        places = np.repeat(starts, np.diff(required.offsets)) + np.arange(len(required.ids))
        self._table.places[places] = self._order.sort(ids, boxes, required)

    def _boxes(self, slots: Slots) -> Boxes:
        rows = self._table.rows[slots]
        return Boxes(rows["x1_m"], rows["y1_m"], rows["x2_m"], rows["y2_m"])

    def _load(self, slots: Slots) -> None:
        """Load an empty tree."""
        self._reserve_nodes(sum(bulk.levels(len(slots))))
        self._tree.meta[at.FREE_NODE] = NOTHING
        bulk.load(self._arrays(), slots)
        self._enter(slots)

    def _place(self, slots: Slots) -> None:
        middles = np.empty(FANOUT)
        done, status = tree_kernels.insert(self._arrays(), slots, 0, middles)
        while status != list_kernels.DONE:
            if status == list_kernels.ROOT_FULL:
                self._raise_root()
            else:
                self._grow(status)
            done, status = tree_kernels.insert(self._arrays(), slots, done, middles)

    def _raise_root(self) -> None:
        """Add a root, and insert all tokens again: each belongs to another level now."""
        keys, values = new_cells(len(self._tree.keys))
        meta = self._tree.meta
        meta[at.KEY_COUNT] = meta[at.LIST_END] = 0
        meta[at.FREE_LIST] = NOTHING
        runs = new_runs(at.MEMBER_DTYPE, len(self._tree.members.records))
        self._tree = self._tree._replace(keys=keys, values=values, members=runs)
        root = bulk.raise_root(self._tree)
        self._enter(bulk.below(self._tree, root))

    def _enter(self, slots: Slots) -> None:
        done, status = tree_kernels.enter_all(self._arrays(), slots, 0)
        while status != list_kernels.DONE:
            self._grow(status)
            done, status = tree_kernels.enter_all(self._arrays(), slots, done)

    def _reserve_nodes(self, count: int) -> None:
        nodes = longer(self._tree.nodes, count)
        self._tree = self._tree._replace(nodes=nodes, children=as_long(self._tree.children, len(nodes)))

    def _grow(self, status: int) -> None:
        """Lengthen the arrays that a kernel has filled."""
        tree = self._tree
        if status == list_kernels.NODES_FULL:
            self._reserve_nodes(len(tree.nodes) + DEPTH_MAX)
        elif status == list_kernels.KEYS_FULL:
            keys, values = rehashed(tree.keys, tree.values, 2 * len(tree.keys))
            self._tree = tree._replace(keys=keys, values=values)
        elif status == list_kernels.LISTS_FULL:
            self._tree = tree._replace(lists=longer(tree.lists, len(tree.lists) + 1))
        else:
            self._tree = tree._replace(members=lengthened(tree.members))
