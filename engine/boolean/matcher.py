"""The boolean matcher: everything that matches an expression within a range.

A range is fixed in place, or a circle that moves with the device. The device of a fixed one holds what
matches, and never has to say where it is. That of a moving one holds what matches within the circle grown
by a slack, about the anchor (`safe_region.ranges`), where it was, or ahead of it. Both are chosen
by cost (`engine.boolean.anchors`). The slack shrinks as far as needed when more match than are sent.

If more match than are sent with no slack (in the circle grown by the margin), the subscription has too
many: its device holds those nearest to the middle of the range, by (distance, id). Their ids are kept. Of
all others only is kept how many objects their devices hold: they hold what matches, as the indexes say.
A finder (`engine.boolean.finders`) says whom an object concerns that comes or goes, and what begins and
ceases to match as a range moves.

Operations (batches): publish and remove cost what the finder does, O(1) a match, and so does evaluate, if
there are not too many matches; subscribe and unsubscribe O(clauses).
"""

from __future__ import annotations

import numpy as np

from engine.boolean.anchors import Anchors
from engine.boolean.invariants import check_boolean
from engine.boolean.layout import BooleanSpecs
from engine.boolean.tables import BooleanTables, Pairs, Places
from engine.contracts import CHANGE_DTYPE, Bools, Bounds, Positions, Published, Rows
from engine.objects import Objects
from engine.options import EngineOptions
from index.batches import Floats, Ints, KeywordLists, ObjectBatch, Ranking
from index.tables.slots import Slots
from safe_region.ranges import CAPPED_SHARE


class BooleanMatcher:
    """See `engine.contracts.Matcher`.

    Parameters
    ----------
    objects
        What is alive.
    options
        The choice of the index, and how many matches a device is sent.
    """

    def __init__(self, objects: Objects, options: EngineOptions) -> None:
        self.tables = BooleanTables(objects, options)
        self.subscriptions = self.tables.subscriptions
        self._objects = objects
        self._matches_max = options.matches_max
        self._anchors = Anchors(objects, self.subscriptions, options)

    def __len__(self) -> int:
        return len(self.subscriptions)

    # -- subscriptions ---------------------------------------------------------------------------

    def subscribe(self, handles: Ints, specs: BooleanSpecs) -> None:
        """Make subscriptions known, parked."""
        self.tables.append(handles, specs)

    def unsubscribe(self, handles: Ints) -> None:
        """Forget subscriptions."""
        self.park(handles)
        self.tables.remove(handles)

    def park(self, handles: Ints) -> None:
        """Stop evaluating subscriptions until `evaluate`. Nothing happens to those parked already."""
        slots = self.subscriptions.slots(handles)
        rows = self.subscriptions.rows
        slots = slots[rows["is_awake"][slots] == 1]
        if len(slots):
            self.tables.sleep(slots)
            rows["is_awake"][slots] = 0
            rows["too_many"][slots] = 0
            for slot in slots.tolist():
                self.tables.capped.pop(slot, None)

    def are_awake(self, handles: Ints) -> Bools:
        """Whether each subscription is evaluated."""
        awake: Bools = self.subscriptions.rows["is_awake"][self.subscriptions.slots(handles)] == 1
        return awake

    def are_pending(self, handles: Ints) -> Bools:
        """Nothing waits for a position."""
        return np.zeros(len(handles), dtype=np.bool_)

    def keyword_lists(self, handles: Ints) -> KeywordLists:
        """Return the keywords of subscriptions, those of all their clauses together."""
        return self.subscriptions.keyword_lists(self.subscriptions.slots(handles))

    # -- evaluation ------------------------------------------------------------------------------

    def retrieve(self, positions: Positions) -> None:
        """Nothing is looked up before."""

    def evaluate(self, positions: Positions, retrieved: object | None = None) -> Rows:  # noqa: ARG002
        """Evaluate subscriptions where their devices are; wake those that are parked.

        Nothing happens to a fixed range that is awake, unless there are too many matches.
        """
        slots = self.subscriptions.slots(positions.handles)
        rows = self.subscriptions.rows
        was_awake = rows["is_awake"][slots] == 1
        acts = ~was_awake | (rows["is_moving"][slots] == 1) | (rows["too_many"][slots] == 1)
        if not acts.any():
            return np.empty(0, dtype=CHANGE_DTYPE)
        slots, positions, was_awake = slots[acts], positions.part(acts), was_awake[acts]
        is_whole = was_awake & (rows["too_many"][slots] == 0)
        woken, moved = slots[~was_awake], slots[is_whole]
        before, places = self.held_of(slots[was_awake & ~is_whole]), self.tables.places(slots)
        moves = rows["is_moving"][slots] == 1
        self._anchors.place(slots[moves], positions.part(moves))
        rows["is_awake"][slots] = 1
        begun = self.tables.wake(woken)
        rows["match_count"][woken] = 0
        entered, left = self.tables.move(moved, places.part(is_whole))
        self._count(begun, 1)
        self._count(entered, 1)
        self._count(left, -1)
        entered = _joined(begun, entered)
        is_much = self._are_much(slots) | (moves & self._anchors.are_astray(slots, positions))
        if is_much.any():
            is_other = is_whole & is_much
            found = self.tables.find(places.part(is_other)).of(slots[is_other])
            before = _joined(before, found)
            held = self._settle_near(slots[is_much], positions.part(is_much))
            is_mine = ~np.isin(entered.rows, slots[is_much])
            entered = _joined(entered.part(is_mine), held.without(before))
            is_mine = ~np.isin(left.rows, slots[is_much])
            left = _joined(left.part(is_mine), before.without(held))
        return self._changes(entered, left)

    def _settle_near(self, slots: Slots, positions: Positions) -> Pairs:
        """Hold what should be held; where a slack was cut so much that the device is beyond, about it."""
        held = self._settle(slots)
        is_moving = self.subscriptions.rows["is_moving"][slots] == 1
        astray = is_moving & self._anchors.are_astray(slots, positions)
        if not astray.any():
            return held
        held = held.part(~np.isin(held.rows, slots[astray]))
        return _joined(held, self._settle_here(slots[astray], positions.part(astray)))

    def _settle_here(self, slots: Slots, positions: Positions) -> Pairs:
        """Hold what should be held about where devices are, not ahead of them."""
        self._anchors.place_here(slots, positions)
        for slot in slots.tolist():
            self.tables.capped.pop(slot, None)
        return self._settle(slots)

    def _settle(self, slots: Slots, without: Slots | None = None) -> Pairs:
        """Hold what should be held of subscriptions, with their slack or less; return that, by slot."""
        rows = self.subscriptions.rows
        reach_m = rows["radius_m"][slots] + rows["slack_m"][slots]
        found = self.tables.find(self.tables.places(slots)._replace(reach_m=reach_m))
        if without is not None:
            found = found.part(~np.isin(found.objects, without))
        counts = np.bincount(found.rows, minlength=len(slots))
        rows["match_count"][slots] = counts
        is_much = (counts > self._matches_max) | (rows["too_many"][slots] == 1)
        kept = np.ones(len(found.rows), dtype=np.bool_)
        for i in np.flatnonzero(is_much).tolist():
            first, last = np.searchsorted(found.rows, [i, i + 1])
            part = slice(int(first), int(last))
            kept[part] = self._cut(int(slots[i]), found.part(part))
        if len(slots):
            self.tables.place(slots)
        return found.part(kept).of(slots)

    def _cut(self, slot: int, found: Pairs) -> Bools:
        """Say what is held of one subscription, of which much was found."""
        row, most = self.subscriptions.rows[slot], self._matches_max
        order = np.lexsort((self._objects.table.rows["id"][found.objects], found.distance_m))
        is_inner = np.ones(len(order), dtype=np.bool_)
        if row["is_moving"]:
            is_inner = found.nearest_m <= row["radius_m"] + row["margin_m"]
        inner = int(is_inner.sum())
        self.tables.capped.pop(slot, None)
        row["too_many"] = inner > most or (row["too_many"] == 1 and inner >= most * CAPPED_SHARE)
        kept = np.ones(len(order), dtype=np.bool_)
        if row["too_many"]:
            row["slack_m"] = 0.0
            kept[:] = False
            kept[order[is_inner[order]][:most]] = True
            self.tables.capped[slot] = self._objects.table.rows["id"][found.objects[kept]]
        elif len(order) > most:
            nearest_m = float(np.partition(found.nearest_m, most)[most])
            row["slack_m"] = _slack_below(float(row["radius_m"]), nearest_m)
            kept = found.nearest_m <= row["radius_m"] + row["slack_m"]
        row["match_count"] = int(kept.sum())
        return kept

    def held_of(self, slots: Slots) -> Pairs:
        """Return what devices hold of subscriptions that are awake, by slot and then by object."""
        is_capped = self.subscriptions.rows["too_many"][slots] == 1
        regular = slots[~is_capped]
        found = self.tables.find(self.tables.places(regular)).of(regular)
        for slot in slots[is_capped].tolist():
            found = _joined(found, self._capped_of(slot))
        return found.part(np.argsort(found.keys()))

    def _capped_of(self, slot: int) -> Pairs:
        """Return what is held of a subscription that has too many."""
        table = self._objects.table
        alive = self.tables.capped[slot][table.ids.present(self.tables.capped[slot])]
        objects = np.sort(table.slots(alive)).astype(np.int64)
        unknown = np.zeros(len(objects))
        return Pairs(np.full(len(objects), slot, dtype=np.int64), objects, unknown, unknown)

    def held(self, handle: int) -> tuple[Ints, Floats]:
        """Return the ids of what the device of a subscription holds, and zeros."""
        slots = self.subscriptions.slots(np.array([handle], dtype=np.int64))
        if not self.subscriptions.rows["is_awake"][slots[0]]:
            return np.empty(0, dtype=np.int64), np.empty(0)
        found: Ints = np.sort(self._objects.table.rows["id"][self.held_of(slots).objects])
        return found, np.zeros(len(found))

    def bounds(self, handles: Ints) -> Bounds:
        """Return anchors, slacks, and 1 where there are too many matches."""
        rows = self.subscriptions.rows[self.subscriptions.slots(handles)]
        is_whole = (rows["is_moving"] == 0) & (rows["too_many"] == 0)
        slack_m = np.where(is_whole, np.inf, rows["slack_m"])
        return Bounds(rows["x_m"], rows["y_m"], slack_m, rows["too_many"].astype(np.int64))

    def search(self, specs: BooleanSpecs, x_m: Floats, y_m: Floats) -> Ranking:
        """Return what matches at each place, nearest to the middle of the range first."""
        count = len(x_m)
        handles = -1 - np.arange(count, dtype=np.int64)  # nobody's
        slots = self.tables.append(handles, specs)
        rows = self.subscriptions.rows
        is_moving = rows["is_moving"][slots] == 1
        places = Places(
            slots,
            np.where(is_moving, x_m, rows["x_m"][slots]),
            np.where(is_moving, y_m, rows["y_m"][slots]),
            rows["radius_m"][slots],
        )
        found = self.tables.find(places)
        self.tables.remove(handles)
        ids = self._objects.table.rows["id"][found.objects]
        order = np.lexsort((ids, found.distance_m, found.rows))
        place = np.arange(len(order)) - np.searchsorted(found.rows, found.rows[order])
        order = order[place < self._matches_max]
        offsets = np.searchsorted(found.rows[order], np.arange(count + 1))
        return Ranking(offsets, ids[order], found.distance_m[order], np.zeros(len(order)))

    # -- objects ---------------------------------------------------------------------------------

    def publish(self, objects: ObjectBatch, slots: Slots) -> Published:
        """Take note of new objects, which are in the table already."""
        nobody = np.empty(0, dtype=np.int64)
        affected = self.tables.published(objects, slots)
        if not len(affected.rows):
            return Published(np.empty(0, dtype=CHANGE_DTYPE), nobody, nobody)
        self._count(affected, 1)
        owners = np.unique(affected.rows).astype(np.int32)
        much = owners[self._are_much(owners)]
        if not len(much):
            return Published(self._changes(affected, Pairs.nothing()), nobody, nobody)
        rows = self.subscriptions.rows
        is_capped = rows["too_many"][much] == 1
        bounds = rows[["slack_m", "too_many"]][much]
        regular = affected.part(~np.isin(affected.rows, much[is_capped]))
        before = self.held_of(much).without(regular)
        rows["slack_m"][much[is_capped]] = rows["margin_m"][much[is_capped]]
        held = self._settle(much)
        entered = regular.part(~np.isin(regular.rows, much))
        changed = rows["id"][much[rows[["slack_m", "too_many"]][much] != bounds]]
        changes = self._changes(_joined(entered, held.without(before)), before.without(held))
        return Published(changes, changed, nobody)

    def remove(self, slots: Slots, *, tell: bool) -> Rows:
        """Take objects out of what is held. Who has too many is given others, if it is told."""
        rows = self.subscriptions.rows
        affected = self.tables.retracted(slots)
        is_capped = rows["too_many"][affected.rows] == 1
        left = affected.part(~is_capped)
        self._count(left, -1)
        if not tell:
            return np.empty(0, dtype=CHANGE_DTYPE)
        much = np.unique(affected.rows[is_capped]).astype(np.int32)
        if not len(much):
            return self._changes(Pairs.nothing(), left)
        before = self.held_of(much)
        lost = np.unique(before.rows[np.isin(before.objects, slots)]).astype(np.int32)
        before = before.part(np.isin(before.rows, lost))
        rows["slack_m"][lost] = rows["margin_m"][lost]
        held = self._settle(lost, slots)
        return self._changes(held.without(before), _joined(left, before.without(held)))

    def _are_much(self, slots: Slots) -> Bools:
        """Whether more matches each subscription than is sent, or that was so."""
        rows = self.subscriptions.rows[slots]
        found: Bools = (rows["match_count"] > self._matches_max) | (rows["too_many"] == 1)
        return found

    def _count(self, pairs: Pairs, change: int) -> None:
        """Note how many more match subscriptions, or how many fewer."""
        owners, counts = np.unique(pairs.rows, return_counts=True)
        self.subscriptions.rows["match_count"][owners] += (change * counts).astype(np.int32)

    def _changes(self, entered: Pairs, left: Pairs) -> Rows:
        """Write what enters and what leaves, grouped by subscription."""
        both = _joined(left, entered)
        is_drop = np.arange(len(both.rows)) < len(left.rows)
        order = np.lexsort((both.objects, ~is_drop, both.rows))
        changes = np.zeros(len(order), dtype=CHANGE_DTYPE)
        changes["handle"] = self.subscriptions.rows["id"][both.rows[order]]
        changes["object_id"] = self._objects.table.rows["id"][both.objects[order]]
        changes["is_drop"] = is_drop[order]
        return changes

    # -- for tests and operators -----------------------------------------------------------------

    def memory_bytes(self) -> int:
        """Size of all arrays."""
        return self.tables.memory_bytes() + sum(ids.nbytes for ids in self.tables.capped.values())

    def check(self) -> None:
        """Verify every invariant from the definitions. O(subscriptions * objects).

        Raises
        ------
        InconsistentIndexError
            Naming what does not hold.
        """
        check_boolean(self.tables, self._matches_max)


def _joined(one: Pairs, other: Pairs) -> Pairs:
    return Pairs(
        np.concatenate([one.rows, other.rows]),
        np.concatenate([one.objects, other.objects]),
        np.concatenate([one.distance_m, other.distance_m]),
        np.concatenate([one.nearest_m, other.nearest_m]),
    )


def _slack_below(radius_m: float, nearest_m: float) -> float:
    """Return the largest slack with which an object at this distance, beyond the radius, is not held."""
    slack_m = max(0.0, float(np.nextafter(nearest_m, 0.0)) - radius_m)
    while radius_m + slack_m >= nearest_m:
        slack_m = float(np.nextafter(slack_m, 0.0))
    return slack_m
