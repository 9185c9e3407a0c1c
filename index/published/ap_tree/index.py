"""The AP-Tree (ap-tree.txt section 3): a clause index that divides clauses by keywords or by place.

Operations: match visits, in every k-node, the cuts that keywords of the object hit, in every s-node one
cell (all intersecting cells, if the object has an area), and verifies the clauses of the leaves it
reaches; insert, move and remove descend the same way, O(depth * log fanout) for each leaf that a clause
lies in. A subtree of n clauses is built in O(n * depth).

Plan: a node is a leaf, or divides its clauses: a k-node by the N_l-th of their keywords, in a frozen
order, into cuts (intervals of the order); an s-node by their boxes, into the cells of a grid. Clauses
that have no such keyword, or whose box contains the region, go to a dummy. The kind of a node, and the
boundaries of cuts and cells, minimise the expected number of verifications (`decide_kernels`,
`cut_kernels`, `space_kernels`); a leaf stays a leaf if neither kind costs less. `build_kernels` does the
work, in steps that can be interrupted. A leaf that gets too large is rebuilt, and so is a node that gets
too small or whose weights have drifted from those at its construction (`drift_kernels`): small ones at
once, large ones in slices beside the old subtree, which stays in use (`rebuild_kernels`, `rebuilds`).

Verification: a leaf has for each clause its box in float32, rounded outwards, and a signature of its
keywords, in contiguous memory; entries that pass are tested in float64, and by their keywords.

Decisions where the paper specifies nothing, and deviations from it, none of which changes the results:
- hit probabilities of keywords and places are those of a sample of objects, from the given workload and
  from objects matched since, plus a few evenly distributed pseudo objects. Without them they are those of
  the paper: frequencies among clauses, and areas. A cut is hit with the sum of its keywords'
  probabilities, at most 1;
- a node of n clauses gets a part for each leaf_max / 4 of them, and fanout at most: 200 parts for 41
  clauses would waste memory;
- if neither partition is cheaper than none, the next keyword is tried before the node becomes a leaf;
- cells are chosen by a sample of up to 1,024 clauses. Space is not divided if a clause would lie in more
  than six leaves on average, nor at 24 levels: that bounds memory;
- the dynamic program takes up to 1,000 units: adjacent rarer keywords are one unit;
- a keyword outside all cuts opens one while the node has less than its number of parts, else the lighter
  neighbour is extended to it. A new keyword is appended to the order, which is renewed with the whole
  tree;
- weights are entries below, not clauses; the divergence is smoothed by one entry a part, and tested once
  in as many updates as a 32nd of the node. In addition to theta_KL and the 0.1 % rule a fifth of the node
  must have changed (`change_share`): random numbers alone drift by more than 0.001 in small nodes;
- a node becomes a leaf at half of leaf_max, so that it does not merge and split alternately;
- variants: KPriority divides by keywords while there are any, SPriority by place while there is something
  to divide, at any cost; Trie-Qd gives each keyword its own cut, without a limit, then quarters space.
  All stop at leaf_max, and at the bounds on leaves and levels;
- if it follows motion, the cost of s-nodes grows with the distance and frequency of moves (section 4.3.1,
  `motion_kernels`).

Warnings: arrays by keyword are as long as the largest keyword id. A large insert into a much smaller tree
builds it at once. Memory is up to twice as much while the whole tree is rebuilt.
"""

from __future__ import annotations

import numpy as np

from index.batches import Boxes, Floats, Ints, KeywordLists, Matches, ObjectBatch
from index.published.ap_tree import change_kernels
from index.published.ap_tree import layout as L
from index.published.ap_tree.arrays import TreeArrays
from index.published.ap_tree.invariants import check_tree
from index.published.ap_tree.layout import Numbers
from index.published.ap_tree.rebuilds import Rebuilding, Rebuilds
from index.square import Square
from index.tables.clauses import columns_of, validate_boxes, validate_clauses

_VARIANTS = {
    "DP": L.OPTIMAL,
    "HR": L.HEURISTIC,
    "KPriority": L.KEYWORDS_FIRST,
    "SPriority": L.SPACE_FIRST,
    "Trie-Qd": L.TRIE_QUADTREE,
    "NR": L.HEURISTIC,
}
_WITHOUT_REBUILDS = "NR"


class ApTree(Rebuilding):
    """See `index.contracts.ClauseIndex`.

    Parameters
    ----------
    square
        The square that contains most clauses and objects; by default about the existing boxes.
    variant
        The choice of partitions: HR, DP, KPriority, SPriority, Trie-Qd, or NR, which is HR without
        rebuilds for drift.
    fanout
        Maximum number of parts of a node (f).
    leaf_max
        Clauses of a leaf before it is divided (theta_p).
    drift_max
        Divergence from which a node is rebuilt (theta_KL).
    change_share
        Fraction of a node's entries that must have been inserted or removed before that.
    is_rarest_first
        Whether the order of keywords begins with the rarest; by default, with the most frequent.
    follows_motion
        Whether moves of clauses add to the cost of dividing space (section 4.3.1).
    workload
        Objects that represent those to be matched.

    Raises
    ------
    ValueError
        If there is no such variant.
    """

    def __init__(  # noqa: PLR0913 - the paper's parameters, by name
        self,
        square: Square | None = None,
        *,
        variant: str = "HR",
        fanout: int = 200,
        leaf_max: int = 40,
        drift_max: float = 0.001,
        change_share: float = 0.2,
        is_rarest_first: bool = False,
        follows_motion: bool = False,
        workload: ObjectBatch | None = None,
    ) -> None:
        if variant not in _VARIANTS:
            raise ValueError(f"variant is {variant!r}, must be one of {', '.join(_VARIANTS)}")
        if variant == _WITHOUT_REBUILDS:
            drift_max = np.inf
        self._arrays = TreeArrays.of(fanout, leaf_max, drift_max, change_share, _VARIANTS[variant])
        self._table = self._arrays.table
        self._rebuilds = Rebuilds(self._arrays, square, is_rarest_first=is_rarest_first)
        self._follows_motion = follows_motion
        self.candidate_count = 0
        self._none: Floats = np.zeros(1)
        if workload is not None:
            self._arrays.sample(workload, 1)

    def __len__(self) -> int:
        return len(self._table)

    def insert(self, ids: Ints, boxes: Boxes, required: KeywordLists) -> None:
        """Add clauses."""
        validate_clauses(ids, boxes, required)
        slots = self._table.append(ids, required, columns_of(boxes))
        if not len(ids):
            return
        if self._follows_motion:
            self._arrays.motions.stand(slots)
        self._rebuilds.know(boxes, required)
        if self._rebuilds.is_bulk(len(ids)):
            self._rebuilds.plant()
            return
        self._change(slots, None, leaves=False)
        self._rebuilds.ride(len(ids))

    def move(self, ids: Ints, boxes: Boxes) -> None:
        """Change the boxes of clauses."""
        validate_boxes(ids, boxes)
        slots = self._table.distinct_slots(ids)
        if not len(ids):
            return
        if self._follows_motion:
            self._arrays.motions.move(slots, self._table.rows, boxes, len(self))
        self._rebuilds.know_boxes(boxes)
        self._change(slots, boxes, leaves=True)
        self._rebuilds.ride(len(ids))

    def remove(self, ids: Ints) -> None:
        """Remove clauses."""
        slots = self._table.take(ids)
        self._change(slots, None, leaves=True)
        self._rebuilds.forget(self._table.keyword_lists(slots))  # they are in the order until here
        self._table.discard(slots)
        self._rebuilds.ride(len(ids))

    def match(self, objects: ObjectBatch) -> Matches:
        """Find the clauses that match."""
        found, candidates = self._arrays.match(objects)
        self.candidate_count += candidates
        self._arrays.sample(objects, L.SEEN_STRIDE)
        if self._follows_motion:
            self._arrays.motions.come(len(objects))
        self._rebuilds.ride(len(objects))
        return found

    def check(self) -> None:
        """Verify every invariant. Slow."""
        self._table.check()
        check_tree(self._arrays.tree(), self._rebuilds.job(), self._table.used())

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        return self._arrays.memory_bytes() + self._rebuilds.memory_bytes()

    def _change(self, slots: Numbers, boxes: Boxes | None, *, leaves: bool) -> None:
        """Remove clauses, insert them with the given boxes, or insert them for the first time."""
        arrays, rebuilds = self._arrays, self._rebuilds
        enters = boxes is not None or not leaves
        columns = list(columns_of(boxes).values()) if boxes is not None else [self._none] * 4
        arrays.meta[[L.DONE, L.STACK_COUNT]] = 0
        while True:
            status = change_kernels.change_all(
                arrays.tree(), rebuilds.job(), slots, leaves, enters, *columns
            )
            if status == L.FINISHED:
                return
            if status == L.HAS_DUE:
                rebuilds.settle([int(node) for node in arrays.due[: arrays.meta[L.DUE_COUNT]]])
                arrays.meta[L.DUE_COUNT] = 0
            else:
                arrays.grow(rebuilds.job_arrays)
