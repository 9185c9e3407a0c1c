"""Where subscriptions are anchored: what devices are given to hold, and how far it reaches.

Operations: anchor O((k + b)^2) a subscription beyond what the indexes take.

A report is a retrieval of the k + b + 1 best, a choice of anchor and b (`choice_kernels`), and a new
buffer, of which the difference is told. The first two change nothing that others see: large batches are
divided, and parts looked up on other cores while one is settled.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from engine.batches import Positions
from engine.threads import ahead_of
from engine.top_k import buffer_kernels, choice_kernels, margins, region_kernels
from engine.top_k.choice_kernels import Chosen, Costs, Known, Moving, Ranked
from engine.top_k.layout import BY_COST, CHANGE_DTYPE, ELLIPSE, Rows
from engine.top_k.tables import Tables
from index.batches import Floats, Ints, Ranking
from index.tables.slots import Slots

_ROUNDED = 1.0 + 1e-6
"""A length that is kept in 32 bits may be that much too short."""

_SPARE = 4
"""Room for arrivals in every buffer, besides a quarter of b: when it is full the reach is lowered."""

_PART = 16_384
"""Subscriptions that are evaluated at once: bounds the memory of a large batch."""


class Choice(NamedTuple):
    """Where subscriptions are to be anchored and what they are to hold."""

    slots: Slots
    chosen: Chosen


class Evaluation(Tables):
    """Evaluates subscriptions at the places of their devices."""

    def look(self, positions: Positions) -> list[Choice]:
        """Retrieve and choose what `anchor` is to settle, which has to follow.

        It may be called from another thread while no object comes or goes and no subscription begins or
        ends; others may be anchored. Most of the time it is a kernel without the GIL.
        """
        return list(self._looked_up(positions))

    def anchor(self, positions: Positions, seen: list[Choice] | None = None) -> Rows:
        """Evaluate subscriptions anew where their devices are; wake those that are parked.

        Parameters
        ----------
        positions
            Where they are.
        seen
            What `look` has said of these positions, if nothing has changed since.
        """
        changes = [self._settle(*one) for one in (self._looked_up(positions) if seen is None else seen)]
        return np.concatenate(changes) if changes else np.empty(0, dtype=CHANGE_DTYPE)

    def _looked_up(self, positions: Positions) -> Iterator[Choice]:
        """Yield choices, those of a large batch in parts: the next ones are made ahead, on all cores."""
        for choices in ahead_of(self._parts(positions), lambda part: self._choices(*part)):
            yield from choices

    def _parts(self, positions: Positions) -> list[tuple[Slots, Positions]]:
        """Divide a batch, and let subscriptions look for as many objects as they could be given."""
        slots = self.subscriptions.slots(positions.handles)
        rows = self.subscriptions.rows
        base = rows["base_extra"][slots]
        rows["extra"][slots] = np.where(base == BY_COST, self.options.costs.extra_max, base)
        return [
            (slots[start : start + _PART], positions.part(slice(start, start + _PART)))
            for start in range(0, len(slots), _PART)
        ]

    def _best(self, slots: Slots, positions: Positions) -> Ranking:
        """Return the k + extra + 1 best objects of each.

        So many lay within `ample_m` of the last anchor, so they lie within that and the way from there,
        unless too many have left. Where fewer are found, all is looked through.
        """
        rows = self.subscriptions.rows
        count = rows["k"][slots].astype(np.int64) + rows["extra"][slots] + 1
        away_m = np.hypot(positions.x_m - rows["x_m"][slots], positions.y_m - rows["y_m"][slots])
        bound_m = (rows["ample_m"][slots] + away_m) * _ROUNDED
        ranking = self._within(slots, positions, count, bound_m)
        missing = (np.diff(ranking.offsets) < count) & ~np.isinf(bound_m)
        if not missing.any():
            return ranking
        unbounded = np.full(int(missing.sum()), np.inf)
        again = self._within(slots[missing], positions.part(missing), count[missing], unbounded)
        return ranking.replaced(missing, again)

    def _within(self, slots: Slots, positions: Positions, count: Ints, bound_m: Floats) -> Ranking:
        interests = self._interests(slots)
        return self.object_index.best(interests, positions.x_m, positions.y_m, count, bound_m)

    def _choices(self, slots: Slots, positions: Positions) -> list[Choice]:
        """Choose for subscriptions; look for more where the margin of a position needs it."""
        rows = self.subscriptions.rows
        extra_max = self.options.margin_extra_max
        choices: list[Choice] = []
        while True:
            ranking = self._best(slots, positions)
            k = rows["k"][slots].astype(np.int64)
            count = k + rows["extra"][slots] + 1
            short = margins.are_short(ranking, count, k, positions.margin_m, extra_max)
            if short is None:
                choices.append(Choice(slots, self._choose(slots, positions, ranking)))
                return choices
            enough = ~short
            part = positions.part(enough), ranking.part(enough)
            choices.append(Choice(slots[enough], self._choose(slots[enough], *part)))
            slots, positions = slots[short], positions.part(short)
            doubled = np.maximum(1, 2 * rows["extra"][slots].astype(np.int64))
            rows["extra"][slots] = np.minimum(doubled, extra_max)

    def locate(self, positions: Positions, pending_offsets: Ints, pending_ids: Ints) -> Rows:
        """Take the answers of devices in the mode ELLIPSE: decide about the objects that pend.

        Parameters
        ----------
        positions
            Where the devices are.
        pending_offsets, pending_ids
            Which objects pend for each, row i at `offsets[i] : offsets[i + 1]`.
        """
        slots = self.subscriptions.slots(positions.handles)
        rows = self.subscriptions.rows
        starts = np.zeros(len(slots) + 1, dtype=np.int64)
        np.cumsum(rows["k"][slots].astype(np.int64) + 1, out=starts[1:])
        sizes = np.zeros(len(slots), dtype=np.int64)
        ids = np.empty(starts[-1], dtype=np.int64)
        lengths = np.empty(starts[-1])
        shares = np.empty(starts[-1])
        region_kernels.resolve(
            self.objects.rows,
            self.objects.pool,
            self.objects.ids.keys,
            self.objects.ids.values,
            rows,
            self.subscriptions.pool,
            self.buffers.holdings,
            slots,
            positions.x_m,
            positions.y_m,
            pending_offsets,
            pending_ids,
            starts,
            sizes,
            ids,
            lengths,
            shares,
        )
        known = sizes >= 0
        changes = self.anchor(positions.part(~known))
        kept = np.arange(starts[-1]) < np.repeat(starts[:-1] + sizes, np.diff(starts))
        offsets = np.zeros(int(known.sum()) + 1, dtype=np.int64)
        np.cumsum(sizes[known], out=offsets[1:])
        ranking = Ranking(offsets, ids[kept], lengths[kept], shares[kept])
        chosen = self._choose(slots[known], positions.part(known), ranking)
        settled = self._settle(slots[known], chosen)
        return np.concatenate([changes, settled])

    def _settle(self, slots: Slots, chosen: Chosen) -> Rows:
        """Give subscriptions their new anchors, reaches and buffers, and tell the subscription index."""
        rows = self.subscriptions.rows
        is_woken = rows["is_awake"][slots] == 0
        woken, others = slots[is_woken], slots[~is_woken]
        rooms = self._rooms(slots)
        self.buffers.take(rows, woken, rooms[is_woken])
        self.buffers.fit(self.objects.rows, rows, others, rooms[~is_woken])
        changes = np.empty(int(rows["buffer_count"][slots].sum()) + len(chosen.ids), dtype=CHANGE_DTYPE)
        told = buffer_kernels.settle(
            self.objects.rows,
            self.objects.ids.keys,
            self.objects.ids.values,
            rows,
            self.buffers.holdings,
            slots,
            chosen,
            changes,
        )
        if len(woken):
            self.subscription_index.insert(self._regions(woken), self._interests(woken))
        if len(others):
            self.subscription_index.move(self._regions(others))
        return changes[:told]

    def _choose(self, slots: Slots, positions: Positions, ranking: Ranking) -> Chosen:
        """Decide anchors, reaches and buffers."""
        count = len(slots)
        unknown = np.full(count, np.nan)
        model = self.options.costs
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
            self.objects.rows,
            self.objects.ids.keys,
            self.objects.ids.values,
            self.subscriptions.rows,
            slots,
            self.now_ms,
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
                self._arrivals.per_object_s,
                self._departures.per_object_s,
            ),
            Known.of(most),
            chosen,
        )
        return chosen._replace(ids=chosen.ids[:held], r_m=chosen.r_m[:held])

    def _rooms(self, slots: Slots) -> Slots:
        """Return how much room buffers need: what they begin with, and some for arrivals."""
        rows = self.subscriptions.rows
        extra = rows["extra"][slots].astype(np.int32)
        spare = np.where(rows["region"][slots] == ELLIPSE, 0, _SPARE + extra // 4)
        rooms: Slots = (rows["k"][slots] + extra + spare).astype(np.int32)
        return rooms
