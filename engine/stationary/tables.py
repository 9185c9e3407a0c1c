"""Hold the data of the matcher of stationary subscriptions: rows, entries of buffers, indexes.

Operations: make_room and park O(entries) a subscription, the others O(1).
"""

from __future__ import annotations

import numpy as np

from engine.contracts import Positions, Rows
from engine.objects import Objects
from engine.options import EngineOptions
from engine.share_kernels import Texts, share_of
from engine.stationary import entry_kernels
from engine.stationary.layout import ENTRY_DTYPE, NOTHING, ROOM_STEP, SUBSCRIPTION_DTYPE
from engine.subscription_indexes import SubscriptionIndexes, index_numbers
from index.batches import Floats, InterestBatch, Ints, Ranking, ReachBatch
from index.tables import SlotTable
from index.tables.growth import longer
from index.tables.slots import Slots
from safe_region.jit import kernel

_ENTRIES_MIN = 64
_HEADS_MIN = 16


class StationaryTables:
    """Subscriptions, and their buffers.

    Parameters
    ----------
    objects
        The live objects, common to all matchers.
    options
        The choice of the indexes.
    """

    def __init__(self, objects: Objects, options: EngineOptions) -> None:
        self.objects = objects
        self.subscriptions = SlotTable(SUBSCRIPTION_DTYPE)
        self.indexes = SubscriptionIndexes(options.subscription_index, options.weighted_index)
        self.entries: Rows = np.zeros(_ENTRIES_MIN, dtype=ENTRY_DTYPE)
        self.free: Slots = entry_kernels.new_free(16)
        self._free_counts: Slots = np.zeros(16, dtype=np.int32)
        self._ends = np.zeros(1, dtype=np.int64)
        self._heads: Slots = np.full(_HEADS_MIN, NOTHING, dtype=np.int32)

    def heads(self) -> Slots:
        """Return the chains of the objects: the first entry by slot of the object, or NOTHING."""
        if (before := len(self._heads)) < self.objects.table.end:
            self._heads = longer(self._heads, self.objects.table.end)
            self._heads[before:] = NOTHING
        return self._heads

    @property
    def end(self) -> int:
        """Return the number of the first entry of the unused rest."""
        return int(self._ends[0])

    # -- capacity --------------------------------------------------------------------------------

    def make_room(self, slots: Slots, needed: Ints) -> None:
        """Resize buffers to at least `needed` entries, and less than about three times as many."""
        rows = self.subscriptions.rows
        room = rows["entry_room"][slots]
        others = (room < needed) | (room > 3 * (needed + ROOM_STEP))
        others &= rows["entry_count"][slots] <= needed
        if not others.any():
            return
        steps = _sizes(needed[others])
        most = int(steps.max())
        if most >= len(self.free):
            self.free = np.concatenate([self.free, entry_kernels.new_free(most + 1)])
            counts = np.zeros(len(self.free), dtype=np.int32)
            counts[: len(self._free_counts)] = self._free_counts
            self._free_counts = counts
        missing = np.bincount(steps, minlength=len(self.free)) - self._free_counts
        added = int((np.maximum(missing, 0) * np.arange(len(self.free))).sum())
        self.entries = longer(self.entries, self.end + added * ROOM_STEP)
        entry_kernels.relocate(
            self.heads(),
            rows,
            self.entries,
            self.free,
            self._free_counts,
            slots[others],
            steps,
            self._ends,
        )

    def park(self, slots: Slots) -> None:
        """Clear buffers, and remove subscriptions from the indexes."""
        rows = self.subscriptions.rows
        self.indexes.remove(rows["id"][slots], rows["index"][slots])
        entry_kernels.clear(self.heads(), rows, self.entries, slots)
        entry_kernels.give_back(rows, self.entries, self.free, self._free_counts, slots)
        rows["is_awake"][slots] = 0

    # -- indexes ---------------------------------------------------------------------------------

    def interests(self, slots: Slots) -> InterestBatch:
        """Return the interests of subscriptions."""
        table = self.subscriptions
        weight_m, similarity = table.rows["weight_m"][slots], table.rows["similarity"][slots]
        return self.objects.weighed(InterestBatch(weight_m, similarity, table.keyword_lists(slots)))

    def best(self, slots: Slots, count: Ints, bound_m: Floats | None = None) -> Ranking:
        """Return the best objects of each subscription at its place, among those in its window."""
        rows = self.subscriptions.rows[slots]
        bound_m = np.full(len(slots), np.inf) if bound_m is None else bound_m
        first_ids = self.objects.windows.first_ids[rows["window"]]
        return self.objects.index.best(
            self.interests(slots), rows["x_m"], rows["y_m"], count, bound_m, first_ids
        )

    def enter(self, slots: Slots) -> None:
        """Update places and reaches of subscriptions in the indexes."""
        rows = self.subscriptions.rows
        numbers = index_numbers(rows["similarity"][slots], self.objects.weights.current)
        is_there = rows["is_awake"][slots] == 1
        changes = is_there & (rows["index"][slots] != numbers)
        if changes.any():
            self.objects.weights.note_reweighed(rows["id"][slots[changes]])
            self.indexes.remove(rows["id"][slots[changes]], rows["index"][slots[changes]])
        rows["index"][slots] = numbers
        rows["is_awake"][slots] = 1
        added = slots[~is_there | changes]
        if len(added):
            self.indexes.insert(self.reaches(added), self.interests(added), rows["index"][added])
        if len(added) < len(slots):
            self.move(slots[is_there & ~changes])

    def move(self, slots: Slots) -> None:
        """Update the reaches of subscriptions in the indexes."""
        self.indexes.move(self.reaches(slots), self.subscriptions.rows["index"][slots])

    def reaches(self, slots: Slots) -> ReachBatch:
        """Return the places and reaches of subscriptions."""
        rows = self.subscriptions.rows
        handles, x_m, y_m, reach_m, reach_id = (
            rows[name][slots] for name in ("id", "x_m", "y_m", "reach_m", "reach_id")
        )
        return ReachBatch(handles, x_m, y_m, np.zeros(len(slots)), reach_m, reach_id)

    def outdated(self, count: int) -> Positions:
        """Return up to `count` subscriptions that earlier weights evaluated, at their places."""
        used = self.subscriptions.used()
        rows = self.subscriptions.rows
        awake = used[rows["is_awake"][used] == 1]
        numbers = index_numbers(rows["similarity"][awake], self.objects.weights.current)
        found = rows[awake[rows["index"][awake] != numbers][:count]]
        return Positions(*(found[name].copy() for name in ("id", "x_m", "y_m")))

    # -- buffers of devices ----------------------------------------------------------------------

    def results(self, slot: int) -> tuple[Ints, Floats]:
        """Return ids and constant parts of the result of one subscription, by id."""
        row = self.subscriptions.rows[slot]
        start = int(row["entry_start"])
        entries = self.entries[start : start + int(row["entry_count"])]
        entries = entries[entries["is_result"] == 1]
        entries = entries[np.argsort(entries["object_id"])]
        shares = np.empty(len(entries))
        table = self.objects.table
        texts = self.objects.texts_with(self.subscriptions)
        _fill_shares(table.rows, self.subscriptions.rows, slot, texts, entries["object"].copy(), shares)
        return entries["object_id"].copy(), shares

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        own = self._heads.nbytes + self.entries.nbytes + self.free.nbytes
        return own + self.subscriptions.memory_bytes() + self.indexes.memory_bytes()


def _sizes(needed: Ints) -> Slots:
    """Return the steps of spans for `needed` entries, and a few more: 1 to 8, 10, 12, 14, 16, 20, ...

    Four sizes up to each doubling: few different ones, so that freed spans fit other buffers.
    """
    steps = np.maximum(1, -(-(needed + needed // 8) // ROOM_STEP))
    quantum = np.maximum(1, np.exp2(np.floor(np.log2(steps)) - 2.0).astype(np.int64))
    found: Slots = (-(-steps // quantum) * quantum).astype(np.int32)
    return found


@kernel
def _fill_shares(
    objects: Rows, subscriptions: Rows, slot: int, texts: Texts, slots: Slots, shares: Floats
) -> None:
    """Write the constant part of each object's length for a subscription."""
    for i in range(slots.shape[0]):
        shares[i] = share_of(subscriptions[slot], objects[slots[i]], texts)
