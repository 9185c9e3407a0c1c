"""Finders: what may begin and cease to match clauses, as they come and move and as objects come and go.

There are two. One has a clause index, and asks the object index that all matchers share: objects lie in
memory once. The other has a moving index (`index.contracts.MovingIndex`),
which keeps objects beside clauses. Both look only where a move makes a difference.

What they find are candidates: whether a circle or a polygon holds an object is for the caller to see, and
so is whether an object has keywords that it must not have.

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
"""Rows of what was asked for, and slots of objects; a pair may be there twice."""


class Finder(Protocol):
    """What knows the clauses of subscriptions that are awake. Clauses are named by their slots."""

    def enter(self, clauses: Slots, boxes: Boxes) -> None:
        """Take on clauses."""

    def move(self, clauses: Slots, before: Boxes, boxes: Boxes, same: Boxes) -> Candidates:
        """Give clauses new boxes instead of those before; return what each may begin or cease to match.

        What lies within the boxes of `same` matches as before. A box that is turned over is empty.
        """

    def place(self, clauses: Slots, boxes: Boxes) -> None:
        """Give clauses new boxes."""

    def leave(self, clauses: Slots) -> None:
        """Forget clauses."""

    def publish(self, objects: ObjectBatch, slots: Slots) -> Matches:
        """Return, for each new object, which clauses it may match; their ids are slots."""

    def retract(self, objects: ObjectBatch) -> Matches:
        """Return, for each object that goes, which clauses it may have matched."""

    def match(self, objects: ObjectBatch) -> Matches:
        """Return which clauses objects may match, whoever knows them."""

    def check(self) -> None:
        """Verify the index."""

    def memory_bytes(self) -> int:
        """Size of the index."""

    def __len__(self) -> int: ...


class ClauseFinder:
    """Finds with a clause index, and with the object index that all matchers share.

    Parameters
    ----------
    index
        Which clauses an object matches. Empty.
    clauses
        The table of clauses: what they require.
    objects
        What is alive.
    """

    def __init__(self, index: ClauseIndex, clauses: SlotTable, objects: Objects) -> None:
        self._index = index
        self._clauses = clauses
        self._objects = objects

    def __len__(self) -> int:
        return len(self._index)

    def enter(self, clauses: Slots, boxes: Boxes) -> None:
        """Take on clauses."""
        self._index.insert(clauses.astype(np.int64), boxes, self._clauses.keyword_lists(clauses))

    def move(self, clauses: Slots, before: Boxes, boxes: Boxes, same: Boxes) -> Candidates:
        """Give clauses new boxes; return what is in one of them and not the same in both.

        What is covered by other clauses is not looked for. An area that is another's affair now has a
        point in one of the strips that are asked for: if all points that it has in the new box lay in
        `same`, it would match as before.
        """
        self.place(clauses, boxes)
        which = np.flatnonzero(self._clauses.rows["is_covered"][clauses] == 0)
        strips, owners = strips_of(before.part(which), boxes.part(which), same.part(which))
        owners = which[owners]
        which, objects = self._objects.near(self._clauses.keyword_lists(clauses[owners]), strips)
        return owners[which], objects

    def place(self, clauses: Slots, boxes: Boxes) -> None:
        """Give clauses new boxes."""
        self._index.move(clauses.astype(np.int64), boxes)

    def leave(self, clauses: Slots) -> None:
        """Forget clauses."""
        self._index.remove(clauses.astype(np.int64))

    def publish(self, objects: ObjectBatch, slots: Slots) -> Matches:  # noqa: ARG002
        """Return which clauses match new objects."""
        return self._index.match(objects)

    def retract(self, objects: ObjectBatch) -> Matches:
        """Return which clauses match objects that go."""
        return self._index.match(objects)

    def match(self, objects: ObjectBatch) -> Matches:
        """Ask the index."""
        return self._index.match(objects)

    def check(self) -> None:
        """Verify the index."""
        self._index.check()

    def memory_bytes(self) -> int:
        """Size of the index; objects are the engine's."""
        return self._index.memory_bytes()


class MovingFinder:
    """Finds with a moving index. What expires is retracted: time is the engine's.

    Parameters
    ----------
    index
        What begins and ceases to match. Empty.
    clauses
        The table of clauses: what they require.
    objects
        What is alive.
    """

    def __init__(self, index: MovingIndex, clauses: SlotTable, objects: Objects) -> None:
        self._index = index
        self._clauses = clauses
        self._objects = objects

    def __len__(self) -> int:
        return len(self._index)

    def enter(self, clauses: Slots, boxes: Boxes) -> None:
        """Take on clauses."""
        self._index.insert(clauses.astype(np.int64), boxes, self._clauses.keyword_lists(clauses))

    def move(self, clauses: Slots, before: Boxes, boxes: Boxes, same: Boxes) -> Candidates:  # noqa: ARG002
        """Give clauses new boxes; return what is in one of them and not the same in both."""
        entered, left = self._index.move(clauses.astype(np.int64), boxes, same)
        started, ceased = self._candidates(entered), self._candidates(left)
        return np.concatenate([ceased[0], started[0]]), np.concatenate([ceased[1], started[1]])

    def place(self, clauses: Slots, boxes: Boxes) -> None:
        """Give clauses new boxes."""
        self._index.move(clauses.astype(np.int64), boxes)

    def leave(self, clauses: Slots) -> None:
        """Forget clauses."""
        self._index.remove(clauses.astype(np.int64))

    def publish(self, objects: ObjectBatch, slots: Slots) -> Matches:
        """Take on new objects; return which clauses match them."""
        return self._index.publish(objects, self._objects.table.rows["expiry_ms"][slots])

    def retract(self, objects: ObjectBatch) -> Matches:
        """Forget objects; return which clauses matched them."""
        return self._index.retract(objects.ids)

    def match(self, objects: ObjectBatch) -> Matches:
        """Ask the index."""
        return self._index.match(objects)

    def check(self) -> None:
        """Verify the index."""
        self._index.check()

    def memory_bytes(self) -> int:
        """Size of the index, with what it keeps of objects."""
        return self._index.memory_bytes()

    def _candidates(self, found: Matches) -> Candidates:
        rows = np.repeat(np.arange(len(found.offsets) - 1), np.diff(found.offsets))
        return rows, self._objects.table.slots(found.ids)
