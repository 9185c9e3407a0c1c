"""CIQ: covering cells of a quadtree, a textual bound for each subscription and cell, document at a time.

Operations: insert and remove O(keywords * cells * list) a subscription; move O(cells) within the smallest
cell, else the same; match the lists of an object's keywords in one cell of each level, merged.

Plan: the plane is a quadtree of some levels. The cells that cover a subscription form the partition of
the plane that is finest at its position: at each level the three quarters that do not contain it, and at
the last level the one that does. In each of them it has a textual bound MinT: the least similarity that
an object there must have if it were as near as the cell. Each cell has an inverted file, ordered by
subscription. An object lies in one cell of each level. In each the lists of its keywords are merged,
subscription by subscription; if the cosine is not below MinT, the subscription is verified.

Source: section 2.2 and figure 2 of skype.txt, which describes the CIQ of its reference 12. That paper is
not among ours. Without its time decay, as in Skype's evaluation.

Our choices:
- three levels, so ten covering cells (figure 2 has seven, which are two levels), see LEVELS;
- subscriptions are in the order of their slots, which are reused, instead of their ids;
- the lists of keywords are merged by a heap;
- MinT of a cell is for its nearest point, so every candidate is tested in float64, by the definition.
  With Jaccard and Dice MinT bounds the set-cosine, which is never less;
- with weight 0 or an infinite reach MinT is infinite, with a sign that excludes only cells that are too
  far away;
- MinT is stored as float32, rounded down.

Warnings: a keyword's list in a cell of the first level has three quarters of all subscriptions with the
keyword, so that an insertion before its end is slow. Cells are divided by place alone, not by the number
of subscriptions.
"""

from __future__ import annotations

import numpy as np

from index.batches import InterestBatch, Ints, Matches, ObjectBatch, ReachBatch
from index.published.ciq import cover_kernels, match_kernels
from index.published.ciq import layout as L
from index.published.ciq.invariants import check_cover
from index.published.ciq.layout import Cover, Singles
from index.published.ciq.match_kernels import Scratch
from index.square import Square
from index.tables.buckets import square_of
from index.tables.growth import as_long, longer
from index.tables.heap_kernels import Heap
from index.tables.id_map import new_cells, rehashed
from index.tables.matches import collected
from index.tables.quad_kernels import GROUP_FREE
from index.tables.runs import lengthened, new_runs
from index.tables.slots import Slots
from index.tables.subscriptions import SubscriptionTable
from index.tables.vector_kernels import new_vector

LEVELS = 3
"""Measured with 100,000 subscriptions: 656, 589, 508, 553 and 981 us an object with one level to five,
and 426, 719, 1,156, 1,410 and 2,090 bytes a subscription."""
_ROOM_MIN = 64
_CHANGE = 2.0
"""Without a square, the index chooses a new one when the number of subscriptions grows by this factor."""


class Ciq:
    """See `index.contracts.SubscriptionIndex`.

    Parameters
    ----------
    square
        The root; by default the index finds its own.
    levels
        The number of divisions: a subscription has 1 + 3 * levels covering cells.
    """

    def __init__(self, square: Square | None = None, levels: int = LEVELS) -> None:
        if levels < 1:
            raise ValueError(f"levels is {levels}, must be positive")
        self._table = SubscriptionTable(L.SUBSCRIPTION_DTYPE)
        self._is_fixed = square is not None
        self._square = Square(*map(float, square or (0.0, 0.0, 1.0)))
        self._squared_count = 0
        self._levels = levels
        self._seen: Ints = np.zeros(1, dtype=np.int64)
        self._plant()

    def __len__(self) -> int:
        return len(self._table)

    def insert(self, reaches: ReachBatch, interests: InterestBatch) -> None:
        """Add subscriptions."""
        columns = {"cell": np.full(len(reaches), L.NO_CELL, dtype=np.int32)}
        slots = self._table.add(reaches, interests, columns)
        if not self._is_fixed and len(self) > self._squared_count * _CHANGE:
            self._squared_count = len(self)
            used = self._table.used()
            square = square_of(self._table.rows["x_m"][used], self._table.rows["y_m"][used])
            if not self._square.fits(square):
                self._square = square
                self._table.rows["cell"][used] = L.NO_CELL
                self._plant()
                slots = used
        self._enter(slots)

    def move(self, reaches: ReachBatch) -> None:
        """Change the positions and reaches of subscriptions."""
        slots = self._table.slots(reaches.ids)
        cover_kernels.move_all(
            self._cover(),
            slots,
            reaches.x_m,
            reaches.y_m,
            reaches.radius_m,
            reaches.reach_m,
            reaches.reach_id,
        )
        self._enter(slots)

    def remove(self, ids: Ints) -> None:
        """Remove subscriptions."""
        slots = self._table.take(ids)
        cover_kernels.leave_all(self._cover(), slots)
        self._table.discard(slots)

    def match(self, objects: ObjectBatch) -> Matches:
        """Find the affected subscriptions."""
        cover, arrivals = self._cover(), self._table.arrivals(objects)
        most = int(np.diff(objects.keywords.offsets).max(initial=0))
        heap = Heap(np.empty(most, dtype=np.int32), np.empty(most, dtype=np.int32))
        lists = (np.empty(most, dtype=np.int32), np.empty(most, dtype=np.int32))
        scratch = Scratch(new_vector(most), heap, *lists)
        seen = self._seen
        return collected(
            len(objects),
            lambda row, offsets, found: match_kernels.match(
                cover, arrivals, scratch, row, offsets, found, seen
            ),
        )

    def observe(self, objects: ObjectBatch) -> None:
        """Do nothing: this index does not adapt to objects."""

    @property
    def candidate_count(self) -> int:
        """Return the number of subscriptions verified so far."""
        return int(self._seen[0])

    def check(self) -> None:
        """Verify every invariant. Slow."""
        self._table.check()
        check_cover(self._cover(), self._table.used())

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        arrays = (self._cells, self._bounds, self._lists, self._list_keys, self._list_values)
        runs = sum(array.nbytes for array in self._postings)
        return runs + sum(array.nbytes for array in arrays) + self._table.memory_bytes()

    def _plant(self) -> None:
        """Create the arrays without entries."""
        self._meta: Ints = np.zeros(L.META_SIZE, dtype=np.int64)
        self._meta[[GROUP_FREE, L.FREE_LIST]] = L.NO_LIST
        cells = L.CHILDREN * sum(L.CHILDREN**level for level in range(self._levels)) + L.CHILDREN
        self._cells = np.zeros(cells, dtype=L.CELL_DTYPE)
        self._bounds: Singles = np.zeros((_ROOM_MIN, L.CHILDREN * self._levels), dtype=np.float32)
        self._lists = np.zeros(_ROOM_MIN, dtype=L.LIST_DTYPE)
        self._list_keys, self._list_values = new_cells(2 * _ROOM_MIN)
        self._postings = new_runs(L.POSTING_DTYPE, _ROOM_MIN)
        cover_kernels.plant(self._cover(), *self._square)

    def _enter(self, slots: Slots) -> None:
        self._bounds = as_long(self._bounds, len(self._table.rows))
        while not cover_kernels.enter_all(self._cover(), slots):
            self._grow()

    def _cover(self) -> Cover:
        return Cover(
            self._table.rows,
            self._table.pool,
            self._table.squares,
            self._table.uses,
            self._cells,
            self._bounds,
            self._lists,
            self._list_keys,
            self._list_values,
            self._postings,
            self._meta,
            self._levels,
        )

    def _grow(self) -> None:
        """Lengthen the arrays that a kernel reported as full."""
        lists, keys, postings = self._meta[[L.LISTS_WANTED, L.KEYS_WANTED, L.POSTINGS_WANTED]].tolist()
        self._meta[[L.LISTS_WANTED, L.KEYS_WANTED, L.POSTINGS_WANTED]] = 0
        if lists:
            self._lists = longer(self._lists, len(self._lists) + lists)
        if keys:
            self._list_keys, self._list_values = rehashed(
                self._list_keys, self._list_values, 2 * len(self._list_keys)
            )
        if postings:
            self._postings = lengthened(self._postings, postings)
