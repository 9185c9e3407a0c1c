"""Evaluate boolean subscriptions: find the objects that devices hold, count them, and cut too many.

Moving ranges with no more matches than the server sends are evaluated by differences, unless their
devices are far from their previous places and many objects may be there. Other subscriptions are settled:
their matches are found, the nearest first where there may be many, together with the objects held before.
Subscriptions of the mode NEAREST are settled, too, because their slack depends on the found objects
(`engine.boolean.nearest`).

Operations: a move costs the same as in the finder. To settle a subscription, or to list its held objects,
costs somewhat more than a search of the object index for them.
"""

from __future__ import annotations

import numpy as np

from engine.boolean import cut_kernels
from engine.boolean.anchors import Anchors
from engine.boolean.layout import NEAREST, sizes
from engine.boolean.nearest import FIRST, FIRST_IN_CROWDS, choose_nearest, slack_below
from engine.boolean.pairs import Pairs, Places, joined
from engine.boolean.tables import BooleanTables
from engine.contracts import Bools, Positions
from engine.options import EngineOptions
from index.batches import Floats
from index.tables.slots import Slots
from safe_region.regions.ranges import CAPPED_SHARE

_CUT_SHARE = 0.875
"""A fraction of the most that are held: a cut slack leaves this many, so that it is not cut again
soon."""
_CROWD = 4
"""If this many times the most that are held may be there, the search looks for the nearest first."""
_FIRST = 2
"""The first search radius is expected to have this many times the most that are held."""
_FIRST_SHARE = 0.125
"""A fraction of a range's size: the slack that is tried first where there may be many objects."""
_FAR_SHARE = 0.5
"""A fraction of the size of a range with its slack: a device that moved farther to a place with many
objects is not evaluated by differences."""
_AGAIN = 1.1
"""When a subscription is settled, the search reaches this many times as far as its held objects, because
some have gone."""


class Evaluation:
    """The evaluation of subscriptions at the positions of their devices.

    Parameters
    ----------
    tables
        The tables, which are changed.
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
        """Evaluate subscriptions at the positions of their devices; wake those that are parked.

        Returns the objects that enter and those that leave the devices' buffers, by slot.
        """
        rows = self._subscriptions.rows
        was_awake = rows["is_awake"][slots] == 1
        is_nearest = rows["region"][slots] == NEAREST
        is_whole = was_awake & ~is_nearest & (rows["too_many"][slots] == 0)
        is_whole &= ~self._are_far(slots, positions)
        before, places = self.held_of(slots[was_awake & ~is_whole]), self._tables.places(slots)
        moves = rows["is_moving"][slots] == 1
        self._anchors.place(slots[moves], positions.part(moves))
        if is_nearest.any():
            self._choose_nearest(slots[is_nearest])
        rows["is_awake"][slots] = 1
        entered, left = self._tables.move(slots[is_whole], places.part(is_whole))
        self.count(entered, 1)
        self.count(left, -1)
        settles = ~is_whole | self.are_much(slots)
        settles |= moves & self._anchors.are_astray(slots, positions)
        if settles.any():
            is_other = is_whole & settles
            found = self._tables.find(places.part(is_other)).of(slots[is_other])
            before = joined(before, found)
            held = self._settle_near(slots[settles], positions.part(settles))
            entered = joined(entered.without_rows(slots[settles]), held.without(before))
            left = joined(left.without_rows(slots[settles]), before.without(held))
            self._tables.place(slots[settles & was_awake])
        self._tables.wake(slots[~was_awake])
        self._tables.pending.forget(slots)
        return entered, left

    def _choose_nearest(self, slots: Slots) -> None:
        """Write the slack of subscriptions of the mode NEAREST; 0 if there are too many matches."""
        rows = self._subscriptions.rows
        places = self._tables.places(slots)
        beyond = places._replace(reach_m=rows["radius_m"][slots] + FIRST * sizes(rows[slots]))
        crowded = self._are_crowded(beyond)
        choose_nearest(self._tables, slots[~crowded])
        if crowded.any():
            slots = slots[crowded]
            rows["slack_m"][slots] = 0.0
            inner = places.part(crowded)._replace(reach_m=rows["radius_m"][slots])
            found = self.nearest_of(inner)
            is_much = np.bincount(found.rows, minlength=len(slots)) > self._matches_max
            choose_nearest(self._tables, slots[~is_much], FIRST_IN_CROWDS)

    def _are_far(self, slots: Slots, positions: Positions) -> Bools:
        """Return whether each device is far from its previous place, and many objects may be there."""
        rows = self._subscriptions.rows[slots]
        moved_m = np.hypot(positions.x_m - rows["x_m"], positions.y_m - rows["y_m"])
        is_far = moved_m > _FAR_SHARE * (sizes(rows) + rows["slack_m"])
        there = self._tables.places(slots)._replace(x_m=positions.x_m, y_m=positions.y_m)
        found: Bools = is_far & self._are_crowded(there)
        return found

    def _are_crowded(self, places: Places) -> Bools:
        """Return whether many objects may be in each range, at any place."""
        expected = self._tables.crowds.expected(self._tables.boxes(places))
        found: Bools = expected > _CROWD * self._matches_max
        return found

    def nearest_of(self, places: Places) -> Pairs:
        """Return matches, by row; if there are more than can be held, at least the nearest of them."""
        first_m = np.where(
            self._are_crowded(places), self._tables.crowds.half_side_m(_FIRST * self._matches_max), np.inf
        )
        return self._tables.nearest(places, self._matches_max, first_m)[0]

    def _settle_near(self, slots: Slots, positions: Positions) -> Pairs:
        """Settle subscriptions, and again at the device if a cut slack leaves it outside."""
        held = self.settle(slots)
        is_moving = self._subscriptions.rows["is_moving"][slots] == 1
        astray = is_moving & self._anchors.are_astray(slots, positions)
        if not astray.any():
            return held
        self._anchors.place_here(slots[astray], positions.part(astray))
        return joined(held.without_rows(slots[astray]), self.settle(slots[astray]))

    # -- settling --------------------------------------------------------------------------------

    def settle(self, slots: Slots) -> Pairs:
        """Settle subscriptions, with their slack or less; return the held objects, by slot.

        The finder is not updated.
        """
        first_m = np.full(len(slots), self._tables.crowds.half_side_m(_FIRST * self._matches_max))
        return self._hold(slots, self._found_for(slots, first_m))

    def settle_again(self, slots: Slots) -> tuple[Pairs, Pairs]:
        """Settle subscriptions with too many matches again, at their current places.

        Returns the objects that enter and those that leave the devices' buffers, by slot.
        """
        rows = self._subscriptions.rows
        rows["slack_m"][slots] = rows["margin_m"][slots]
        found = self._found_for(slots, rows["held_m"][slots] * _AGAIN)
        by_slot = found.of(slots)
        before = by_slot.part(self._tables.capped.are_held(by_slot))
        held = self._hold(slots, found)
        self._tables.work.settled += len(slots)
        return held.without(before), before.without(held)

    def _found_for(self, slots: Slots, first_m: Floats) -> Pairs:
        """Return matches within the slack, by row; or so many of the nearest that there are too many.

        `first_m` is the first radius of the search for the nearest.
        """
        rows = self._subscriptions.rows
        places = self._tables.places(slots)._replace(
            reach_m=rows["radius_m"][slots] + rows["slack_m"][slots]
        )
        crowded = np.flatnonzero(self._are_crowded(places))
        if not len(crowded):
            return self._tables.find(places)
        sparse = np.setdiff1d(np.arange(len(slots)), crowded)
        found = self._tables.find(places.part(sparse)).of(sparse)
        inner = places._replace(reach_m=rows["radius_m"][slots] + rows["margin_m"][slots]).part(crowded)
        nearest, are_all = self._tables.nearest(inner, self._matches_max, first_m[crowded])
        is_final = ~are_all | (rows["slack_m"][slots[crowded]] <= rows["margin_m"][slots[crowded]])
        is_final |= np.bincount(nearest.rows, minlength=len(crowded)) > self._matches_max
        found = joined(found, nearest.part(is_final[nearest.rows]).of(crowded))
        beyond = crowded[~is_final]
        found = joined(found, self._found_beyond(places.part(beyond)).of(beyond))
        return found.part(np.argsort(found.keys(), kind="stable"))

    def _found_beyond(self, places: Places) -> Pairs:
        """Return matches within the slack, or within a part of it that has too many, by row."""
        rows = self._subscriptions.rows[places.slots]
        reach_m = places.reach_m.copy()
        slack_m = rows["margin_m"] + _FIRST_SHARE * sizes(rows)
        which = np.arange(len(rows))
        found = Pairs.nothing()
        while len(which):
            tried_m = np.minimum(reach_m, rows["radius_m"] + slack_m)[which]
            pairs = self._tables.find(places.part(which)._replace(reach_m=tried_m))
            is_done = np.bincount(pairs.rows, minlength=len(which)) > self._matches_max
            is_done |= tried_m >= reach_m[which]
            found = joined(found, pairs.part(is_done[pairs.rows]).of(which))
            which = which[~is_done]
            slack_m[which] *= 2.0
        return found

    def _hold(self, slots: Slots, found: Pairs) -> Pairs:
        """Write the consequences of the found objects; return the held objects, by slot."""
        rows, count, most = self._subscriptions.rows, len(slots), self._matches_max
        verdicts, kept = np.empty(count, dtype=np.int8), np.empty(len(found.rows), dtype=np.bool_)
        bound_m, bound_id = np.empty(count), np.empty(count, dtype=np.int64)
        inner_m = rows["radius_m"][slots] + rows["margin_m"][slots]
        cut_kernels.cut(
            cut_kernels.Found(
                np.searchsorted(found.rows, np.arange(count + 1)),
                self._objects.table.rows["id"][found.objects],
                found.distance_m,
                found.nearest_m,
            ),
            np.where(rows["is_moving"][slots] == 1, inner_m, np.inf),
            rows["too_many"][slots] == 1,
            (most, int(np.ceil(most * CAPPED_SHARE)), int(most * _CUT_SHARE)),
            verdicts,
            bound_m,
            bound_id,
            kept,
        )
        rows["too_many"][slots] = verdicts == cut_kernels.TOO_MANY
        capped = verdicts == cut_kernels.TOO_MANY
        rows["slack_m"][slots[capped]] = 0.0
        self._tables.capped.settled(slots, bound_m, bound_id)
        is_cut = verdicts == cut_kernels.CUT
        slack_m = rows["slack_m"][slots]
        slack_m[is_cut] = slack_below(rows["radius_m"][slots[is_cut]], bound_m[is_cut])
        rows["slack_m"][slots] = slack_m
        reach_m = np.where(is_cut, rows["radius_m"][slots] + slack_m, np.inf)
        kept = np.where(is_cut[found.rows], found.nearest_m <= reach_m[found.rows], kept)
        held = found.part(kept)
        rows["match_count"][slots] = np.bincount(held.rows, minlength=count)
        return held.of(slots)

    # -- held objects ----------------------------------------------------------------------------

    def held_of(self, slots: Slots) -> Pairs:
        """Return the objects that devices hold for subscriptions that are awake, by slot and object."""
        is_capped = self._subscriptions.rows["too_many"][slots] == 1
        regular, capped = slots[~is_capped], slots[is_capped]
        found = self._tables.find(self._tables.places(regular)).of(regular)
        found = found.part(~self._tables.pending.are_in(found))
        first_m = self._subscriptions.rows["held_m"][capped] * _AGAIN
        nearest, _ = self._tables.nearest(self._tables.places(capped), -1, first_m)
        nearest = nearest.of(capped)
        found = joined(found, nearest.part(self._tables.capped.are_held(nearest)))
        return found.part(np.argsort(found.keys()))

    def are_much(self, slots: Slots) -> Bools:
        """Return whether each subscription has, or had, more matches than the server sends."""
        rows = self._subscriptions.rows
        found: Bools = (rows["match_count"][slots] > self._matches_max) | (rows["too_many"][slots] == 1)
        return found

    def count(self, pairs: Pairs, change: int) -> None:
        """Add `change` for each pair to the match counts of subscriptions."""
        owners, counts = np.unique(pairs.rows, return_counts=True)
        self._subscriptions.rows["match_count"][owners] += (change * counts).astype(np.int32)
