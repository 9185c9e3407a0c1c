"""The engine: what devices hold, kept right. Arrays in, arrays out.

Operations (batches; costs per item beyond those of the two indexes): publish O(matches * k), remove
O(holders), anchor O((k + b)^2), advance O(log n) an expired object. Each returns what entered and left
buffers, grouped by subscription, and changes nothing else that a device can see than anchors and reaches.
Within an instant the caller applies: advance, remove, publish, anchor.

Plan: `tables` is what there is, `evaluation` anchors subscriptions, what is here lets objects and
subscriptions come and go. Both are rows; buffers are stretches of holdings, chained by object, which is
the result index. The object index says what is best at a place, the subscription index who is affected by
an object. In the mode ELLIPSE (Lamps) a new object waits for the device's position: `publish` returns the
pairs, `locate` takes the answers.

Warnings: the engine trusts its caller. Ids are new, handles exist, time does not go backwards.

Source: lamps.txt section 3 (framework), algorithms 2 to 4 (the three event paths).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from engine.batches import EngineOptions, Pending, Published
from engine.expiries import Expiries
from engine.top_k import buffer_kernels
from engine.top_k.evaluation import Evaluation
from engine.top_k.layout import BY_COST, CHANGE_DTYPE, ELLIPSE, NO_HOLDING, Rows
from index.batches import InterestBatch, Ints, ObjectBatch
from index.tables.slots import Slots


class Engine(Evaluation):
    """Exact top-k results for moving subscriptions.

    Parameters
    ----------
    options
        Buffer size and the choice of indexes.
    """

    def __init__(self, options: EngineOptions | None = None) -> None:
        super().__init__(options)
        self._expiries = Expiries()

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
                "ample_m": np.full(len(handles), np.inf, dtype=np.float32),
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
