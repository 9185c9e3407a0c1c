"""IGPT: a quadtree with an inverted file in each leaf, whose lists are groups of similar preference.

Operations: insert and remove O(keywords * (groups + group)) a subscription, amortised; move the same
within its leaf; match the lists of an object's keywords in each leaf, except skipped groups.

Plan: a subscription is in one leaf, and in its lists for all keywords. It matches an object only if their
cosine is lambda_T or more, which depends on its reach, its preference and the distance (`bound_kernels`).
Lists are partitioned by preference into groups, which are skipped as a whole if none of their
subscriptions can match. In a group entries are in the order of kScore*, with bounds from each to the end,
so that a scan stops early. The remaining entries are tested one by one: the keyword must be in the prefix
for the distance, and the common keywords so far, plus the maximum for the following ones, must reach
lambda_T. The rest is verified.

IPT is the same without groups, cells and stopping: each entry of each list is tested.

Source: skype.txt sections 5.1 to 5.5: definitions 4 to 8, theorems 1 and 2 (individual), definition 9,
lemma 5, theorems 3 and 4 (groups), lemma 6 (cells), algorithm 1.

Deviations from the paper:
- algorithm 1 as printed loses results. `match_kernels` has the reason and the correction: theorem 2 is
  used only if no shared keyword can have been skipped, and candidates are verified from scratch;
- skips at a keyword are not recorded: at the next one, the same bounds skip the subscription again;
- scores are lengths: lambda_T contains the reach instead of kScore. A subscription for which text does
  not count, or any object suffices, is apart, in a group of its own (`bound_kernels`). A radius is
  subtracted from each distance. MaxDist is the diagonal of the root; greater distances count as MaxDist;
- keywords are sets, so a keyword has one weight, and within a set weights decrease along the order, which
  is by decreasing weight (by decreasing id if all weights are equal: `index.tables.vector_kernels`). So
  maxwt of a keyword is its own weight. With Jaccard and Dice the cosine bounds the similarity;
- the groups of a list are its own quantiles, as many as have GROUP_LEAST entries, up to 10; they are
  recomputed when the list has doubled, or shrunk to a quarter;
- the first entry that ends a scan is found by the scan itself, not by binary search: all entries before
  it are visited anyway;
- inner cells have the largest reach below them too, so that whole branches are skipped;
- all lists of a leaf are looked up before the first is read, and groups are prefetched: a third less
  time.

When a reach changes, in either direction, its entries move to their new places, and the bounds of earlier
entries and of the group are recomputed at once: bounds are never stale. The same holds for the largest
reaches of cells. Statistics are float32, rounded outwards; verification is in float64.
"""

from __future__ import annotations

import numpy as np

from index.batches import InterestBatch, Ints, Matches, ObjectBatch, ReachBatch
from index.published.igpt import layout as L
from index.published.igpt import match_kernels, place_kernels
from index.published.igpt.invariants import check_tree
from index.published.igpt.layout import Settings, Slots, Tree
from index.published.igpt.match_kernels import SEEN_SIZE, Scratch
from index.square import Square
from index.tables.buckets import square_of
from index.tables.growth import as_long, longer, longer_pool
from index.tables.id_map import new_cells, rehashed
from index.tables.matches import collected
from index.tables.quad_kernels import GROUP_FREE
from index.tables.subscriptions import SubscriptionTable
from index.tables.vector_kernels import new_vector

CAPACITY = 1_000
GROUPS = 10
"""Both are the paper's."""
_ROOM_MIN = 64
_CHANGE = 2.0
"""Without a square, the index chooses a new one when the number of subscriptions grows by this factor."""


class Igpt:
    """See `index.contracts.SubscriptionIndex`.

    Parameters
    ----------
    square
        The root; by default the index finds its own. Its diagonal is MaxDist.
    capacity
        The number of subscriptions of a leaf before it is divided.
    groups
        The maximum number of groups of a long list.
    near
        Whether groups are bounded more tightly than in the paper, see `bound_kernels`.
    """

    _is_grouped = True

    def __init__(
        self,
        square: Square | None = None,
        capacity: int = CAPACITY,
        groups: int = GROUPS,
        *,
        near: bool = False,
    ) -> None:
        if capacity < 1 or groups < 1:
            raise ValueError(f"capacity is {capacity} and groups {groups}, must be positive")
        self._table = SubscriptionTable(L.SUBSCRIPTION_DTYPE)
        self._capacity = capacity
        self._group_max = groups if self._is_grouped else 1
        self._is_near = near
        self._is_fixed = square is not None
        self._square = Square(*map(float, square or (0.0, 0.0, 1.0)))
        self._squared_count = 0
        self._vector = new_vector(1)
        self._marks = np.zeros(_ROOM_MIN, dtype=L.MARK_DTYPE)
        self._stack: Slots = np.zeros(_ROOM_MIN, dtype=np.int32)
        self._order: Slots = np.zeros(_ROOM_MIN, dtype=np.int32)
        self._seen: Ints = np.zeros(SEEN_SIZE, dtype=np.int64)
        self._meta: Ints = np.zeros(L.META_SIZE, dtype=np.int64)
        self._plant()

    def __len__(self) -> int:
        return len(self._table)

    def insert(self, reaches: ReachBatch, interests: InterestBatch) -> None:
        """Add subscriptions."""
        slots = self._table.add(reaches, interests, {})
        most = int(np.diff(interests.keywords.offsets).max(initial=0))
        if most > len(self._vector.words):
            self._vector = new_vector(most)
        if not self._is_fixed and len(self) > self._squared_count * _CHANGE:
            self._squared_count = len(self)
            used = self._table.used()
            square = square_of(self._table.rows["x_m"][used], self._table.rows["y_m"][used])
            if not self._square.fits(square):
                self._square = square
                self._plant()
                slots = used
        count = len(self._table.rows)
        self._marks = as_long(self._marks, count)
        self._stack = as_long(self._stack, count)
        self._order = as_long(self._order, count)
        place_kernels.push_all(self._tree(), slots)
        self._work_off()

    def move(self, reaches: ReachBatch) -> None:
        """Change the positions and reaches of subscriptions."""
        slots = self._table.slots(reaches.ids)
        place_kernels.move_all(
            self._tree(),
            slots,
            reaches.x_m,
            reaches.y_m,
            reaches.radius_m,
            reaches.reach_m,
            reaches.reach_id,
        )
        self._work_off()

    def remove(self, ids: Ints) -> None:
        """Remove subscriptions."""
        slots = self._table.take(ids)
        place_kernels.take_out_all(self._tree(), slots)
        self._work_off()
        self._table.discard(slots)

    def match(self, objects: ObjectBatch) -> Matches:
        """Find the affected subscriptions."""
        arrivals = self._table.arrivals(objects)
        most = int(np.diff(objects.keywords.offsets).max(initial=0))
        scratch = Scratch(
            new_vector(most),
            np.empty(L.CHILDREN * (L.DEPTH_MAX + 1), dtype=np.int32),
            np.empty(most, dtype=np.int32),
            np.empty(most * (self._group_max + 1), dtype=np.int32),
            np.empty(most * (self._group_max + 1), dtype=np.int32),
            self._order,
        )
        tree, seen = self._tree(), self._seen
        return collected(
            len(objects),
            lambda row, offsets, found: match_kernels.match(
                tree, arrivals, scratch, row, offsets, found, seen
            ),
        )

    def observe(self, objects: ObjectBatch) -> None:
        """Do nothing: this index does not adapt to objects."""

    @property
    def candidate_count(self) -> int:
        """Return the number of subscriptions verified so far."""
        return int(self._seen[match_kernels.CANDIDATES])

    @property
    def visited_count(self) -> int:
        """Return the number of list entries tested so far, one by one."""
        return int(self._seen[match_kernels.VISITED])

    def check(self) -> None:
        """Verify every invariant. Slow."""
        self._table.check()
        check_tree(self._tree(), self._table.used())

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        own = (self._cells, self._groups, self._list_keys, self._list_values, self._entries)
        rest = (self._marks, self._stack, self._order)
        return sum(array.nbytes for array in (*own, *rest)) + self._table.memory_bytes()

    def _plant(self) -> None:
        """Create the arrays without entries. Marks are kept: no number of an object occurs twice."""
        stamp = self._meta[L.STAMP]
        self._meta = np.zeros(L.META_SIZE, dtype=np.int64)
        self._meta[[GROUP_FREE, L.FREE_ROW]] = L.NOTHING
        self._meta[L.STAMP] = stamp
        self._cells = np.zeros(_ROOM_MIN, dtype=L.CELL_DTYPE)
        self._groups = np.zeros(_ROOM_MIN, dtype=L.GROUP_DTYPE)
        self._list_keys, self._list_values = new_cells(2 * _ROOM_MIN)
        self._entries = np.zeros(_ROOM_MIN, dtype=L.ENTRY_DTYPE)
        self._free_entries: Slots = np.full(L.ROOMS_MAX, L.NOTHING, dtype=np.int32)
        self._settings = Settings(
            2.0 * self._square.half_m * 2.0**0.5,
            self._capacity,
            self._group_max,
            self._is_grouped,
            self._is_near,
        )
        place_kernels.plant(self._tree(), *self._square)

    def _work_off(self) -> None:
        while not place_kernels.work_off(self._tree()):
            self._grow()

    def _tree(self) -> Tree:
        return Tree(
            self._table.rows,
            self._table.pool,
            self._table.squares,
            self._table.uses,
            self._cells,
            self._groups,
            self._list_keys,
            self._list_values,
            self._entries,
            self._free_entries,
            self._stack,
            self._marks,
            self._vector,
            self._order,
            self._meta,
            self._settings,
        )

    def _grow(self) -> None:
        """Lengthen the arrays that a kernel reported as full."""
        places = [L.CELLS_WANTED, L.ROWS_WANTED, L.KEYS_WANTED, L.ENTRIES_WANTED]
        cells, rows, keys, entries = self._meta[places].tolist()
        self._meta[places] = 0
        if cells:
            self._cells = longer_pool(self._cells, self._meta, cells)
        if rows:
            self._groups = longer(self._groups, len(self._groups) + rows)
        if keys:
            self._list_keys, self._list_values = rehashed(
                self._list_keys, self._list_values, 2 * len(self._list_keys)
            )
        if entries:
            self._entries = longer(self._entries, len(self._entries) + entries)


class Ipt(Igpt):
    """IGPT without its group techniques: individual pruning only."""

    _is_grouped = False
