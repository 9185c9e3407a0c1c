"""What devices hold of boolean subscriptions: found, counted, and cut where it is too much.

Ranges that move, and of which no more matches than is sent, are evaluated by differences. Those that
have, or had, too many matches are settled: all that matches is found, and what was held before. So are
those of the mode NEAREST, whose slack depends on what is found (`engine.boolean.nearest`).

Operations: a move costs what the finder does; to settle, and to say what is held, what the object index
does.
"""

from __future__ import annotations

import numpy as np

from engine.boolean.anchors import Anchors
from engine.boolean.layout import NEAREST
from engine.boolean.nearest import choose_nearest, slack_below
from engine.boolean.pairs import Pairs, joined
from engine.boolean.tables import BooleanTables
from engine.contracts import Bools, Positions
from engine.options import EngineOptions
from index.tables.slots import Slots
from safe_region.ranges import CAPPED_SHARE


class Evaluation:
    """Evaluates subscriptions at the places of their devices.

    Parameters
    ----------
    tables
        What there is, and what is changed.
    options
        Costs and bounds.
    """

    def __init__(self, tables: BooleanTables, options: EngineOptions) -> None:
        self._tables = tables
        self._objects = tables.objects
        self._subscriptions = tables.subscriptions
        self._matches_max = options.matches_max
        self._anchors = Anchors(tables.objects, tables.subscriptions, options)

    def evaluate(self, slots: Slots, positions: Positions) -> tuple[Pairs, Pairs]:
        """Evaluate subscriptions where their devices are; wake those that are parked.

        Returns what enters and what leaves that which devices hold, by slot.
        """
        rows = self._subscriptions.rows
        was_awake = rows["is_awake"][slots] == 1
        is_nearest = rows["region"][slots] == NEAREST
        is_whole = was_awake & ~is_nearest & (rows["too_many"][slots] == 0)
        before, places = self.held_of(slots[was_awake & ~is_whole]), self._tables.places(slots)
        moves = rows["is_moving"][slots] == 1
        self._anchors.place(slots[moves], positions.part(moves))
        choose_nearest(self._tables, slots[is_nearest])
        rows["is_awake"][slots] = 1
        begun = self._tables.wake(slots[~was_awake])
        entered, left = self._tables.move(slots[is_whole], places.part(is_whole))
        rows["match_count"][slots[~was_awake]] = 0
        entered = joined(begun, entered)
        self.count(entered, 1)
        self.count(left, -1)
        settles = self.are_much(slots) | (was_awake & is_nearest)
        settles |= moves & self._anchors.are_astray(slots, positions)
        if settles.any():
            is_other = is_whole & settles
            found = self._tables.find(places.part(is_other)).of(slots[is_other])
            before = joined(before, found)
            held = self._settle_near(slots[settles], positions.part(settles))
            entered = joined(entered.without_rows(slots[settles]), held.without(before))
            left = joined(left.without_rows(slots[settles]), before.without(held))
        self._tables.pending.forget(slots)
        return entered, left

    def _settle_near(self, slots: Slots, positions: Positions) -> Pairs:
        """Hold what should be held; where a slack was cut so much that the device is beyond, about it."""
        held = self.settle(slots)
        is_moving = self._subscriptions.rows["is_moving"][slots] == 1
        astray = is_moving & self._anchors.are_astray(slots, positions)
        if not astray.any():
            return held
        return joined(
            held.without_rows(slots[astray]), self._settle_here(slots[astray], positions.part(astray))
        )

    def _settle_here(self, slots: Slots, positions: Positions) -> Pairs:
        """Hold what should be held about where devices are, not ahead of them."""
        self._anchors.place_here(slots, positions)
        for slot in slots.tolist():
            self._tables.capped.pop(slot, None)
        return self.settle(slots)

    def settle(self, slots: Slots, without: Slots | None = None) -> Pairs:
        """Hold what should be held of subscriptions, with their slack or less; return that, by slot."""
        rows = self._subscriptions.rows
        reach_m = rows["radius_m"][slots] + rows["slack_m"][slots]
        found = self._tables.find(self._tables.places(slots)._replace(reach_m=reach_m))
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
            self._tables.place(slots)
        return found.part(kept).of(slots)

    def _cut(self, slot: int, found: Pairs) -> Bools:
        """Say what is held of one subscription, of which much was found."""
        row, most = self._subscriptions.rows[slot], self._matches_max
        order = np.lexsort((self._objects.table.rows["id"][found.objects], found.distance_m))
        is_inner = np.ones(len(order), dtype=np.bool_)
        if row["is_moving"]:
            is_inner = found.nearest_m <= row["radius_m"] + row["margin_m"]
        inner = int(is_inner.sum())
        self._tables.capped.pop(slot, None)
        row["too_many"] = inner > most or (row["too_many"] == 1 and inner >= most * CAPPED_SHARE)
        kept = np.ones(len(order), dtype=np.bool_)
        if row["too_many"]:
            row["slack_m"] = 0.0
            kept[:] = False
            kept[order[is_inner[order]][:most]] = True
            self._tables.capped[slot] = self._objects.table.rows["id"][found.objects[kept]]
        elif len(order) > most:
            nearest_m = float(np.partition(found.nearest_m, most)[most])
            row["slack_m"] = slack_below(np.array([row["radius_m"]]), np.array([nearest_m]))[0]
            kept = found.nearest_m <= row["radius_m"] + row["slack_m"]
        row["match_count"] = int(kept.sum())
        return kept

    def held_of(self, slots: Slots) -> Pairs:
        """Return what devices hold of subscriptions that are awake, by slot and then by object."""
        is_capped = self._subscriptions.rows["too_many"][slots] == 1
        regular = slots[~is_capped]
        found = self._tables.find(self._tables.places(regular)).of(regular)
        found = found.part(~self._tables.pending.are_in(found))
        for slot in slots[is_capped].tolist():
            found = joined(found, self._capped_of(slot))
        return found.part(np.argsort(found.keys()))

    def _capped_of(self, slot: int) -> Pairs:
        """Return what is held of a subscription that has too many."""
        table = self._objects.table
        ids = self._tables.capped[slot]
        window = self._subscriptions.rows["window"][slot]
        alive = ids[table.ids.present(ids) & self._objects.windows.do_count(ids, window)]
        objects = np.sort(table.slots(alive)).astype(np.int64)
        unknown = np.zeros(len(objects))
        return Pairs(np.full(len(objects), slot, dtype=np.int64), objects, unknown, unknown)

    def are_much(self, slots: Slots) -> Bools:
        """Whether more matches each subscription than is sent, or that was so."""
        rows = self._subscriptions.rows[slots]
        found: Bools = (rows["match_count"] > self._matches_max) | (rows["too_many"] == 1)
        return found

    def count(self, pairs: Pairs, change: int) -> None:
        """Note how many more match subscriptions, or how many fewer."""
        owners, counts = np.unique(pairs.rows, return_counts=True)
        self._subscriptions.rows["match_count"][owners] += (change * counts).astype(np.int32)
