"""Find objects that may start or cease to match clauses, as clauses move and objects change.

There are two finders. One has a clause index, and queries the object index that all matchers share:
objects are in memory once. The other has a moving index (`index.contracts.MovingIndex`), which keeps
objects beside clauses. Both search only where a move makes a difference.

Finders return candidates. The caller tests whether a circle or a polygon contains an object, and whether
an object has excluded keywords.

Operations: those of the indexes, and O(1) for each candidate.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from engine.objects import Objects
from index.batches import Boxes, Ints, Matches, ObjectBatch
from index.contracts import ClauseIndex, MovingIndex
from index.paired.strips import strips_of
from index.tables import SlotTable
from index.tables.slots import Slots

Candidates = tuple[Ints, Slots]
"""Rows of the request, and slots of objects; a pair may be present twice."""


class Finder(Protocol):
    """The finder of clauses of subscriptions that are awake. Clauses are identified by their slots."""

    def enter(self, clauses: Slots, boxes: Boxes) -> None:
        """Add clauses."""

    def move(self, clauses: Slots, before: Boxes, boxes: Boxes, same: Boxes) -> Candidates:
        """Move clauses to new boxes; return the objects that each may start or cease to match.

        Objects within the boxes of `same` match as before. A box with reversed bounds is empty.
        """

    def place(self, clauses: Slots, boxes: Boxes) -> None:
        """Move clauses to new boxes."""

    def leave(self, clauses: Slots) -> None:
        """Remove clauses."""

    def publish(self, objects: ObjectBatch, slots: Slots) -> Matches:
        """Return, for each new object, the clauses that it may match; their ids are slots."""

    def retract(self, objects: ObjectBatch) -> Matches:
        """Return, for each removed object, the clauses that it may have matched."""

    def match(self, objects: ObjectBatch) -> Matches:
        """Return the clauses that objects may match, whether or not the finder has the objects."""

    def check(self) -> None:
        """Verify the index."""

    def memory_bytes(self) -> int:
        """Return the size of the index."""

    def __len__(self) -> int: ...


class ClauseFinder:
    """A finder with a clause index, and with the object index that all matchers share.

    Parameters
    ----------
    index
        The index of the clauses that an object matches. Empty.
    clauses
        The table of clauses, with their required keywords.
    objects
        The live objects.
    """

    def __init__(self, index: ClauseIndex, clauses: SlotTable, objects: Objects) -> None:
        self._index = index
        self._clauses = clauses
        self._objects = objects

    def __len__(self) -> int:
        return len(self._index)

    def enter(self, clauses: Slots, boxes: Boxes) -> None:
        """Add clauses."""
        self._index.insert(clauses.astype(np.int64), boxes, self._clauses.keyword_lists(clauses))

    def move(self, clauses: Slots, before: Boxes, boxes: Boxes, same: Boxes) -> Candidates:
        """Move clauses to new boxes; return objects in one of the two that may match differently.

        Clauses that are covered by others are omitted. An area that starts or ceases to match has a point
        in one of the searched strips: if all its points in the new box lay in `same`, it would match as
        before.
        """
        self.place(clauses, boxes)
        which = np.flatnonzero(self._clauses.rows["is_covered"][clauses] == 0)
        strips, owners = strips_of(before.part(which), boxes.part(which), same.part(which))
        owners = which[owners]
        which, objects = self._objects.near(self._clauses.keyword_lists(clauses[owners]), strips)
        return owners[which], objects

    def place(self, clauses: Slots, boxes: Boxes) -> None:
        """Move clauses to new boxes."""
        self._index.move(clauses.astype(np.int64), boxes)

    def leave(self, clauses: Slots) -> None:
        """Remove clauses."""
        self._index.remove(clauses.astype(np.int64))

    def publish(self, objects: ObjectBatch, slots: Slots) -> Matches:  # noqa: ARG002
        """Return the clauses that match new objects."""
        return self._index.match(objects)

    def retract(self, objects: ObjectBatch) -> Matches:
        """Return the clauses that match removed objects."""
        return self._index.match(objects)

    def match(self, objects: ObjectBatch) -> Matches:
        """Query the index."""
        return self._index.match(objects)

    def check(self) -> None:
        """Verify the index."""
        self._index.check()

    def memory_bytes(self) -> int:
        """Return the size of the index; objects belong to the engine."""
        return self._index.memory_bytes()


class MovingFinder:
    """A finder with a moving index. Expired objects are retracted: the engine owns the time.

    Parameters
    ----------
    index
        The index of the objects that start and cease to match. Empty.
    clauses
        The table of clauses, with their required keywords.
    objects
        The live objects.
    """

    def __init__(self, index: MovingIndex, clauses: SlotTable, objects: Objects) -> None:
        self._index = index
        self._clauses = clauses
        self._objects = objects

    def __len__(self) -> int:
        return len(self._index)

    def enter(self, clauses: Slots, boxes: Boxes) -> None:
        """Add clauses."""
        self._index.insert(clauses.astype(np.int64), boxes, self._clauses.keyword_lists(clauses))

    def move(self, clauses: Slots, before: Boxes, boxes: Boxes, same: Boxes) -> Candidates:  # noqa: ARG002
        """Move clauses to new boxes; return objects in one of the two that may match differently."""
        entered, left = self._index.move(clauses.astype(np.int64), boxes, same)
        started, ceased = self._candidates(entered), self._candidates(left)
        return np.concatenate([ceased[0], started[0]]), np.concatenate([ceased[1], started[1]])

    def place(self, clauses: Slots, boxes: Boxes) -> None:
        """Move clauses to new boxes."""
        self._index.move(clauses.astype(np.int64), boxes)

    def leave(self, clauses: Slots) -> None:
        """Remove clauses."""
        self._index.remove(clauses.astype(np.int64))

    def publish(self, objects: ObjectBatch, slots: Slots) -> Matches:
        """Add new objects; return the clauses that match them."""
        return self._index.publish(objects, self._objects.table.rows["expiry_ms"][slots])

    def retract(self, objects: ObjectBatch) -> Matches:
        """Remove objects; return the clauses that matched them."""
        return self._index.retract(objects.ids)

    def match(self, objects: ObjectBatch) -> Matches:
        """Query the index."""
        return self._index.match(objects)

    def check(self) -> None:
        """Verify the index."""
        self._index.check()

    def memory_bytes(self) -> int:
        """Return the size of the index, including its data of objects."""
        return self._index.memory_bytes()

    def _candidates(self, found: Matches) -> Candidates:
        rows = np.repeat(np.arange(len(found.offsets) - 1), np.diff(found.offsets))
        return rows, self._objects.table.slots(found.ids)
