"""The AP+-Tree (ap-tree.txt section 4): clauses that move, and live objects, in the same tree.

Operations: publish is the AP-Tree's match, and stores the object in the visited nodes; insert descends to
the leaves of the clause and scans the lists there; move descends once with both boxes, and visits only
nodes where they differ; remove is the AP-Tree's; retract matches again. Retracted and expired objects are
swept out of lists gradually, some items a call.

Plan: a node has, in addition to an AP-Tree's data, two lists of objects. The m-list of a leaf has the
objects that reach it. A node with parts has the *waiting* objects: those that belong to a part that no
clause has yet, a cut for keywords outside all cuts, an empty cell or a dummy. When a clause creates such
a part, or extends a cut, they move there, so every later clause finds them. An object with `copies_max`
copies is *stopped*: it is stored in the m-list of the node that it has reached, and not below. A clause
scans the m-lists of all nodes on its path. It meets an object in one of them or, if the object has an
area, in several, of which one reports it (`object_kernels`, `part_kernels`, `scan_kernels`,
`clause_kernels`).

Before a node is rebuilt at once, its objects are removed, and they are inserted again afterwards. A new
subtree that is built in slices gets them when it is ready, slice by slice; meanwhile new objects are
inserted into both subtrees (`load_kernels`).

Decisions where the paper specifies nothing, and deviations from it:
- differences of ranges are not rectangles: the test is "in the new range and not in the old". There is no
  list of a clause's leaves: the walk finds them;
- a subtree within whose region both ranges are equal is skipped as a whole (case 1). Entries there keep
  the old box, which is equal within their region;
- the cost of moving clauses in space divisions (section 4.3.1) is in
  `index.published.ap_tree.motion_kernels`: with the mean time between two moves of a clause as the
  timestamp, time cancels out, and only the distance of moves and their number per arriving object are
  observed;
- the AP+k- and the AP+s-Tree of section 5.2, which store objects separately, are pairs (`index.paired`)
  of an AP-Tree that follows motion and an inverted file with quadtrees, or a quadtree with inverted
  files;
- lists are chains of chunks of eight items, each with the box in float32, rounded outwards, and the
  signature of the object's keywords, like the entries of clauses in leaves.

Warnings: an object waits at a node for each of its keywords that no cut has, so nearly every object waits
in nearly every k-node that it reaches.
"""

from __future__ import annotations

import numpy as np

from index.batches import Boxes, Floats, Ints, KeywordLists, Matches, Moves, ObjectBatch
from index.published.ap_plus_tree import clause_kernels, load_kernels, object_kernels, scan_kernels
from index.published.ap_plus_tree import layout as L
from index.published.ap_plus_tree.cargo import ListCargo
from index.published.ap_plus_tree.invariants import check_lists
from index.published.ap_plus_tree.lists import ListArrays
from index.published.ap_tree import layout as T
from index.published.ap_tree.arrays import TreeArrays
from index.published.ap_tree.invariants import check_tree
from index.published.ap_tree.layout import Numbers
from index.published.ap_tree.rebuilds import Rebuilding, Rebuilds
from index.square import Square
from index.tables.clauses import columns_of, validate_boxes, validate_clauses

_FOUND_MIN = 64
_EVERYWHERE = (-np.inf, -np.inf, np.inf, np.inf)
_COPIES_MAX = 100
_DEAD_SHARE = 0.2
"""From this fraction of dead items on, lists are swept."""
_SWEEP = 512
_SWEEP_EACH = 64
"""Items examined in a call: _SWEEP, plus _SWEEP_EACH for each of its rows, plus a 64th of all items."""


class ApPlusTree(Rebuilding):
    """See `index.contracts.MovingIndex`.

    Parameters
    ----------
    square
        The square that contains most clauses and objects; by default about the existing boxes.
    fanout
        Maximum number of parts of a node (f).
    leaf_max
        Clauses of a leaf before it is divided (theta_p).
    drift_max
        Divergence from which a node is rebuilt (theta_KL).
    change_share
        Fraction of a node's entries that must have been inserted or removed before that.
    copies_max
        Copies of an object, waiting ones included, before it is pushed no further down.
    workload
        Objects that represent the expected ones.
    """

    def __init__(
        self,
        square: Square | None = None,
        *,
        fanout: int = 200,
        leaf_max: int = 40,
        drift_max: float = 0.001,
        change_share: float = 0.2,
        copies_max: int = _COPIES_MAX,
        workload: ObjectBatch | None = None,
    ) -> None:
        self._arrays = TreeArrays.of(fanout, leaf_max, drift_max, change_share)
        self._table = self._arrays.table
        self._lists = ListArrays(copies_max, fanout)
        self._objects = self._lists.objects
        self._cargo = ListCargo(self._arrays, self._lists)
        self._rebuilds = Rebuilds(self._arrays, square, is_rarest_first=False, cargo=self._cargo)
        self.candidate_count = 0
        self._found: Ints = np.empty(_FOUND_MIN, dtype=np.int64)
        self._left: Ints = np.empty(_FOUND_MIN, dtype=np.int64)
        self._no_boxes: Floats = np.zeros((1, 8))
        if workload is not None:
            self._arrays.sample(workload, 1)

    def __len__(self) -> int:
        return len(self._table)

    @property
    def object_count(self) -> int:
        """Return the number of live objects. O(objects)."""
        return len(self._objects)

    def insert(self, ids: Ints, boxes: Boxes, required: KeywordLists) -> Matches:
        """Add clauses; return the live objects that each matches."""
        validate_clauses(ids, boxes, required)
        slots = self._table.append(ids, required, columns_of(boxes))
        if not len(ids):
            return Matches.of(np.zeros(0, dtype=np.int64), ids)
        self._lists.know_keywords(0, int(np.diff(required.offsets).max()))
        self._arrays.motions.stand(slots)
        self._rebuilds.know(boxes, required)
        if self._rebuilds.is_bulk(len(ids)):
            self._rebuilds.plant()
            return self._found_by(slots)
        found = self._change(slots, L.ENTER, self._no_boxes).entered
        self._rebuilds.ride(len(ids))
        return found

    def move(self, ids: Ints, boxes: Boxes, same: Boxes | None = None) -> Moves:
        """Change the boxes of clauses; return the matches of each before or after, and not both."""
        validate_boxes(ids, boxes)
        slots = self._table.distinct_slots(ids)
        self._arrays.motions.move(slots, self._table.rows, boxes, len(self))
        self._rebuilds.know_boxes(boxes)
        both: Floats = np.empty((len(ids), 8))
        both[:, :4] = np.stack(list(columns_of(boxes).values()), axis=1)
        both[:, 4:] = _EVERYWHERE if same is None else np.stack(list(columns_of(same).values()), axis=1)
        found = self._change(slots, L.MOVE, both)
        self._rebuilds.ride(len(ids))
        return found

    def remove(self, ids: Ints) -> None:
        """Remove clauses."""
        slots = self._table.take(ids)
        self._change(slots, L.LEAVE, self._no_boxes)
        self._rebuilds.forget(self._table.keyword_lists(slots))  # they are in the order until here
        self._table.discard(slots)
        self._rebuilds.ride(len(ids))

    def publish(self, objects: ObjectBatch, expiry_ms: Ints) -> Matches:
        """Add objects; return the clauses that match each."""
        self._forget(self._objects.replaced(objects))
        slots = self._objects.append(objects, expiry_ms)
        self._lists.know_keywords(int(np.diff(objects.keywords.offsets).max(initial=0)), 0)
        offsets: Ints = np.zeros(len(slots) + 1, dtype=np.int64)
        self._begin()
        while (
            object_kernels.publish(self._arrays.tree(), self._cargo.now(), slots, offsets, self._found)
            != T.FINISHED
        ):
            self._grow()
        found = self._end(offsets)
        self._arrays.sample(objects, T.SEEN_STRIDE)
        self._arrays.motions.come(len(objects))
        self._sweep(len(objects))
        self._rebuilds.ride(len(objects))
        return found

    def retract(self, ids: Ints) -> Matches:
        """Remove objects; return the clauses that matched each."""
        objects = self._objects.batch(self._objects.slots(ids))
        self._forget(ids)
        self._sweep(len(ids))
        return self.match(objects)

    def match(self, objects: ObjectBatch) -> Matches:
        """Find the clauses that match each object."""
        found, candidates = self._arrays.match(objects)
        self.candidate_count += candidates
        return found

    def pass_time(self, now_ms: int) -> None:
        """Set the time, and remove some of the expired objects."""
        self._objects.pass_time(now_ms)
        self._lists.state[L.NOW_MS] = now_ms
        self._forget(self._objects.due())
        self._sweep(0)

    def check(self) -> None:
        """Verify every invariant. Slow."""
        self._table.check()
        self._objects.table.check()
        tree, job = self._arrays.tree(), self._rebuilds.job()
        check_tree(tree, job, self._table.used(), is_moving=True)
        check_lists(tree, self._cargo.now(), self._objects.table.used())

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        found = self._found.nbytes + self._left.nbytes
        return (
            self._arrays.memory_bytes()
            + self._rebuilds.memory_bytes()
            + self._lists.memory_bytes()
            + found
        )

    # -- arguments of kernels -------------------------------------------------------------------------

    def _begin(self) -> None:
        self._arrays.meta[[T.STACK_COUNT, T.CANDIDATES]] = 0
        self._lists.state[[L.DONE, L.FOUND, L.LEFT]] = 0

    def _grow(self) -> None:
        """Lengthen the arrays that a kernel reported as full."""
        self._arrays.grow(self._rebuilds.job_arrays)
        self._lists.grow()
        state = self._lists.state
        if state[L.FOUND_WANTED]:
            self._found = _longer(self._found, int(state[L.FOUND]), int(state[L.FOUND_WANTED]))
        if state[L.LEFT_WANTED]:
            self._left = _longer(self._left, int(state[L.LEFT]), int(state[L.LEFT_WANTED]))
        state[[L.FOUND_WANTED, L.LEFT_WANTED]] = 0

    def _end(self, offsets: Ints) -> Matches:
        self.candidate_count += int(self._arrays.meta[T.CANDIDATES])
        return Matches(offsets, self._found[: self._lists.state[L.FOUND]].copy())

    def _change(self, slots: Numbers, kind: int, boxes: Floats) -> Moves:
        """Insert, remove or move clauses."""
        arrays, rebuilds = self._arrays, self._rebuilds
        entered: Ints = np.zeros(len(slots) + 1, dtype=np.int64)
        left: Ints = np.zeros(len(slots) + 1, dtype=np.int64)
        self._begin()
        while True:
            status = clause_kernels.change_all(
                arrays.tree(),
                rebuilds.job(),
                self._cargo.now(),
                slots,
                kind,
                boxes,
                entered,
                self._found,
                left,
                self._left,
            )
            if status == T.FINISHED:
                break
            if status == T.HAS_DUE:
                rebuilds.settle([int(node) for node in arrays.due[: arrays.meta[T.DUE_COUNT]]])
                arrays.meta[T.DUE_COUNT] = 0
            else:
                self._grow()
        return Moves(self._end(entered), Matches(left, self._left[: self._lists.state[L.LEFT]].copy()))

    def _found_by(self, slots: Numbers) -> Matches:
        """Return the live objects that clauses match."""
        offsets: Ints = np.zeros(len(slots) + 1, dtype=np.int64)
        self._begin()
        while (
            scan_kernels.find_objects(self._arrays.tree(), self._cargo.now(), slots, offsets, self._found)
            != T.FINISHED
        ):
            self._grow()
        return self._end(offsets)

    def _forget(self, ids: Ints) -> None:
        if len(ids):
            slots = self._objects.table.take(ids)
            load_kernels.end_objects(self._cargo.now(), slots)
            self._objects.table.discard(slots)

    def _sweep(self, row_count: int) -> None:
        """Search for dead items, if there are many."""
        if self._lists.dead_share > _DEAD_SHARE:
            budget = _SWEEP + _SWEEP_EACH * row_count + int(self._lists.state[L.ITEM_TOTAL]) // 64
            load_kernels.sweep(self._arrays.tree(), self._cargo.now(), budget)


def _longer(array: Ints, used: int, wanted: int) -> Ints:
    larger: Ints = np.empty(max(2 * len(array), used + wanted), dtype=np.int64)
    larger[:used] = array[:used]
    return larger
