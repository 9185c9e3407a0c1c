"""Match boolean subscriptions: all objects that match an expression within a range.

A range is fixed in place, or it moves with the device. The device of a fixed range holds the matches, and
never has to report its position. The device of a moving range holds the matches within the range enlarged
by a slack, about the anchor (`safe_region.regions.ranges`), which is at its last position or ahead of it.
The matcher chooses both by cost (`engine.boolean.anchors`). It cuts the slack as far as needed when there
are more matches than the server sends.

If there are too many even without slack (in the range enlarged by the margin), the subscription has too
many matches. Its device holds the matches that were nearest to the middle of the range when it was
settled, except those that are gone (`engine.boolean.capped`). It is settled when it is evaluated, and by
`settle`. For all other subscriptions the matcher keeps only the number of held objects: the devices hold
the matches that the indexes find. A finder (`engine.boolean.finders`) finds the subscriptions that a new
or removed object affects, and the objects that start and cease to match as a range moves
(`engine.boolean.evaluation`).

Operations (batches): publish and remove cost the same as in the finder, and O(1) a match, and so does
evaluate, if there are not too many matches; settle costs a search of the object index for the held
objects; subscribe and unsubscribe O(clauses).
"""

from __future__ import annotations

import numpy as np

from engine.boolean.evaluation import Evaluation
from engine.boolean.invariants import check_boolean
from engine.boolean.layout import NEAREST, BooleanSpecs
from engine.boolean.pairs import Pairs, Places, joined
from engine.boolean.tables import BooleanTables
from engine.contracts import CHANGE_DTYPE, Bools, Bounds, Positions, Published, Rows, Settled
from engine.objects import Objects
from engine.options import EngineOptions
from index.batches import Floats, Ints, KeywordLists, ObjectBatch, Ranking
from index.tables.slots import Slots

_SETTLED_AT_ONCE = 8
"""Subscriptions with too many matches that are settled together."""
_SETTLED_PAIRS = 10_000
"""After this many tested pairs no more subscriptions are settled in one call: a few milliseconds."""


class BooleanMatcher:
    """See `engine.contracts.Matcher`.

    Parameters
    ----------
    objects
        The live objects.
    options
        The choice of the index, and the most matches that a device gets.
    """

    def __init__(self, objects: Objects, options: EngineOptions) -> None:
        self.tables = BooleanTables(objects, options)
        self.subscriptions = self.tables.subscriptions
        self.windows = objects.windows
        self._objects = objects
        self._matches_max = options.matches_max
        self._evaluation = Evaluation(self.tables, options)

    def __len__(self) -> int:
        return len(self.subscriptions)

    # -- subscriptions ---------------------------------------------------------------------------

    def subscribe(self, handles: Ints, specs: BooleanSpecs) -> None:
        """Add subscriptions, parked."""
        self.tables.append(handles, specs)

    def unsubscribe(self, handles: Ints) -> None:
        """Remove subscriptions."""
        self.park(handles)
        self.tables.remove(handles)

    def park(self, handles: Ints) -> None:
        """Stop evaluating subscriptions until `evaluate`. Those that are already parked do not change."""
        slots = self.subscriptions.slots(handles)
        rows = self.subscriptions.rows
        slots = slots[rows["is_awake"][slots] == 1]
        if len(slots):
            self.tables.sleep(slots)
            rows["is_awake"][slots] = 0
            rows["too_many"][slots] = 0
            self.tables.capped.forget(slots)
            self.tables.pending.forget(slots)

    def are_awake(self, handles: Ints) -> Bools:
        """Return whether each subscription is evaluated."""
        awake: Bools = self.subscriptions.rows["is_awake"][self.subscriptions.slots(handles)] == 1
        return awake

    def are_pending(self, handles: Ints) -> Bools:
        """Return whether an object waits for the position of each subscription's device."""
        return self.tables.pending.are_for(self.subscriptions.slots(handles))

    def keyword_lists(self, handles: Ints) -> KeywordLists:
        """Return the keywords of subscriptions, those of all their clauses together."""
        return self.subscriptions.keyword_lists(self.subscriptions.slots(handles))

    # -- evaluation ------------------------------------------------------------------------------

    def retrieve(self, positions: Positions) -> None:
        """Look up nothing in advance."""

    def evaluate(self, positions: Positions, retrieved: object | None = None) -> Rows:  # noqa: ARG002
        """Evaluate subscriptions at the positions of their devices; wake those that are parked.

        A fixed range that is awake does not change, unless there are too many matches.
        """
        slots = self.subscriptions.slots(positions.handles)
        rows = self.subscriptions.rows
        is_due = (rows["is_moving"][slots] == 1) | (rows["too_many"][slots] == 1)
        acts = is_due | (rows["is_awake"][slots] == 0)
        if not acts.any():
            return np.empty(0, dtype=CHANGE_DTYPE)
        return self._changes(*self._evaluation.evaluate(slots[acts], positions.part(acts)))

    def refill(self) -> Rows:
        """Return no changes: devices request the objects that they need."""
        return np.empty(0, dtype=CHANGE_DTYPE)

    def held(self, handle: int) -> tuple[Ints, Floats]:
        """Return the ids of the objects that a subscription's device holds, and zeros."""
        slots = self.subscriptions.slots(np.array([handle], dtype=np.int64))
        if not self.subscriptions.rows["is_awake"][slots[0]]:
            return np.empty(0, dtype=np.int64), np.empty(0)
        found: Ints = np.sort(self._objects.table.rows["id"][self._evaluation.held_of(slots).objects])
        return found, np.zeros(len(found))

    def bounds(self, handles: Ints) -> Bounds:
        """Return anchors, slacks, and 1 where there are too many matches."""
        rows = self.subscriptions.rows[self.subscriptions.slots(handles)]
        is_whole = (rows["is_moving"] == 0) & (rows["too_many"] == 0)
        slack_m = np.where(is_whole, np.inf, rows["slack_m"])
        return Bounds(rows["x_m"], rows["y_m"], slack_m, rows["too_many"].astype(np.int64))

    def outdated(self, count: int) -> Positions:  # noqa: ARG002
        """Return no subscriptions: weights of keywords do not matter."""
        return Positions(np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))

    def search(self, specs: BooleanSpecs, x_m: Floats, y_m: Floats) -> Ranking:
        """Return the matches at each place, nearest to the middle of the range first."""
        count = len(x_m)
        handles = -1 - np.arange(count, dtype=np.int64)  # of no subscription
        slots = self.tables.append(handles, specs)
        rows = self.subscriptions.rows
        is_moving = rows["is_moving"][slots] == 1
        places = Places(
            slots,
            np.where(is_moving, x_m, rows["x_m"][slots]),
            np.where(is_moving, y_m, rows["y_m"][slots]),
            rows["radius_m"][slots],
        )
        found = self._evaluation.nearest_of(places)
        self.tables.remove(handles)
        ids = self._objects.table.rows["id"][found.objects]
        order = np.lexsort((ids, found.distance_m, found.rows))
        place = np.arange(len(order)) - np.searchsorted(found.rows, found.rows[order])
        order = order[place < self._matches_max]
        offsets = np.searchsorted(found.rows[order], np.arange(count + 1))
        return Ranking(offsets, ids[order], found.distance_m[order], np.zeros(len(order)))

    # -- objects ---------------------------------------------------------------------------------

    def publish(self, objects: ObjectBatch, slots: Slots) -> Published:
        """Match new objects, which are already in the table.

        Changes for subscriptions with too many matches are reported when they are settled.
        """
        self.tables.crowds.came(objects)
        affected = self.tables.published(objects, slots)
        if not len(affected.rows):  # as with most objects
            return Published.nothing()
        is_capped = self.subscriptions.rows["too_many"][affected.rows] == 1
        if is_capped.any():
            self.tables.capped.came(affected.part(is_capped))
            affected = affected.part(~is_capped)
        if not len(affected.rows):
            return Published.nothing()
        self._evaluation.count(affected, 1)
        affected, newly_pending = self._without_pending(affected)
        owners = np.unique(affected.rows).astype(np.int32)
        much = owners[self._evaluation.are_much(owners)]
        if not len(much):
            nobody = np.empty(0, dtype=np.int64)
            return Published(self._changes(affected, Pairs.nothing()), nobody, newly_pending)
        rows = self.subscriptions.rows
        bounds = rows[["slack_m", "too_many"]][much]
        before = self._evaluation.held_of(much).without(affected)
        held = self._evaluation.settle(much)
        self.tables.place(much)
        entered = affected.part(~np.isin(affected.rows, much))
        changed = rows["id"][much[rows[["slack_m", "too_many"]][much] != bounds]]
        changes = self._changes(joined(entered, held.without(before)), before.without(held))
        return Published(changes, changed, newly_pending)

    def _without_pending(self, affected: Pairs) -> tuple[Pairs, Ints]:
        """Return matches that need no device position, and the subscriptions that need one now."""
        is_nearest = self.subscriptions.rows["region"][affected.rows] == NEAREST
        if not is_nearest.any():
            return affected, np.empty(0, dtype=np.int64)
        newly_pending = self.tables.pending.note(affected.part(is_nearest))
        ids: Ints = self.subscriptions.rows["id"][newly_pending]
        return affected.part(~is_nearest), ids

    def remove(self, slots: Slots, *, notify: bool) -> Rows:
        """Remove objects from buffers. Subscriptions with too many matches get others when settled."""
        return self._take_out(self.tables.retracted(slots), notify=notify)

    def leave(self, slots: Slots, window: int, *, notify: bool) -> Rows:
        """Remove objects from the buffers of subscriptions of a window, as `remove` does."""
        affected = self.tables.known(slots)
        is_theirs = self.subscriptions.rows["window"][affected.rows] == window
        return self._take_out(affected.part(is_theirs), notify=notify)

    def _take_out(self, affected: Pairs, *, notify: bool) -> Rows:
        if not len(affected.rows):  # as with most objects
            return np.empty(0, dtype=CHANGE_DTYPE)
        is_capped = self.subscriptions.rows["too_many"][affected.rows] == 1
        left, capped = affected.part(~is_capped), affected.part(is_capped)
        self._evaluation.count(left, -1)
        left = left.part(~self.tables.pending.are_in(left))
        capped = capped.part(self.tables.capped.are_held(capped))
        self._evaluation.count(capped, -1)
        if not notify:  # devices know expiries: they report when a tenth of their objects has expired
            return np.empty(0, dtype=CHANGE_DTYPE)
        self.tables.capped.went(capped)
        return self._changes(Pairs.nothing(), joined(left, capped))

    def settle(self, *, everything: bool = False) -> Settled:
        """Update the buffers of subscriptions with too many matches.

        Parameters
        ----------
        everything
            Whether to settle all of them; else those that are due (`engine.boolean.capped`), as many as
            are settled in a few milliseconds.
        """
        if self.tables.capped.next_due_ms() is None:
            return Settled.nothing()
        entered, left = Pairs.nothing(), Pairs.nothing()
        changed = [np.empty(0, dtype=np.int64)]
        rows, work = self.subscriptions.rows, self.tables.work
        most = work.pairs + _SETTLED_PAIRS
        while everything or work.pairs < most:
            slots = self.tables.capped.take_due(_SETTLED_AT_ONCE, everything=everything)
            if not len(slots):
                break
            more, less = self._evaluation.settle_again(slots)
            self.tables.place(slots)
            entered, left = joined(entered, more), joined(left, less)
            changed.append(rows["id"][slots[rows["too_many"][slots] == 0]])
        return Settled(self._changes(entered, left), np.concatenate(changed))

    def next_settle_ms(self) -> int | None:
        """Return the time of the next work for `settle`; None if there is none."""
        return self.tables.capped.next_due_ms()

    def _changes(self, entered: Pairs, left: Pairs) -> Rows:
        """Return rows for the objects that enter and leave, grouped by subscription."""
        both = joined(left, entered)
        is_drop = np.arange(len(both.rows)) < len(left.rows)
        order = np.lexsort((both.objects, ~is_drop, both.rows))
        changes = np.zeros(len(order), dtype=CHANGE_DTYPE)
        changes["handle"] = self.subscriptions.rows["id"][both.rows[order]]
        changes["object_id"] = self._objects.table.rows["id"][both.objects[order]]
        changes["is_drop"] = is_drop[order]
        return changes

    # -- for tests and operators -----------------------------------------------------------------

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        return self.tables.memory_bytes()

    def check(self) -> None:
        """Verify every invariant from the definitions. O(subscriptions * objects).

        Raises
        ------
        InconsistentIndexError
            Names the invariant that does not hold.
        """
        check_boolean(self.tables, self._matches_max)
