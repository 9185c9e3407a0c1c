"""The engine: what devices hold, kept right. Arrays in, arrays out.

Operations (batches; costs per item beyond those of the two indexes): publish O(matches * k), remove
O(holders), anchor O((k + b)^2), advance O(log n) an expired object. Each returns what entered and left
buffers, grouped by subscription, and changes nothing else that a device can see than anchors and reaches.
Within an instant the caller applies: advance, remove, publish, anchor.

Plan: objects and subscriptions are rows; buffers are stretches of holdings, chained by object, which is
the result index. The object index says what is best at a place, the subscription index who is affected by
an object. In the mode ELLIPSE (Lamps) a new object waits for the device's position: `publish` returns the
pairs, `locate` takes the answers.

Warnings: the engine trusts its caller. Ids are new, handles exist, time does not go backwards.

Source: lamps.txt section 3 (framework), algorithms 2 to 4 (the three event paths).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from index.batches import Floats, InterestBatch, Ints, KeywordLists, ObjectBatch, Ranking, ReachBatch
from index.tables import SlotTable
from index.tables.slots import Slots
from server.engine import buffer_kernels, choice_kernels, margins, region_kernels
from server.engine.batches import EngineOptions, Pending, Positions, Published
from server.engine.buffers import Buffers
from server.engine.choice_kernels import Chosen, Costs, Known, Moving, Ranked
from server.engine.expiries import Expiries
from server.engine.layout import (
    BY_COST,
    CHANGE_DTYPE,
    ELLIPSE,
    NO_HOLDING,
    OBJECT_DTYPE,
    SUBSCRIPTION_DTYPE,
    Rows,
)
from server.engine.threads import ahead_of
from server.engine.turnover import Turnover

_SPARE = 4
"""Room for arrivals in every buffer, besides a quarter of b: when it is full the reach is lowered."""

_PART = 16_384
"""Subscriptions that are evaluated at once: bounds the memory of a large batch."""


class Engine:
    """Exact top-k results for moving subscriptions.

    Parameters
    ----------
    options
        Buffer size and the choice of indexes.
    """

    def __init__(self, options: EngineOptions | None = None) -> None:
        self.options = options or EngineOptions()
        self.now_ms = 0
        self.objects = SlotTable(OBJECT_DTYPE)
        self.subscriptions = SlotTable(SUBSCRIPTION_DTYPE)
        self.buffers = Buffers()
        self.object_index = self.options.object_index()
        self.subscription_index = self.options.subscription_index()
        self._expiries = Expiries()
        self._arrivals = Turnover()
        self._departures = Turnover()

    # -- time and objects ------------------------------------------------------------------------

    def advance(self, now_ms: int, on_due: Callable[[Ints], None] = lambda _due: None) -> Ints:
        """Set the time and remove what expires by it, from buffers too; return its ids.

        Nobody is told: both sides know the expiry. `on_due` is called with the ids before they go.

        Raises
        ------
        ValueError
            If time would go backwards.
        """
        if now_ms < self.now_ms:
            raise ValueError(f"now_ms is {now_ms}, must be at least {self.now_ms}")
        self.now_ms = now_ms
        due = self._expiries.pop_due(now_ms)
        if len(due):
            due = due[self.objects.ids.present(due)]
            on_due(due)
            self._remove(due, tell=False)
        return due

    def publish(self, objects: ObjectBatch, expiry_ms: Ints) -> Published:
        """Add objects."""
        slots = self.objects.append(
            objects.ids,
            objects.keywords,
            {
                "x_m": objects.x_m,
                "y_m": objects.y_m,
                "expiry_ms": expiry_ms,
                "first_holding": np.full(len(objects), NO_HOLDING, dtype=np.int32),
            },
        )
        self._expiries.push(expiry_ms, objects.ids)
        self._arrivals.note(self.now_ms, len(objects), len(self.objects))
        self.object_index.insert(objects)
        matches = self.subscription_index.match(objects)
        rows = np.repeat(np.arange(len(objects)), np.diff(matches.offsets))
        owners = self.subscriptions.slots(matches.ids)
        is_ellipse = self.subscriptions.rows["region"][owners] == ELLIPSE
        pending = Pending(matches.ids[is_ellipse], objects.ids[rows[is_ellipse]])
        np.add.at(self.subscriptions.rows["pending_count"], owners[is_ellipse], 1)
        changes, lowered = self._admit(owners[~is_ellipse], slots[rows[~is_ellipse]])
        return Published(changes, lowered, pending)

    def _admit(self, owners: Slots, new_slots: Slots) -> tuple[Rows, Ints]:
        """Let objects into the buffers of anchored subscriptions; lower reaches where they overflow."""
        if not len(owners):
            return np.empty(0, dtype=CHANGE_DTYPE), np.empty(0, dtype=np.int64)
        order = np.argsort(owners, kind="stable")
        touched = np.unique(owners)
        rows = self.subscriptions.rows
        changes = np.empty(len(owners) + int(rows["buffer_count"][touched].sum()), dtype=CHANGE_DTYPE)
        moved = np.empty(len(touched), dtype=np.int32)
        room = int((rows["k"][touched] + rows["extra"][touched]).max()) + 1
        told, moved_count = buffer_kernels.admit(
            self.objects.rows,
            self.objects.pool,
            rows,
            self.subscriptions.pool,
            self.buffers.holdings,
            owners[order],
            new_slots[order],
            changes,
            moved,
            np.empty(room),
            np.empty(room, dtype=np.int64),
            np.empty(room),
        )
        if moved_count:
            self.subscription_index.move(self._regions(moved[:moved_count]))
        return changes[:told], rows["id"][moved[:moved_count]]

    def remove(self, ids: Ints) -> Rows:
        """Remove live objects; return what left buffers."""
        return self._remove(ids, tell=True)

    def _remove(self, ids: Ints, *, tell: bool) -> Rows:
        slots = self.objects.slots(ids)
        holdings = self.buffers.holdings
        count = buffer_kernels.count_holders(self.objects.rows, holdings, slots) if tell else 0
        changes = np.empty(count, dtype=CHANGE_DTYPE)
        buffer_kernels.remove_objects(
            self.objects.rows, self.subscriptions.rows, holdings, slots, changes
        )
        self.object_index.remove(ids)
        self.objects.remove(ids)
        self._departures.note(self.now_ms, len(ids), len(self.objects))
        return changes[np.argsort(changes["handle"], kind="stable")]

    # -- subscriptions ---------------------------------------------------------------------------

    def subscribe(
        self, handles: Ints, interests: InterestBatch, k: Ints, region: Ints, extra: Ints | None = None
    ) -> None:
        """Make subscriptions known, parked; `anchor` wakes them.

        Parameters
        ----------
        handles
            The caller's numbers, never used before.
        interests
            What they look for.
        k, region
            Size of each result and mode of each safe region (`RegionMode`).
        extra
            b of each anchored subscription; by default that of the options, or by cost.
        """
        if extra is None:
            chosen = self.options.buffer_extra
            extra = np.full(len(handles), BY_COST if chosen is None else chosen, dtype=np.int64)
        extra = np.where(region == ELLIPSE, 0, extra)
        self.subscriptions.append(
            handles,
            interests.keywords,
            {
                "weight_m": interests.weight_m,
                "similarity": interests.similarity,
                "k": k,
                "extra": np.maximum(extra, 0),
                "base_extra": extra,
                "region": region,
                "anchored_ms": np.zeros(len(handles), dtype=np.int64),
                "speed_mps": np.full(len(handles), np.nan, dtype=np.float32),
                "arrivals": np.zeros(len(handles), dtype=np.float32),
                "held_s": np.zeros(len(handles), dtype=np.float32),
                "is_awake": np.zeros(len(handles), dtype=np.int8),
                "buffer_count": np.zeros(len(handles), dtype=np.int32),
                "buffer_room": np.zeros(len(handles), dtype=np.int32),
                "pending_count": np.zeros(len(handles), dtype=np.int32),
            },
        )

    def unsubscribe(self, handles: Ints) -> None:
        """Forget subscriptions."""
        self.park(handles)
        self.subscriptions.remove(handles)

    def park(self, handles: Ints) -> None:
        """Stop evaluating subscriptions until `anchor`. Nothing happens to those parked already."""
        slots = self.subscriptions.slots(handles)
        rows = self.subscriptions.rows
        slots = slots[rows["is_awake"][slots] == 1]
        if not len(slots):
            return
        self.subscription_index.remove(rows["id"][slots])
        buffer_kernels.clear(self.objects.rows, rows, self.buffers.holdings, slots)
        self.buffers.give_back(rows, slots)
        rows["is_awake"][slots] = 0
        rows["pending_count"][slots] = 0

    def is_awake(self, handle: int) -> bool:
        """Whether a subscription is evaluated."""
        return bool(self.row(handle)["is_awake"])

    def are_awake(self, handles: Ints) -> list[bool]:
        """Whether each subscription is evaluated."""
        awake: list[bool] = (self.rows(handles)["is_awake"] == 1).tolist()
        return awake

    def rows(self, handles: Ints) -> Rows:
        """Return the rows of subscriptions, copied (`layout.SUBSCRIPTION_DTYPE`)."""
        found: Rows = self.subscriptions.rows[self.subscriptions.slots(handles)]
        return found

    def row(self, handle: int) -> np.void:
        """Return the row of one subscription (`layout.SUBSCRIPTION_DTYPE`)."""
        (slot,) = self.subscriptions.slots(np.array([handle], dtype=np.int64))
        found: np.void = self.subscriptions.rows[slot]
        return found

    def buffer(self, handle: int) -> tuple[Ints, Floats]:
        """Return ids and text shares of what the device of a subscription holds."""
        row = self.row(handle)
        start = int(row["buffer_start"])
        held = self.buffers.holdings[start : start + int(row["buffer_count"])]
        return self.objects.rows["id"][held["object"]], held["r_m"].copy()

    def look(self, positions: Positions) -> list[Ranking]:
        """Retrieve what `anchor` will need; may be called from another thread while nothing changes.

        Most of the time it is a kernel without the GIL.
        """
        return list(ahead_of(self._parts(positions), lambda part: self._best(*part)))

    def anchor(self, positions: Positions, seen: list[Ranking] | None = None) -> Rows:
        """Evaluate subscriptions anew where their devices are; wake those that are parked.

        A large batch is evaluated in parts, on all cores: retrieval changes nothing.

        Parameters
        ----------
        positions
            Where they are.
        seen
            What `look` has said of these positions, if nothing has changed since.
        """
        parts = self._parts(positions)
        rankings = ahead_of(parts, lambda part: self._best(*part)) if seen is None else seen
        changes = [self._anchor(*part, ranking) for part, ranking in zip(parts, rankings, strict=True)]
        return np.concatenate(changes) if changes else np.empty(0, dtype=CHANGE_DTYPE)

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
        """Return the k + extra + 1 best objects of each."""
        rows = self.subscriptions.rows
        count = rows["k"][slots].astype(np.int64) + rows["extra"][slots] + 1
        unbounded = np.full(len(slots), np.inf)
        interests = self._interests(slots)
        return self.object_index.best(interests, positions.x_m, positions.y_m, count, unbounded)

    def _anchor(self, slots: Slots, positions: Positions, ranking: Ranking) -> Rows:
        """Settle subscriptions; ask again, for more, where the margin of a position needs it."""
        rows = self.subscriptions.rows
        extra_max = self.options.margin_extra_max
        changes: list[Rows] = []
        while True:
            k = rows["k"][slots].astype(np.int64)
            count = k + rows["extra"][slots] + 1
            short = margins.are_short(ranking, count, k, positions.margin_m, extra_max)
            if short is None:
                changes.append(self._settle(slots, positions, ranking))
                return np.concatenate(changes)
            enough = ~short
            part = margins.part_of(ranking, enough)
            changes.append(self._settle(slots[enough], positions.part(enough), part))
            slots, positions = slots[short], positions.part(short)
            doubled = np.maximum(1, 2 * rows["extra"][slots].astype(np.int64))
            rows["extra"][slots] = np.minimum(doubled, extra_max)
            ranking = self._best(slots, positions)

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
        settled = self._settle(slots[known], positions.part(known), ranking)
        return np.concatenate([changes, settled])

    def _settle(self, slots: Slots, positions: Positions, ranking: Ranking) -> Rows:
        """Give subscriptions their new anchors, reaches and buffers, and tell the subscription index."""
        rows = self.subscriptions.rows
        is_woken = rows["is_awake"][slots] == 0
        woken = slots[is_woken]
        chosen = self._choose(slots, positions, ranking)
        rooms = self._rooms(slots)
        self.buffers.take(rows, woken, rooms[is_woken])
        self.buffers.fit(self.objects.rows, rows, slots[~is_woken], rooms[~is_woken])
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
        if len(woken) < len(slots):
            self.subscription_index.move(self._regions(slots[~is_woken]))
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

    def search(self, interests: InterestBatch, k: Ints, x_m: Floats, y_m: Floats) -> Ranking:
        """Return the k best at each place, now, for nobody in particular."""
        return self.object_index.best(interests, x_m, y_m, k, np.full(len(k), np.inf))

    def regions_of(self, handles: Ints) -> ReachBatch:
        """Return where the subscription index looks for subscriptions, and how far."""
        return self._regions(self.subscriptions.slots(handles))

    def _interests(self, slots: Slots) -> InterestBatch:
        table = self.subscriptions
        counts = table.rows["keyword_count"][slots].astype(np.int64)
        offsets = np.zeros(len(slots) + 1, dtype=np.int64)
        np.cumsum(counts, out=offsets[1:])
        places = np.repeat(table.rows["keyword_start"][slots] - offsets[:-1], counts)
        words = table.pool[places + np.arange(offsets[-1])]
        return InterestBatch(
            table.rows["weight_m"][slots], table.rows["similarity"][slots], KeywordLists(offsets, words)
        )

    def _regions(self, slots: Slots) -> ReachBatch:
        rows = self.subscriptions.rows
        count = len(slots)
        batch = ReachBatch(
            rows["id"][slots],
            np.empty(count),
            np.empty(count),
            np.empty(count),
            np.empty(count),
            np.empty(count, dtype=np.int64),
        )
        region_kernels.fill_reaches(
            self.objects.rows,
            rows,
            self.buffers.holdings,
            slots,
            batch.x_m,
            batch.y_m,
            batch.radius_m,
            batch.reach_m,
            batch.reach_id,
            np.empty((3, int(rows["buffer_room"][slots].max()))),
        )
        return batch
