"""The SQ+-tree: a subscription index by keyword combination, place, and size of the object.

Operations: insert, move and remove make, for each combination of the subscription's keywords, a hash
look-up and, if many subscriptions share the combination, a descent of a quadtree. Match walks the
existing combinations of the object's keywords, and in each the cells that hold candidates.

Plan: an object of m keywords that shares exactly i of them with a subscription of n keywords matches iff
it lies in the disc about the anchor of radius reach - weight * textdist(i, n, m). So a subscription has
an entry for each combination of its keywords whose disc is not empty for any m. A combination is a path
in a trie. If it has more than a few entries, they form a quadtree whose cells keep, for each class of m,
the largest radius within. These thresholds are exact, while the SQ-tree combines those of unlike
subscriptions in one. With TFIDF, sums of squared weights replace the numbers of keywords
(`closeness_kernels`).

Most combinations belong to a few subscriptions only. So the trie grows on demand: a combination is a
*bucket*, a list of its subscriptions, verified one by one, until there are more than BUCKET_MAX; then it
is *opened*, and gets entries and children. Paths have keywords in decreasing order of their ids: a
vocabulary numbers keywords in order of first occurrence, so rare ones tend to come first and most paths
end soon. An opened node stays open until no subscription has its combination.

Subscriptions of more than COMBINED_MAX keywords, and those of infinite reach, have entries for single
keywords only, with the radius of the best case, and are verified.

Coordinates, reaches and weights of entries are float32, rounded outwards; candidates that pass are tested
in float64.
"""

from __future__ import annotations

import numpy as np

from index.batches import Floats, InterestBatch, Ints, KeywordLists, Matches, ObjectBatch, ReachBatch
from index.sq_plus_tree import entry_kernels
from index.sq_plus_tree import layout as L
from index.sq_plus_tree.closeness import class_closeness, closeness_table
from index.sq_plus_tree.entry_kernels import (
    GROUPS_SPARE,
    MEMBERS_SPARE,
    NODES_SPARE,
    OUT_OF_ROOM,
    entries_needed,
)
from index.sq_plus_tree.invariants import check_forest
from index.sq_plus_tree.layout import Forest, Slots
from index.sq_plus_tree.match_kernels import Room, match
from index.sq_plus_tree.walk_kernels import new_walk
from index.square import Square
from index.tables import SlotTable
from index.tables.growth import as_long, longer, longer_pool
from index.tables.id_map import new_cells, rehashed
from index.tables.id_map_kernels import LOAD_MAX
from index.tables.keyword_weights import KeywordWeights
from index.tables.quad_kernels import GROUP_FREE
from index.tables.threads import ahead_of, core_count
from safe_region.scoring.formulas import Similarity

_PART_MIN = 32
"""The minimum number of objects in a part for one core, if there are more than that."""
_FOUND_MIN = 64
_WORLD_M = 30_000_000.0
"""Half a side of the root if none is given: it contains the Earth; quadtrees are some levels deeper."""
_COORDINATES = ("x_m", "y_m", "radius_m", "reach_m", "reach_id")


class SqPlusTree:
    """See `index.contracts.SubscriptionIndex`.

    Parameters
    ----------
    square
        The square that contains most anchors; by default the whole Earth.
    """

    def __init__(self, square: Square | None = None) -> None:
        self._table = SlotTable(L.SUBSCRIPTION_DTYPE)
        self._root: Floats = np.array(square or (0.0, 0.0, _WORLD_M))
        self._weights = KeywordWeights()
        self._closeness = closeness_table()
        self._class_closeness = class_closeness(self._closeness)
        self._found_room = _FOUND_MIN
        self._meta: Ints = np.zeros(L.META_SIZE, dtype=np.int64)
        self._meta[L.NODE_END] = L.TRIE_ROOT + 1
        self._meta[L.ENTRY_END] = L.SPARE + 1
        self._meta[[L.FREE_NODE, GROUP_FREE]] = L.NOTHING
        self._nodes = np.zeros(2 * NODES_SPARE, dtype=L.NODE_DTYPE)
        self._node_keys, self._node_values = new_cells(256)
        self._members: Slots = np.zeros(2 * MEMBERS_SPARE, dtype=np.int32)
        self._free_members: Slots = np.full(L.ROOMS_MAX, L.NOTHING, dtype=np.int32)
        self._cells = np.zeros(8 * GROUPS_SPARE, dtype=L.CELL_DTYPE)
        self._threshold_m = np.zeros((8 * GROUPS_SPARE, L.CLASSES), dtype=np.float32)
        self._entries = np.zeros(2 * entries_needed(self._meta), dtype=L.ENTRY_DTYPE)
        self._entry_slots: Slots = np.zeros(len(self._entries), dtype=np.int32)
        self._free_entries: Slots = np.full(L.ROOMS_MAX, L.NOTHING, dtype=np.int32)
        self._pending: Slots = np.zeros(L.PENDING_MAX, dtype=np.int32)
        self._scratch = np.zeros(1, dtype=L.SUBSCRIPTION_DTYPE)
        self._nothing: Floats = np.empty(0)
        self._candidates = 0

    def __len__(self) -> int:
        return len(self._table)

    def insert(self, reaches: ReachBatch, interests: InterestBatch) -> None:
        """Add subscriptions.

        Raises
        ------
        ValueError
            If the index would contain interests of TFIDF and others. Nothing is inserted.
        """
        is_weighed = self._is_weighed(interests)
        columns = {name: getattr(reaches, name) for name in _COORDINATES}
        columns |= {
            "weight_m": interests.weight_m,
            "similarity": interests.similarity,
            "norm": interests.norms(),
        }
        slots = self._table.append(reaches.ids, interests.keywords, columns)
        self._meta[L.IS_WEIGHED] = is_weighed
        if is_weighed:
            self._weights.note(interests)
        self._enter(slots)

    def move(self, reaches: ReachBatch) -> None:
        """Change the positions and reaches of subscriptions."""
        slots = self._table.slots(reaches.ids)
        rows = self._table.rows
        changes = np.isinf(reaches.reach_m) != np.isinf(rows["reach_m"][slots])
        changes &= rows["keyword_count"][slots] <= L.COMBINED_MAX
        if changes.any():
            # These change between single keywords and combinations.
            self._leave(slots[changes])
            for name in _COORDINATES:
                rows[name][slots[changes]] = getattr(reaches, name)[changes]
            self._enter(slots[changes])
            slots, reaches = slots[~changes], reaches.part(~changes)
        while (
            entry_kernels.move_all(
                self._forest(),
                new_walk(),
                slots,
                reaches.x_m,
                reaches.y_m,
                reaches.radius_m,
                reaches.reach_m,
                reaches.reach_id,
                self._scratch,
            )
            == OUT_OF_ROOM
        ):
            self._grow()

    def remove(self, ids: Ints) -> None:
        """Remove subscriptions."""
        slots = self._table.distinct_slots(ids)
        self._leave(slots)
        self._table.remove(ids)

    def match(self, objects: ObjectBatch) -> Matches:
        """Find the affected subscriptions; large batches use all cores."""
        words = objects.keywords
        norm2 = objects.norms() if self._meta[L.IS_WEIGHED] else self._nothing
        cuts = list(range(0, len(objects), max(_PART_MIN, -(-len(objects) // core_count())))) or [0]
        parts = list(zip(cuts, [*cuts[1:], len(objects)], strict=True))
        found = list(ahead_of(parts, lambda part: self._match_part(objects, words, norm2, *part)))
        self._candidates += sum(seen for _, _, seen in found)
        if len(found) == 1:
            return Matches(*found[0][:2])
        ends = np.cumsum([0, *(offsets[-1] for offsets, _, _ in found)])
        offsets = [part[:-1] + end for (part, _, _), end in zip(found, ends, strict=False)]
        nothing = np.empty(0, dtype=np.int64)
        return Matches(
            np.concatenate([*offsets, ends[-1:]]),
            np.concatenate([nothing, *(ids for _, ids, _ in found)]),
        )

    def observe(self, objects: ObjectBatch) -> None:
        """Do nothing: this index does not adapt to objects."""

    def _match_part(
        self, objects: ObjectBatch, words: KeywordLists, norm2: Floats, start: int, stop: int
    ) -> tuple[Ints, Ints, int]:
        """Match consecutive objects; return offsets, ids, and the number of verified subscriptions."""
        part = slice(start, stop)
        is_weighed = bool(self._meta[L.IS_WEIGHED])
        factors = np.empty((1, 1, 1), dtype=np.float32) if is_weighed else self._closeness
        offsets = np.zeros(stop - start + 1, dtype=np.int64)
        stack = np.empty(L.CHILDREN * (L.DEPTH_MAX + 1), dtype=np.int32)
        seen = np.zeros(1, dtype=np.int64)
        while True:
            found = np.empty(self._found_room, dtype=np.int64)
            seen[0] = 0
            total = match(
                self._forest(),
                new_walk(),
                Room(stack, factors, found, seen),
                objects.ids[part],
                objects.x_m[part],
                objects.y_m[part],
                words.offsets[start : stop + 1],
                words.ids,
                np.empty(len(words.ids)),
                norm2[part] if is_weighed else norm2,
                offsets,
            )
            if total <= len(found):
                return offsets, found[:total], int(seen[0])
            self._found_room = max(self._found_room, 2 * total)

    @property
    def candidate_count(self) -> int:
        """Return the number of subscriptions verified so far."""
        return self._candidates

    def check(self) -> None:
        """Verify every invariant. Slow."""
        self._table.check()
        check_forest(self._forest(), self._table.used())

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        arrays = (array for array in self._forest() if array is not self._table.rows)
        own = sum(array.nbytes for array in arrays if array is not self._table.pool)
        return own + self._table.memory_bytes()

    def _is_weighed(self, interests: InterestBatch) -> bool:
        """Return whether keywords have weights after interests are added."""
        are = interests.similarity == Similarity.TFIDF
        is_weighed = bool(self._meta[L.IS_WEIGHED] if len(self._table) else are.any())
        if (are != is_weighed).any():
            raise ValueError("interests of TFIDF and others cannot be in one index")
        return is_weighed

    def _enter(self, slots: Slots) -> None:
        while entry_kernels.insert_all(self._forest(), new_walk(), slots) == OUT_OF_ROOM:
            self._grow()

    def _leave(self, slots: Slots) -> None:
        while entry_kernels.remove_all(self._forest(), new_walk(), slots) == OUT_OF_ROOM:
            self._grow()

    def _forest(self) -> Forest:
        return Forest(
            self._table.rows,
            self._table.pool,
            self._node_keys,
            self._node_values,
            self._nodes,
            self._members,
            self._free_members,
            self._cells,
            self._threshold_m,
            self._entries,
            self._entry_slots,
            self._free_entries,
            self._weights.squares,
            self._closeness,
            self._class_closeness,
            self._root,
            self._pending,
            self._meta,
        )

    def _grow(self) -> None:
        """Lengthen the arrays that have no space for one more step."""
        meta = self._meta
        self._nodes = longer(self._nodes, int(meta[L.NODE_END]) + NODES_SPARE)
        self._members = longer(self._members, int(meta[L.MEMBER_END]) + MEMBERS_SPARE)
        if meta[L.NODE_COUNT] + NODES_SPARE > len(self._node_keys) * LOAD_MAX:
            self._node_keys, self._node_values = rehashed(
                self._node_keys, self._node_values, 2 * len(self._node_keys)
            )
        self._cells = longer_pool(self._cells, meta, GROUPS_SPARE)
        self._threshold_m = as_long(self._threshold_m, len(self._cells))
        self._entries = longer(self._entries, int(entries_needed(meta)))
        self._entry_slots = as_long(self._entry_slots, len(self._entries))
