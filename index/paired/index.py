"""Pairs: any clause index and any index of places make a moving index.

Operations: publish and retract are the clause index's `match`, and an insert or removal of the other.
Insert is the object index's `within`. Move is its `within` for the part of the new box outside the old
one, and the reverse: for strips, of all clauses at once (`difference_kernels`). That is the incremental
evaluation of ap-tree.txt, Algorithm 6, for any structure that separates subscriptions and objects: the
AP+k- and AP+s-Tree, IQ+- and RQ+-Tree, SS- and KK-Index of section 5.2, and pairs of a clause index and
an object index that are independent of each other.

Objects with areas: `within` tests their points. The query boxes are enlarged by the largest reach of an
area; the objects found are tested by their boxes. After removals the reach is computed anew, once as many
objects are gone as the table has rows.

Warnings: objects that expire leave the object index gradually, in `pass_time` and `publish`; until then
they are found, and omitted.
"""

from __future__ import annotations

import numpy as np

from index.batches import Boxes, Floats, Ints, KeywordLists, Matches, Moves, ObjectBatch
from index.contracts import ClauseIndex, InconsistentIndexError, PlaceIndex
from index.paired import difference_kernels as kernels
from index.paired.layout import CLAUSE_DTYPE, OBJECT_DTYPE
from index.paired.strips import table_of
from index.tables import SlotTable
from index.tables.clauses import columns_of, validate_boxes, validate_clauses
from index.tables.live_objects import LiveObjects
from index.tables.slots import Slots

_NOWHERE = (np.inf, np.inf, -np.inf, -np.inf)
_EVERYWHERE = (-np.inf, -np.inf, np.inf, np.inf)


class PairedIndex:
    """See `index.contracts.MovingIndex`.

    Parameters
    ----------
    clauses
        Finds the clauses that an object matches. Empty.
    objects
        Finds the objects that lie in a box. Empty.
    """

    def __init__(self, clauses: ClauseIndex, objects: PlaceIndex) -> None:
        self._clauses = clauses
        self._objects = objects
        self._boxes = SlotTable(CLAUSE_DTYPE)
        self._live = LiveObjects(OBJECT_DTYPE)
        self._beyond_m = np.zeros(4)
        """The maximum reach of areas from their points, or more: west, south, east, north."""
        self._gone_count = 0
        """Objects that were removed since this was computed."""
        self._looked_at = 0

    def __len__(self) -> int:
        return len(self._boxes)

    @property
    def clause_index(self) -> ClauseIndex:
        """The index that finds the clauses that an object matches."""
        return self._clauses

    @property
    def object_count(self) -> int:
        """Return the number of live objects."""
        return len(self._live)

    @property
    def candidate_count(self) -> int:
        """Return the number of clauses tested one by one, plus that of objects found by their points."""
        return self._looked_at + self._clauses.candidate_count

    def insert(self, ids: Ints, boxes: Boxes, required: KeywordLists) -> Matches:
        """Add clauses; return the live objects that each matches."""
        validate_clauses(ids, boxes, required)
        slots = self._boxes.append(ids, required, columns_of(boxes))
        self._clauses.insert(ids, boxes, required)
        return self._changes(slots, np.full((len(ids), 4), _NOWHERE), boxes, None).entered

    def move(self, ids: Ints, boxes: Boxes, same: Boxes | None = None) -> Moves:
        """Change the boxes of clauses; return the matches of each before or after, and not both."""
        validate_boxes(ids, boxes)
        slots = self._boxes.distinct_slots(ids)
        rows = self._boxes.rows
        old = table_of(Boxes(*(rows[name][slots] for name in columns_of(boxes))))
        for name, values in columns_of(boxes).items():
            rows[name][slots] = values
        self._clauses.move(ids, boxes)
        return self._changes(slots, old, boxes, same)

    def remove(self, ids: Ints) -> None:
        """Remove clauses."""
        self._boxes.remove(ids)
        self._clauses.remove(ids)

    def publish(self, objects: ObjectBatch, expiry_ms: Ints) -> Matches:
        """Add objects; return the clauses that match each."""
        self._forget(self._live.replaced(objects))
        self._forget(self._live.due())
        self._live.append(objects, expiry_ms)
        self._objects.insert(objects)
        if objects.boxes is not None:
            reach_m = objects.boxes.reach_m(objects.x_m, objects.y_m)
            self._beyond_m = np.maximum(self._beyond_m, reach_m)
        found = self._clauses.match(objects)
        is_over = expiry_ms <= self._live.now_ms
        counts = np.diff(found.offsets)
        return Matches.of(np.where(is_over, 0, counts), found.ids[~np.repeat(is_over, counts)])

    def match(self, objects: ObjectBatch) -> Matches:
        """Find the clauses that match each object."""
        return self._clauses.match(objects)

    def retract(self, ids: Ints) -> Matches:
        """Remove objects; return the clauses that matched each."""
        objects = self._live.batch(self._live.slots(ids))
        self._forget(ids)
        return self._clauses.match(objects)

    def pass_time(self, now_ms: int) -> None:
        """Set the time, and remove some of the expired objects."""
        self._live.pass_time(now_ms)
        self._forget(self._live.due())

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        tables = self._boxes.memory_bytes() + self._live.table.memory_bytes()
        return tables + self._clauses.memory_bytes() + self._objects.memory_bytes()

    def check(self) -> None:
        """Verify both indexes, and that they agree with the tables."""
        for one in (self._boxes, self._live.table, self._clauses, self._objects):
            one.check()
        if len(self._clauses) != len(self._boxes) or len(self._objects) != len(self._live.table):
            raise InconsistentIndexError("the indexes of the pair have different counts")

    def _forget(self, ids: Ints) -> None:
        if not len(ids):
            return
        table = self._live.table
        table.remove(ids)
        self._objects.remove(ids)
        self._gone_count += len(ids)
        if self._beyond_m.any() and (not len(table) or self._gone_count >= table.end):
            objects = self._live.batch(table.used())
            self._beyond_m, self._gone_count = objects.extents().reach_m(objects.x_m, objects.y_m), 0

    def _changes(self, slots: Slots, old: Floats, boxes: Boxes, same: Boxes | None) -> Moves:
        """Return the live objects that clauses match in new boxes and not in old, and the reverse."""
        count = len(boxes)
        inner = np.full((count, 4), _EVERYWHERE) if same is None else table_of(same)
        changes = kernels.Changes(old, table_of(boxes), inner, self._beyond_m)
        strips = np.empty((4, kernels.STRIPS_MAX * count))
        owners = np.empty(kernels.STRIPS_MAX * count, dtype=np.int64)
        strip_count = kernels.cut(changes, strips, owners)
        owners = owners[:strip_count]
        strip_boxes = Boxes(*(edge[:strip_count] for edge in strips))
        found = self._objects.within(self._boxes.keyword_lists(slots[owners // 2]), strip_boxes)
        self._looked_at += len(found.ids)
        table = self._live.table
        now = np.array([self._live.now_ms], dtype=np.int64)
        entered, left = (
            Matches(np.zeros(count + 1, dtype=np.int64), np.empty(len(found.ids), dtype=np.int64))
            for _ in range(2)
        )
        kernels.sort_out(
            changes,
            kernels.Live(table.rows, table.ids.keys, table.ids.values, now),
            owners,
            found.offsets,
            found.ids,
            entered.offsets,
            entered.ids,
            left.offsets,
            left.ids,
        )
        return Moves(*(Matches(one.offsets, one.ids[: one.offsets[-1]]) for one in (entered, left)))
