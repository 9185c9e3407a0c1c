"""Hold and update the nearest matches of subscriptions with too many matches.

A device holds the matches that were nearest to the middle of the range when its subscription was settled,
by (distance, id). The server keeps only the farthest of them, and the next id to be published at that
time: a match that is no farther and has a smaller id is held. Objects that are gone leave at once. A new
match nearer than the farthest makes the subscription dirty, and so does a held object that is gone. A
dirty subscription is settled when it is due, at most once a second, however many objects arrive and
leave.

Operations: O(1) a pair, O(log n) a subscription that becomes dirty.
"""

from __future__ import annotations

import heapq

import numpy as np

from engine.boolean.pairs import Pairs
from engine.contracts import Bools
from engine.objects import Objects
from index.batches import Floats, Ints
from index.contracts import InconsistentIndexError
from index.tables import SlotTable
from index.tables.slots import Slots

SETTLE_MS = 1000
"""The least time between two settlements of a subscription, except for evaluations: it limits the changes
that its device gets."""


class Capped:
    """The held objects of subscriptions with too many matches.

    Parameters
    ----------
    objects
        The live objects.
    subscriptions
        The table whose rows are changed.
    """

    def __init__(self, objects: Objects, subscriptions: SlotTable) -> None:
        self._objects = objects
        self._subscriptions = subscriptions
        self._due: list[tuple[int, int]] = []
        """A heap of times and slots; some are of subscriptions that are not dirty any more."""

    def settled(self, slots: Slots, held_m: Floats, held_id: Ints) -> None:
        """Record the farthest held object of each subscription, now.

        An infinite distance means that all matches are held.
        """
        rows = self._subscriptions.rows
        rows["held_m"][slots] = held_m
        rows["held_id"][slots] = held_id
        rows["next_id"][slots] = self._objects.windows.next_id
        rows["settled_ms"][slots] = self._objects.now_ms
        rows["is_dirty"][slots] = 0

    def forget(self, slots: Slots) -> None:
        """Mark subscriptions as clean: they are parked, or have just been evaluated."""
        self._subscriptions.rows["is_dirty"][slots] = 0

    def are_held(self, pairs: Pairs) -> Bools:
        """Return whether each match is held; rows are slots of subscriptions with too many matches."""
        rows, ids = self._subscriptions.rows, self._objects.table.rows["id"][pairs.objects]
        held_m = rows["held_m"][pairs.rows]
        is_near = pairs.distance_m < held_m
        is_near |= (pairs.distance_m == held_m) & (ids <= rows["held_id"][pairs.rows])
        found: Bools = is_near & (ids < rows["next_id"][pairs.rows])
        return found

    def came(self, pairs: Pairs) -> None:
        """Record new matches: those nearer than the farthest held object make a difference."""
        matters = pairs.distance_m < self._subscriptions.rows["held_m"][pairs.rows]
        self._mark(pairs.rows[matters])

    def went(self, pairs: Pairs) -> None:
        """Record that held objects have gone: others take their place."""
        self._mark(pairs.rows)

    def _mark(self, owners: Ints) -> None:
        rows = self._subscriptions.rows
        slots = np.unique(owners[rows["is_dirty"][owners] == 0])
        rows["is_dirty"][slots] = 1
        for slot, settled_ms in zip(slots.tolist(), rows["settled_ms"][slots].tolist(), strict=True):
            heapq.heappush(self._due, (settled_ms + SETTLE_MS, slot))
            self._objects.due_ms = min(self._objects.due_ms, settled_ms + SETTLE_MS)

    def next_due_ms(self) -> int | None:
        """Return the time when the next subscription is to be settled; None if there is none."""
        while self._due and not self._subscriptions.rows["is_dirty"][self._due[0][1]]:
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else None

    def take_due(self, count: int, *, everything: bool = False) -> Slots:
        """Return up to `count` subscriptions that are due now or, with `everything`, that are dirty."""
        rows, now_ms = self._subscriptions.rows, self._objects.now_ms
        found: list[int] = []
        while self._due and len(found) < count and (everything or self._due[0][0] <= now_ms):
            _, slot = heapq.heappop(self._due)
            if not rows["is_dirty"][slot]:
                continue
            due_ms = int(rows["settled_ms"][slot]) + SETTLE_MS
            if everything or due_ms <= now_ms:
                found.append(slot)
                rows["is_dirty"][slot] = 0
            else:  # it was evaluated in between, and has become dirty again
                heapq.heappush(self._due, (due_ms, slot))
        return np.array(sorted(found), dtype=np.int32)

    def check(self, awake: Slots) -> None:
        """Verify that dirty subscriptions have too many matches, and are going to be settled.

        Raises
        ------
        InconsistentIndexError
            Names the invariant that does not hold.
        """
        rows = self._subscriptions.rows
        used = self._subscriptions.used()
        dirty = set(used[rows["is_dirty"][used] == 1].tolist())
        if not dirty <= set(awake[rows["too_many"][awake] == 1].tolist()):
            raise InconsistentIndexError("a dirty subscription does not have too many matches")
        if not dirty <= {slot for _, slot in self._due}:
            raise InconsistentIndexError("a dirty subscription is not scheduled to be settled")
