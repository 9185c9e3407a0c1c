"""The naive moving index: a table of clauses and one of objects, scanned for every query.

Operations: insert and move O(objects) a clause, publish and retract O(clauses) an object.
"""

from __future__ import annotations

import numpy as np

from index.batches import Boxes, Ints, KeywordLists, Matches, Moves, ObjectBatch
from index.naive import kernels
from index.naive.clauses import NaiveClauseIndex
from index.tables.live_objects import LIVE_OBJECT_FIELDS, LiveObjects
from index.tables.matches import without

_MATCHES_GUESS = 64


class NaiveMovingIndex:
    """See `index.contracts.MovingIndex`."""

    def __init__(self) -> None:
        self._clauses = NaiveClauseIndex()
        self._objects = LiveObjects(np.dtype(LIVE_OBJECT_FIELDS, align=True))
        self._looked_at = 0

    def __len__(self) -> int:
        return len(self._clauses)

    @property
    def object_count(self) -> int:
        """Return the number of live objects."""
        return len(self._objects)

    @property
    def candidate_count(self) -> int:
        """Return the number of clauses and objects tested: all, every time."""
        return self._looked_at + self._clauses.candidate_count

    def insert(self, ids: Ints, boxes: Boxes, required: KeywordLists) -> Matches:
        """Add clauses; return the live objects that each matches."""
        self._clauses.insert(ids, boxes, required)
        return self._matched(ids)

    def move(self, ids: Ints, boxes: Boxes, same: Boxes | None = None) -> Moves:
        """Change the boxes of clauses; return the matches of each before or after, and not both."""
        self._clauses.validate_move(ids, boxes)
        before = self._matched(ids)
        self._clauses.move(ids, boxes)
        after = self._matched(ids)
        unchanged = before if same is None else self._objects.lying_within(same, before)
        return Moves(without(after, unchanged), without(before, after))

    def remove(self, ids: Ints) -> None:
        """Remove clauses."""
        self._clauses.remove(ids)

    def publish(self, objects: ObjectBatch, expiry_ms: Ints) -> Matches:
        """Add objects; return the clauses that match each."""
        self._objects.table.remove(self._objects.replaced(objects))
        slots = self._objects.append(objects, expiry_ms)
        is_over = self._objects.table.rows["expiry_ms"][slots] <= self._objects.now_ms
        found = self._clauses.match(objects)
        counts = np.diff(found.offsets)
        kept = ~np.repeat(is_over, counts)
        return Matches.of(np.where(is_over, 0, counts), found.ids[kept])

    def match(self, objects: ObjectBatch) -> Matches:
        """Test every clause against every object."""
        return self._clauses.match(objects)

    def retract(self, ids: Ints) -> Matches:
        """Remove objects; return the clauses that matched each."""
        objects = self._objects.batch(self._objects.slots(ids))
        self._objects.table.remove(ids)
        return self._clauses.match(objects)

    def pass_time(self, now_ms: int) -> None:
        """Set the time."""
        self._objects.pass_time(now_ms)
        self._objects.table.remove(self._objects.due())

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        return self._clauses.memory_bytes() + self._objects.table.memory_bytes()

    def check(self) -> None:
        """Verify the tables."""
        self._clauses.check()
        self._objects.table.check()

    def _matched(self, ids: Ints) -> Matches:
        """Test every live object against every clause."""
        table = self._objects.table
        boxes, required = self._clauses.of(ids)
        self._looked_at += len(ids) * len(table)
        offsets = np.zeros(len(ids) + 1, dtype=np.int64)
        found = np.empty(_MATCHES_GUESS, dtype=np.int64)
        while True:
            total = kernels.match_objects(
                table.rows[: table.end],
                table.pool,
                self._objects.now_ms,
                required.offsets,
                required.ids,
                boxes.x1_m,
                boxes.y1_m,
                boxes.x2_m,
                boxes.y2_m,
                offsets,
                found,
            )
            if total <= len(found):
                return Matches(offsets, found[:total])
            found = np.empty(total, dtype=np.int64)
