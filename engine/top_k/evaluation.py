"""Anchor subscriptions: choose the buffers of devices, and their reach.

Operations: anchor O((k + b)^2) a subscription beyond the cost of the indexes.

A report leads to a retrieval of the k + b + 1 best, a choice of anchor and b (`choice_kernels`), and a
new buffer; the differences are sent. The first two work on copies of rows and change nothing, so their
work may be discarded: large batches are divided, and other cores look up the next parts while one is
settled.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

import numpy as np

from engine.contracts import CHANGE_DTYPE, Positions, Rows, concatenated
from engine.options import EngineOptions
from engine.top_k import buffer_kernels, choice_kernels, margins, prune_kernels, region_kernels
from engine.top_k.choice_kernels import Chosen, Costs, Known, Moving, Ranked
from engine.top_k.layout import BY_COST, ELLIPSE
from engine.top_k.tables import TopKTables
from index.batches import Floats, Ints, Ranking
from index.tables.buckets.rankings import Answers
from index.tables.slots import Slots
from index.tables.threads import ahead_of

_ROUNDED = 1.0 + 1e-6
"""A length that is stored in 32 bits may be too short by this factor."""

_SPARE = 4
"""The capacity for arrivals in every buffer, besides a quarter of b: when it is full the reach is
lowered."""

_LOOK = 64
"""The number of objects in the first search for all objects below a reach."""

_PART = 16_384
"""Subscriptions that are evaluated at once: bounds the memory of a large batch."""


class Choice(NamedTuple):
    """The chosen anchors and buffers of subscriptions."""

    slots: Slots
    rows: Rows
    """Copies of their rows, with b and the updated statistics."""
    chosen: Chosen


class Evaluation:
    """The evaluation of subscriptions at the positions of their devices.

    Parameters
    ----------
    tables
        The tables, which are changed.
    options
        Costs and bounds of the choice.
    """

    def __init__(self, tables: TopKTables, options: EngineOptions) -> None:
        self._tables = tables
        self._objects = tables.objects
        self._subscriptions = tables.subscriptions
        self._options = options

    def retrieve(self, positions: Positions) -> list[Choice]:
        """Retrieve and choose for a later `anchor`.

        It may be called from another thread while no object is added or removed and no subscription
        starts or ends; other subscriptions may be anchored. Most of the time it is a kernel without the
        GIL.
        """
        return list(self._retrieved(positions))

    def anchor(self, positions: Positions, retrieved: list[Choice] | None = None) -> Rows:
        """Evaluate subscriptions again at their devices; wake those that are parked.

        Parameters
        ----------
        positions
            Positions of the devices.
        retrieved
            The result of `retrieve` for these positions, if nothing has changed since then.
        """
        changes = [
            self.settle(one) for one in (self._retrieved(positions) if retrieved is None else retrieved)
        ]
        return concatenated(changes) if changes else np.empty(0, dtype=CHANGE_DTYPE)

    def _retrieved(self, positions: Positions) -> Iterable[Choice]:
        """Return choices; other cores prepare the next parts of a large batch.

        For each subscription as many objects are requested as it could hold.
        """
        slots = self._subscriptions.slots(positions.handles)
        rows = self._subscriptions.rows[slots]
        base = rows["base_extra"]
        rows["extra"] = np.where(base == BY_COST, self._options.costs.extra_max, base)
        if len(slots) <= _PART:
            return self._choices(slots, rows, positions) if len(slots) else ()
        slices = [slice(start, start + _PART) for start in range(0, len(slots), _PART)]
        parts = [(slots[part], rows[part], positions.part(part)) for part in slices]
        return chain.from_iterable(ahead_of(parts, lambda part: self._choices(*part)))

    def _best(self, slots: Slots, rows: Rows, positions: Positions) -> Ranking:
        """Return the k + extra + 1 best objects of each subscription.

        This many were within `ample_m` of the last anchor, so they are within this and the distance from
        there, unless too many have left. If fewer are found, the search has no bound.
        """
        count = rows["k"].astype(np.int64) + rows["extra"] + 1
        away_m = np.hypot(positions.x_m - rows["x_m"], positions.y_m - rows["y_m"])
        bound_m = (rows["ample_m"] + away_m) * _ROUNDED
        ranking = self._within(slots, positions, count, bound_m)
        missing = (np.diff(ranking.offsets) < count) & ~np.isinf(bound_m)
        if not missing.any():
            return ranking
        unbounded = np.full(int(missing.sum()), np.inf)
        again = self._within(slots[missing], positions.part(missing), count[missing], unbounded)
        return ranking.replaced(missing, again)

    def _within(self, slots: Slots, positions: Positions, count: Ints, bound_m: Floats) -> Ranking:
        interests = self._tables.interests(slots)
        first_ids = self._objects.windows.first_ids[self._subscriptions.rows["window"][slots]]
        return self._objects.index.best(
            interests, positions.x_m, positions.y_m, count, bound_m, first_ids
        )

    def _choices(self, slots: Slots, rows: Rows, positions: Positions) -> list[Choice]:
        """Choose for subscriptions; retrieve more objects where the margin of a position requires it."""
        extra_max = self._options.margin_extra_max
        choices: list[Choice] = []
        while True:
            ranking = self._best(slots, rows, positions)
            k = rows["k"].astype(np.int64)
            count = k + rows["extra"] + 1
            short = margins.are_short(ranking, count, k, positions.margin_m, extra_max)
            if short is None:
                choices.append(self.choose(slots, rows, positions, ranking))
                return choices
            enough = ~short
            part = positions.part(enough), ranking.part(enough)
            choices.append(self.choose(slots[enough], rows[enough], *part))
            slots, rows, positions = slots[short], rows[short], positions.part(short)
            doubled = np.maximum(1, 2 * rows["extra"].astype(np.int64))
            rows["extra"] = np.minimum(doubled, extra_max)

    def locate(self, positions: Positions, pending_offsets: Ints, pending_ids: Ints) -> Rows:
        """Process the positions of devices in the mode ELLIPSE: decide about pending objects.

        Parameters
        ----------
        positions
            Positions of the devices.
        pending_offsets, pending_ids
            The pending objects of each, row i at `offsets[i] : offsets[i + 1]`.
        """
        slots = self._subscriptions.slots(positions.handles)
        rows = self._subscriptions.rows
        answers = Answers(rows["k"][slots].astype(np.int64) + 1, 0)
        known = np.zeros(len(slots), dtype=np.bool_)
        region_kernels.resolve(
            self._objects.table.rows,
            self._objects.table.ids.keys,
            self._objects.table.ids.values,
            rows,
            self._objects.texts_with(self._subscriptions),
            self._tables.buffers.holdings,
            slots,
            region_kernels.Located(positions.x_m, positions.y_m, pending_offsets, pending_ids),
            answers.arrays,
            known,
        )
        changes = self.anchor(positions.part(~known))
        ranking = answers.ranking().part(known)
        choice = self.choose(slots[known], rows[slots[known]], positions.part(known), ranking)
        return concatenated([changes, self.settle(choice)])

    def settle(self, choice: Choice) -> Rows:
        """Set new anchors, reaches and buffers of subscriptions, and update the subscription index."""
        slots, learned, chosen = choice
        rows = self._subscriptions.rows
        is_woken = rows["is_awake"][slots] == 0
        woken, others = slots[is_woken], slots[~is_woken]
        rooms = _rooms(learned)
        self._tables.buffers.take(rows, woken, rooms[is_woken])
        self._tables.buffers.fit(self._objects.table.rows, rows, others, rooms[~is_woken])
        changes = np.empty(int(rows["buffer_count"][slots].sum()) + len(chosen.ids), dtype=CHANGE_DTYPE)
        emitted = buffer_kernels.settle(
            self._objects.table.rows,
            self._objects.table.ids.keys,
            self._objects.table.ids.values,
            rows,
            self._tables.buffers.holdings,
            slots,
            learned,
            chosen,
            changes,
        )
        self._index(woken, others)
        return changes[:emitted]

    def restore(self, slots: Slots) -> Rows:
        """Insert all objects below the reach into buffers, except for those that k others dominate.

        Subscriptions that are due for other weights are evaluated by them, at their anchors.
        """
        rows, buffers, table = self._subscriptions.rows, self._tables.buffers, self._objects.table
        is_outdated = rows["index"][slots] != self._tables.index_numbers(slots)
        changes = [self.anchor(self._tables.anchors(slots[is_outdated]))]
        slots = slots[~is_outdated]
        found = self._below(slots)
        needed = rows["buffer_count"][slots] + np.diff(found.offsets)
        rooms = np.maximum(rows["buffer_room"][slots], needed).astype(np.int32)
        buffers.fit(table.rows, rows, slots, rooms)
        emitted = np.empty(len(found.ids), dtype=CHANGE_DTYPE)
        count = prune_kernels.restore(
            table.rows,
            table.ids.keys,
            table.ids.values,
            rows,
            self._objects.windows.durations,
            buffers.holdings,
            slots,
            found.offsets,
            found.ids,
            found.r_m,
            emitted,
        )
        return concatenated([*changes, emitted[:count]])

    def _below(self, slots: Slots) -> Ranking:
        """Return all objects below the reaches of subscriptions, at their anchors."""
        rows = self._subscriptions.rows[slots]
        places = self._tables.anchors(slots)
        count = np.full(len(slots), _LOOK)
        reach_m = np.ascontiguousarray(rows["reach_m"])
        ranking = self._within(slots, places, count, reach_m)
        while (missing := np.diff(ranking.offsets) == count).any():
            count = np.where(missing, 2 * count, count)
            part = places.part(missing), count[missing], reach_m[missing]
            again = self._within(slots[missing], *part)
            ranking = ranking.replaced(missing, again)
        owners = np.repeat(np.arange(len(slots)), np.diff(ranking.offsets))
        bound_m, is_first = reach_m[owners], ranking.ids < rows["reach_id"][owners]
        is_below = (ranking.length_m < bound_m) | ((ranking.length_m == bound_m) & is_first)
        offsets = np.zeros(len(slots) + 1, dtype=np.int64)
        np.cumsum(np.bincount(owners[is_below], minlength=len(slots)), out=offsets[1:])
        kept = (column[is_below] for column in (ranking.ids, ranking.length_m, ranking.r_m))
        return Ranking(offsets, *kept)

    def _index(self, woken: Slots, others: Slots) -> None:
        """Update places of subscriptions in the subscription indexes, and the index of each."""
        rows, indexes = self._subscriptions.rows, self._tables.indexes
        numbers = self._tables.index_numbers(others)
        changes = rows["index"][others] != numbers
        if changes.any():
            outdated = others[changes]
            self._objects.weights.note_reweighed(rows["id"][outdated])
            indexes.remove(rows["id"][outdated], rows["index"][outdated])
            woken, others = np.concatenate([woken, outdated]), others[~changes]
        if len(woken):
            rows["index"][woken] = self._tables.index_numbers(woken)
            reaches, interests = self._tables.reaches(woken), self._tables.interests(woken)
            indexes.insert(reaches, interests, rows["index"][woken])
        if len(others):
            indexes.move(self._tables.reaches(others), rows["index"][others])

    def choose(self, slots: Slots, rows: Rows, positions: Positions, ranking: Ranking) -> Choice:
        """Choose anchors, reaches and buffers; `rows` are copies, which get the updates."""
        count = len(slots)
        unknown = np.full(count, np.nan)
        model = self._options.costs
        most = int(np.diff(ranking.offsets).max(initial=0)) + 1
        chosen = Chosen(
            np.empty(count),
            np.empty(count),
            np.empty(count),
            np.empty(count, dtype=np.int64),
            np.empty(count + 1, dtype=np.int64),
            np.empty(len(ranking.ids), dtype=np.int64),
            np.empty(len(ranking.ids)),
        )
        held = choice_kernels.choose(
            self._objects.table.rows,
            self._objects.table.ids.keys,
            self._objects.table.ids.values,
            rows,
            self._objects.now_ms,
            Moving(
                positions.x_m,
                positions.y_m,
                unknown if positions.heading_rad is None else positions.heading_rad,
                unknown if positions.speed_mps is None else positions.speed_mps,
                np.zeros(count) if positions.margin_m is None else positions.margin_m,
            ),
            Ranked(ranking.offsets, ranking.ids, ranking.length_m, ranking.r_m),
            Costs(
                model.report,
                model.object,
                model.held,
                model.ahead,
                model.speed_mps,
                *self._objects.windows.rates(),
            ),
            Known.of(most),
            chosen,
        )
        if self._options.prunes:
            held = prune_kernels.prune(
                self._objects.table.rows,
                self._objects.table.ids.keys,
                self._objects.table.ids.values,
                rows,
                self._objects.windows.durations,
                chosen,
                np.empty(held, dtype=np.int32),
            )
        return Choice(slots, rows, chosen._replace(ids=chosen.ids[:held], r_m=chosen.r_m[:held]))


def _rooms(rows: Rows) -> Slots:
    """Return the capacity of buffers: their initial objects, and some space for arrivals."""
    extra = rows["extra"].astype(np.int32)
    spare = np.where(rows["region"] == ELLIPSE, 0, _SPARE + extra // 4)
    rooms: Slots = (rows["k"] + extra + spare).astype(np.int32)
    return rooms
