"""IGPT."""

from __future__ import annotations

import numpy as np

from index.baselines.igpt import match_kernels, place_kernels
from index.baselines.igpt.invariants import check_tree
from index.baselines.igpt.layout import (
    CELL_DTYPE,
    CELLS_WANTED,
    CHILDREN,
    DEPTH_MAX,
    ENTRIES_WANTED,
    ENTRY_DTYPE,
    FREE_ROW,
    GROUP_DTYPE,
    KEYS_WANTED,
    MARK_DTYPE,
    META_SIZE,
    NOTHING,
    ROOMS_MAX,
    ROWS_WANTED,
    SUBSCRIPTION_DTYPE,
    Settings,
    Slots,
    Tree,
)
from index.baselines.igpt.match_kernels import SEEN_SIZE, Asked, Scratch
from index.batches import InterestBatch, Ints, Matches, ObjectBatch, ReachBatch
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
_ROOM_MIN = 64
_CHANGE = 2.0
"""Without a square, one is looked for anew when there are so many times more subscriptions."""


class Igpt:
    """See `index.contracts.SubscriptionIndex`.

    Parameters
    ----------
    square
        The root; by default the index finds its own. Its diagonal is MaxDist.
    capacity
        How many subscriptions a leaf has before it is divided.
    groups
        Into how many groups a long list is partitioned.
    """

    _is_grouped = True

    def __init__(
        self, square: Square | None = None, capacity: int = CAPACITY, groups: int = GROUPS
    ) -> None:
        if capacity < 1 or groups < 1:
            raise ValueError(f"capacity is {capacity} and groups {groups}, must be positive")
        self._table = SubscriptionTable(SUBSCRIPTION_DTYPE)
        self._capacity = capacity
        self._groups_max = groups if self._is_grouped else 1
        self._is_fixed = square is not None
        self._square = Square(*square) if square is not None else Square(0.0, 0.0, 1.0)
        self._squared_count = 0
        self._stamp = 0
        self._vector = new_vector(1)
        self._marks = np.zeros(_ROOM_MIN, dtype=MARK_DTYPE)
        self._stack: Slots = np.zeros(_ROOM_MIN, dtype=np.int32)
        self._order: Slots = np.zeros(_ROOM_MIN, dtype=np.int32)
        self._seen: Ints = np.zeros(SEEN_SIZE, dtype=np.int64)
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
        """Give subscriptions a new place and reach."""
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
        """Find who is affected."""
        words = objects.keywords
        norms = self._table.norms(objects)
        asked = Asked(objects.ids, objects.x_m, objects.y_m, words.offsets, words.ids, norms)
        most = int(np.diff(words.offsets).max(initial=0))
        scratch = Scratch(
            new_vector(most),
            np.empty(CHILDREN * (DEPTH_MAX + 1), dtype=np.int32),
            np.empty(most, dtype=np.int32),
            *np.empty((2, most * (self._groups_max + 1)), dtype=np.int32),
            self._order,
        )
        tree, seen = self._tree(), self._seen
        return collected(
            len(objects),
            lambda row, offsets, found: match_kernels.match(
                tree, asked, scratch, row, offsets, found, seen
            ),
        )

    @property
    def candidate_count(self) -> int:
        """How many subscriptions were verified so far."""
        return int(self._seen[match_kernels.CANDIDATES])

    @property
    def visited_count(self) -> int:
        """How many entries of lists were looked at so far, one by one."""
        return int(self._seen[match_kernels.VISITED])

    def check(self) -> None:
        """Verify every invariant. Slow."""
        self._table.check()
        check_tree(self._tree(), self._table.used())

    def memory_bytes(self) -> int:
        """Size of all arrays."""
        own = (self._cells, self._groups, self._list_keys, self._list_values, self._entries)
        rest = (self._marks, self._stack, self._order)
        return sum(array.nbytes for array in (*own, *rest)) + self._table.memory_bytes()

    def _plant(self) -> None:
        """Begin without entries."""
        self._meta: Ints = np.zeros(META_SIZE, dtype=np.int64)
        self._meta[[GROUP_FREE, FREE_ROW]] = NOTHING
        self._cells = np.zeros(_ROOM_MIN, dtype=CELL_DTYPE)
        self._groups = np.zeros(_ROOM_MIN, dtype=GROUP_DTYPE)
        self._list_keys, self._list_values = new_cells(2 * _ROOM_MIN)
        self._entries = np.zeros(_ROOM_MIN, dtype=ENTRY_DTYPE)
        self._free_entries: Slots = np.full(ROOMS_MAX, NOTHING, dtype=np.int32)
        self._settings = Settings(
            2.0 * self._square.half_m * 2.0**0.5, self._capacity, self._groups_max, self._is_grouped
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
        """Lengthen what a kernel said it lacks."""
        places = [CELLS_WANTED, ROWS_WANTED, KEYS_WANTED, ENTRIES_WANTED]
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
    """IGPT without its group techniques."""

    _is_grouped = False
