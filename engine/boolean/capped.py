"""Subscriptions with too many matches: what their devices hold, and when that is brought up to date.

A device holds those that were nearest to the middle of the range when its subscription was settled, by
(distance, id). What is kept of them is the farthest one, and the id that was to be published next: what
matches, is no farther and was there already is what is held. What goes leaves at once. What comes nearer
than the farthest makes the subscription dirty, and so does what is held and goes: it is settled when it
is due, at most once a second, however many objects come and go.

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
"""A subscription is settled at most so often, but for evaluations: its device is sent that much less."""


class Capped:
    """What is held of subscriptions with too many matches.

    Parameters
    ----------
    objects
        What is alive.
    subscriptions
        Whose rows are changed.
    """

    def __init__(self, objects: Objects, subscriptions: SlotTable) -> None:
        self._objects = objects
        self._subscriptions = subscriptions
        self._due: list[tuple[int, int]] = []
        """A heap of times and slots; of those that are not dirty any more, some are there still."""

    def settled(self, slots: Slots, held_m: Floats, held_id: Ints) -> None:
        """Record which is the farthest of what is held of subscriptions, now.

        An infinite distance says that all that matches is held.
        """
        rows = self._subscriptions.rows
        rows["held_m"][slots] = held_m
        rows["held_id"][slots] = held_id
        rows["next_id"][slots] = self._objects.windows.next_id
        rows["settled_ms"][slots] = self._objects.now_ms
        rows["is_dirty"][slots] = 0

    def forget(self, slots: Slots) -> None:
        """Note that subscriptions are not to be settled: they are parked, or have just been evaluated."""
        self._subscriptions.rows["is_dirty"][slots] = 0

    def are_held(self, pairs: Pairs) -> Bools:
        """Whether each object that matches is held; rows are slots of subscriptions with too many."""
        rows, ids = self._subscriptions.rows, self._objects.table.rows["id"][pairs.objects]
        held_m = rows["held_m"][pairs.rows]
        is_near = pairs.distance_m < held_m
        is_near |= (pairs.distance_m == held_m) & (ids <= rows["held_id"][pairs.rows])
        found: Bools = is_near & (ids < rows["next_id"][pairs.rows])
        return found

    def came(self, pairs: Pairs) -> None:
        """Note new objects that match: those that are nearer than what is held make a difference."""
        matters = pairs.distance_m < self._subscriptions.rows["held_m"][pairs.rows]
        self._mark(pairs.rows[matters])

    def went(self, pairs: Pairs) -> None:
        """Note that objects that are held have gone: others take their place."""
        self._mark(pairs.rows)

    def _mark(self, owners: Ints) -> None:
        rows = self._subscriptions.rows
        slots = np.unique(owners[rows["is_dirty"][owners] == 0])
        rows["is_dirty"][slots] = 1
        for slot, settled_ms in zip(slots.tolist(), rows["settled_ms"][slots].tolist(), strict=True):
            heapq.heappush(self._due, (settled_ms + SETTLE_MS, slot))
            self._objects.due_ms = min(self._objects.due_ms, settled_ms + SETTLE_MS)

    def next_due_ms(self) -> int | None:
        """Return when a subscription is to be settled next; None if none is."""
        while self._due and not self._subscriptions.rows["is_dirty"][self._due[0][1]]:
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else None

    def take_due(self, count: int, *, everything: bool = False) -> Slots:
        """Return some subscriptions that are to be settled now, or some of all that are dirty."""
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
            else:  # it was evaluated meanwhile, and has become dirty again
                heapq.heappush(self._due, (due_ms, slot))
        return np.array(sorted(found), dtype=np.int32)

    def check(self, awake: Slots) -> None:
        """Verify that what is dirty has too many matches, and is going to be settled.

        Raises
        ------
        InconsistentIndexError
            Naming what does not hold.
        """
        rows = self._subscriptions.rows
        used = self._subscriptions.used()
        dirty = set(used[rows["is_dirty"][used] == 1].tolist())
        if not dirty <= set(awake[rows["too_many"][awake] == 1].tolist()):
            raise InconsistentIndexError("something is dirty that has not too many matches")
        if not dirty <= {slot for _, slot in self._due}:
            raise InconsistentIndexError("something is dirty and is never settled")
