"""The SQ+-tree: a subscription index by keyword combination, place, and size of the object.

Operations: insert, move and remove O(2^keywords * depth) a subscription, move usually in place; match
walks the combinations of the object's keywords that exist, and in each the cells that hold candidates.

Plan: an object o of m keywords that shares exactly i of them with a subscription s of n keywords matches
iff it lies in the disc about the anchor of radius reach - weight * textdist(i, n, m). So every
subscription has an entry for every combination of its keywords, in the group of those with equally many
keywords and the same similarity: there the radius of an entry follows from m alone. A combination is a
path in a trie. A group of more than a few entries is a quadtree whose cells keep, for each class of m,
the largest radius within: exact thresholds, where the SQ-tree has those of unlike subscriptions in one.
Every candidate that passes the disc of the combination is a result if the combination is all they share;
it is found once.

Subscriptions of more than COMBINED_MAX keywords have an entry for each keyword, with the radius of the
best case, and are verified. An infinite reach is entered for single keywords only.

Coordinates, reaches and weights of entries are float32, rounded outwards; what passes is tested in
float64.
"""

from __future__ import annotations

import numpy as np

from index.batches import Floats, InterestBatch, Ints, Matches, ObjectBatch, ReachBatch
from index.sq_plus_tree import entry_kernels, match_kernels
from index.sq_plus_tree.entry_kernels import CELLS_SPARE, OUT_OF_ROOM, SPARE
from index.sq_plus_tree.invariants import check_forest
from index.sq_plus_tree.layout import (
    CELL_DTYPE,
    CELL_END,
    CHILDREN,
    CLASSES,
    COMBINED_MAX,
    DEPTH_MAX,
    ENTRY_DTYPE,
    ENTRY_END,
    FREE_CELLS,
    FREE_GROUP,
    FREE_NODE,
    GROUP_DTYPE,
    GROUP_END,
    LEAF_MAX,
    META_SIZE,
    NODE_COUNT,
    NODE_DTYPE,
    NODE_END,
    NOTHING,
    ROOM_MAX,
    ROOMS_MAX,
    SUBSCRIPTION_DTYPE,
    TRIE_ROOT,
    Forest,
    Slots,
)
from index.sq_plus_tree.text_distances import text_distances
from index.tables import SlotTable
from index.tables.id_map_kernels import LOAD_MAX, NO_KEY, copy_all
from index.tables.stretches import Stretches

Square = tuple[float, float, float]
"""Centre and half a side of the root, in metres."""

_ROOM_MIN = 64
_FOUND_MIN = 64
_WORLD_M = 30_000_000.0
"""Half a side of the root if none is given: it holds the Earth; quadtrees are some levels deeper."""
_PATH_MAX = 65


class SqPlusTree:
    """See `index.contracts.SubscriptionIndex`.

    Parameters
    ----------
    square
        Where most anchors are; by default the whole Earth.
    """

    def __init__(self, square: Square | None = None) -> None:
        self._table = SlotTable(SUBSCRIPTION_DTYPE)
        self._places = Stretches()
        self._root: Floats = np.array(square or (0.0, 0.0, _WORLD_M))
        self._distances = text_distances()
        self._found_room = _FOUND_MIN
        self._node_keys: Ints = np.full(2 * _ROOM_MIN, NO_KEY, dtype=np.int64)
        self._node_values: Slots = np.zeros(2 * _ROOM_MIN, dtype=np.int32)
        self._nodes = np.zeros(_ROOM_MIN, dtype=NODE_DTYPE)
        self._groups = np.zeros(_ROOM_MIN, dtype=GROUP_DTYPE)
        self._cells = np.zeros(2 * CELLS_SPARE, dtype=CELL_DTYPE)
        self._threshold_m = np.zeros((2 * CELLS_SPARE, CLASSES), dtype=np.float32)
        self._entries = np.zeros(16 * LEAF_MAX, dtype=ENTRY_DTYPE)
        self._free_stretches: Slots = np.full(ROOMS_MAX, NOTHING, dtype=np.int32)
        self._meta: Ints = np.zeros(META_SIZE, dtype=np.int64)
        self._meta[NODE_END] = TRIE_ROOT + 1
        self._meta[ENTRY_END] = SPARE + 1
        for free in (FREE_NODE, FREE_GROUP, FREE_CELLS):
            self._meta[free] = NOTHING
        self._nodes[TRIE_ROOT]["parent"] = NOTHING
        self._nodes[TRIE_ROOT]["first_group"] = NOTHING
        self._seen: Ints = np.zeros(1, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._table)

    def insert(self, reaches: ReachBatch, interests: InterestBatch) -> None:
        """Add subscriptions."""
        slots = self._table.append(
            reaches.ids,
            interests.keywords,
            {
                "x_m": reaches.x_m,
                "y_m": reaches.y_m,
                "radius_m": reaches.radius_m,
                "reach_m": reaches.reach_m,
                "reach_id": reaches.reach_id,
                "weight_m": interests.weight_m,
                "similarity": interests.similarity,
            },
        )
        self._table.rows["place_start"][slots] = self._places.take(self._place_counts(slots))
        while entry_kernels.insert_all(self._forest(), slots) == OUT_OF_ROOM:
            self._grow()

    def move(self, reaches: ReachBatch) -> None:
        """Give subscriptions a new place and reach."""
        slots = self._table.slots(reaches.ids)
        self._table.rows["reach_id"][slots] = reaches.reach_id
        while (
            entry_kernels.move_all(
                self._forest(), slots, reaches.x_m, reaches.y_m, reaches.radius_m, reaches.reach_m
            )
            == OUT_OF_ROOM
        ):
            self._grow()

    def remove(self, ids: Ints) -> None:
        """Remove subscriptions."""
        slots = self._table.slots(ids)
        if len(np.unique(slots)) != len(slots):
            raise KeyError(f"id {ids[0]} is not in the index: it is twice in the batch")
        entry_kernels.remove_all(self._forest(), slots)
        self._places.give_back(self._table.rows["place_start"][slots], self._place_counts(slots))
        self._table.remove(ids)

    def match(self, objects: ObjectBatch) -> Matches:
        """Find who is affected."""
        forest = self._forest()
        offsets = np.zeros(len(objects) + 1, dtype=np.int64)
        stack = np.empty(CHILDREN * (DEPTH_MAX + 1), dtype=np.int32)
        path_nodes = np.empty(_PATH_MAX, dtype=np.int32)
        path_places = np.empty(_PATH_MAX, dtype=np.int32)
        while True:
            found = np.empty(self._found_room, dtype=np.int64)
            seen = self._seen.copy()
            total = match_kernels.match(
                forest,
                objects.ids,
                objects.x_m,
                objects.y_m,
                objects.keywords.offsets,
                objects.keywords.ids,
                offsets,
                found,
                path_nodes,
                path_places,
                stack,
                seen,
            )
            if total <= self._found_room:
                self._seen = seen
                return Matches(offsets, found[:total])
            self._found_room = 2 * total

    @property
    def candidate_count(self) -> int:
        """How many entries passed the disc of their combination so far."""
        return int(self._seen[0])

    def check(self) -> None:
        """Verify every invariant. Slow."""
        self._table.check()
        check_forest(self._forest(), self._table.used())

    def memory_bytes(self) -> int:
        """Size of all arrays."""
        arrays = (
            self._node_keys,
            self._node_values,
            self._nodes,
            self._groups,
            self._cells,
            self._threshold_m,
            self._entries,
            self._distances,
        )
        own = sum(array.nbytes for array in arrays)
        return own + self._table.memory_bytes() + self._places.memory_bytes()

    def _place_counts(self, slots: Slots) -> Ints:
        counts = self._table.rows["keyword_count"][slots].astype(np.int64)
        combined = (1 << np.minimum(counts, COMBINED_MAX)) - 1
        found: Ints = np.where(counts > COMBINED_MAX, counts, combined)
        return found

    def _forest(self) -> Forest:
        return Forest(
            self._table.rows,
            self._table.pool,
            self._places.values,
            self._node_keys,
            self._node_values,
            self._nodes,
            self._groups,
            self._cells,
            self._threshold_m,
            self._entries,
            self._free_stretches,
            self._distances,
            self._root,
            self._meta,
        )

    def _grow(self) -> None:
        """Double what is more than half full."""
        meta = self._meta
        if 2 * meta[NODE_END] >= len(self._nodes):
            self._nodes = _doubled(self._nodes)
        if meta[NODE_COUNT] >= len(self._node_keys) * LOAD_MAX / 2.0:
            keys = np.full(2 * len(self._node_keys), NO_KEY, dtype=np.int64)
            values = np.zeros(len(keys), dtype=np.int32)
            copy_all(self._node_keys, self._node_values, keys, values)
            self._node_keys, self._node_values = keys, values
        if 2 * meta[GROUP_END] >= len(self._groups):
            self._groups = _doubled(self._groups)
        if 2 * (meta[CELL_END] + CELLS_SPARE) >= len(self._cells):
            self._cells = _doubled(self._cells)
            self._threshold_m = _doubled(self._threshold_m)
        needed = meta[ENTRY_END] + (4 << int(meta[ROOM_MAX])) + 8 * LEAF_MAX
        while 2 * needed > len(self._entries):
            self._entries = _doubled(self._entries)


def _doubled(array: np.ndarray) -> np.ndarray:
    return np.concatenate([array, np.zeros_like(array)])
