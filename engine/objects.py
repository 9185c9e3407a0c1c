"""Hold live objects: one table and one index for all matchers, and another index for objects with areas.

Operations (per object, beyond the index): insert and remove O(1), expiry O(log n). The queue of expiries
has at most as many removed objects as live ones, and 1,024.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from engine.areas import Areas
from engine.expiries import ALL, Expiries
from engine.layout import NO_HOLDING, OBJECT_DTYPE
from engine.polygons import Rings
from engine.share_kernels import Texts
from engine.weights import SLOTS, Refill, Weights
from engine.windows import Windows
from index.batches import Boxes, Floats, InterestBatch, Ints, KeywordLists, ObjectBatch
from index.contracts import InconsistentIndexError, ObjectIndex
from index.tables import SlotTable
from index.tables.slots import Slots
from safe_region.scoring.formulas import Similarity

_NEVER_MS = 2**62


class Objects:
    """The live objects.

    Parameters
    ----------
    make_index
        The factory of an index that finds the best and the nearest objects by their points.
    area_index
        The index of the objects that have areas.
    """

    def __init__(self, make_index: Callable[[], ObjectIndex], area_index: ObjectIndex) -> None:
        self.table = SlotTable(OBJECT_DTYPE)
        self.weights = Weights()
        self.index = make_index()
        self._make_index = make_index
        self._coming: tuple[ObjectIndex, Refill] | None = None
        """The index that is to replace the current one, with the next weights."""
        self.areas = Areas(area_index, self.table)
        self.now_ms = 0
        self.hidden: Ints = np.empty(0, dtype=np.int64)
        """Objects in the table that are in no index any more: see `hide`."""
        self.due_ms = 0
        """Before this time nothing expires and nothing is settled. Code that adds such work lowers it."""
        self.windows = Windows(self.table)
        self._expiries = Expiries()

    def __len__(self) -> int:
        return len(self.table)

    def insert(
        self,
        objects: ObjectBatch,
        expiry_ms: Ints,
        rings: Rings | None = None,
        created_ms: Ints | None = None,
    ) -> Slots:
        """Add objects, after windows have released older ones; return their slots.

        `rings` has a row for each object, with one ring for a polygon; `created_ms` defaults to the
        current time.
        """
        if created_ms is None:
            created_ms = np.full(len(objects), self.now_ms, dtype=np.int64)
        norms = self.norms(objects)
        slots = self.table.append(
            objects.ids,
            objects.keywords,
            {
                "x_m": objects.x_m,
                "y_m": objects.y_m,
                "norm2_0": norms[:, 0],
                "norm2_1": norms[:, 1],
                "created_ms": created_ms,
                "expiry_ms": expiry_ms,
                "first_holding": np.full(len(objects), NO_HOLDING, dtype=np.int32),
            },
        )
        self._expiries.push(expiry_ms, objects.ids)
        self.due_ms = min(self.due_ms, int(expiry_ms.min(initial=_NEVER_MS)))
        self.windows.arrived(objects.ids, self.now_ms)
        self.index.insert(replace(objects, norm2=norms[:, self.weights.current].copy()))
        if self._coming is not None:
            self._coming[0].insert(replace(objects, norm2=norms[:, self.weights.other].copy()))
        self.areas.insert(objects, slots, rings)
        return slots

    def remove(self, ids: Ints) -> None:
        """Remove objects that no buffer holds any more."""
        self._remove_from_index(ids)
        self._remove_from_table(ids)

    def hide(self, ids: Ints) -> None:
        """Remove objects from the index, while buffers still hold them; `remove_hidden` removes the rest.

        Searches do not find them. Their rows stay as they are, and so do their slots.
        """
        self._remove_from_index(ids)
        self.hidden = np.concatenate([self.hidden, ids])

    def remove_hidden(self) -> None:
        """Remove the hidden objects, which no buffer holds any more."""
        self._remove_from_table(self.hidden)
        self.hidden = self.hidden[:0]

    def _remove_from_index(self, ids: Ints) -> None:
        self.index.remove(ids)
        if self._coming is not None:
            self._coming[0].remove(ids[self._coming[1].has(ids)])

    def _remove_from_table(self, ids: Ints) -> None:
        self.areas.remove(ids, self.table.remove(ids))
        self._expiries.drop_gone(self.table.ids)
        self.windows.departed(ids, self.now_ms)

    # -- weights ---------------------------------------------------------------------------------

    def texts_with(self, subscriptions: SlotTable) -> Texts:
        """Return the keywords of the objects and of subscriptions, and their weights, for kernels."""
        return Texts(self.table.pool, subscriptions.pool, self.weights.squares)

    def norms(self, objects: ObjectBatch) -> Floats:
        """Return the sum of the squared weights of each object's keywords, by object and slot."""
        found = np.empty((len(objects), SLOTS))
        for slot in range(SLOTS):
            found[:, slot] = self.weights.norms(objects.keywords, slot)
        return found

    def weighed(self, interests: InterestBatch) -> InterestBatch:
        """Return interests with the current weights of keywords, where their similarity uses weights."""
        is_weighed = interests.similarity == Similarity.TFIDF
        if not is_weighed.any():
            return interests
        lists, weights = interests.keywords, self.weights
        squares = weights.of_keywords(lists.ids, weights.current)
        squares = np.where(np.repeat(is_weighed, np.diff(lists.offsets)), squares, 1.0)
        return replace(interests, squares=squares)

    def norms_of(self, slots: Slots) -> Floats:
        """Return the same sums for live objects."""
        rows = self.table.rows
        found = np.empty((len(slots), SLOTS))
        for slot in range(SLOTS):
            found[:, slot] = rows[f"norm2_{slot}"][slots]
        return found

    def begin_weights(self, generation: int, squares: Floats) -> None:
        """Start the change to other weights, given by keyword; `fill` continues it."""
        self.weights.put_generation(generation, squares)
        used, slot = self.table.used(), self.weights.other
        rows = self.table.rows
        rows[f"norm2_{slot}"][used] = self.weights.norms(self.table.keyword_lists(used), slot)
        self._coming = self._make_index(), Refill(np.sort(rows["id"][used]), self.windows.next_id)

    def fill(self, count: int) -> bool:
        """Insert up to `count` objects into the next index; return whether the change is complete.

        After the last of them the next index replaces the current one, and the next weights are in force.
        """
        if self._coming is None:
            return True
        index, refill = self._coming
        ids = refill.take(count)
        if not len(ids):
            self.index, self._coming = index, None
            self.weights.current = self.weights.other
            return True
        slots = self.table.slots(ids[self.table.ids.present(ids)])
        norm2 = self.table.rows[f"norm2_{self.weights.other}"][slots]
        index.insert(replace(self.batch(slots), norm2=norm2))
        return False

    def batch(self, slots: Slots) -> ObjectBatch:
        """Return live objects. O(keywords)."""
        rows = self.table.rows
        x_m, y_m = rows["x_m"][slots], rows["y_m"][slots]
        boxes = self.areas.boxes(slots, x_m, y_m)
        return ObjectBatch(rows["id"][slots], x_m, y_m, self.table.keyword_lists(slots), boxes)

    def near(self, required: KeywordLists, boxes: Boxes) -> tuple[Ints, Slots]:
        """Return objects that have all given keywords and may meet a box, as pairs of a row and a slot.

        Objects that are points lie in the box. Others may be somewhat beyond it.
        """
        found = self.index.within(required, boxes)
        rows, slots = _rows_of(found.offsets), self.table.slots(found.ids)
        if not len(self.areas):
            return rows, slots
        are_points = self.areas.are_points(slots)
        found = self.areas.index.within(required, self.areas.grown(boxes))
        return (
            np.concatenate([rows[are_points], _rows_of(found.offsets)]),
            np.concatenate([slots[are_points], self.table.slots(found.ids)]),
        )

    def look_ahead(self, settle_ms: int | None) -> None:
        """Set the next due time, once all due work is done; `settle_ms` is that of settling."""
        times = (self._expiries.next_ms(), settle_ms)
        self.due_ms = min((one for one in times if one is not None), default=_NEVER_MS)

    def next_due_ms(self) -> int | None:
        """Return the time when, without new objects, the next one expires or leaves a window of time."""
        times = [self._expiries.next_ms(), self.windows.next_due_ms()]
        return min((one for one in times if one is not None), default=None)

    def due(self, now_ms: int, count_max: int = ALL) -> Ints:
        """Set the time; return the ids of objects that have expired by it and are still in the table.

        Of more than `count_max`, the next calls return the rest.

        Raises
        ------
        ValueError
            If time would go backwards.
        """
        if now_ms < self.now_ms:
            raise ValueError(f"now_ms is {now_ms}, must be at least {self.now_ms}")
        self.now_ms = now_ms
        due = self._expiries.pop_due(now_ms, count_max)
        return due[self.table.ids.present(due)] if len(due) else due

    @property
    def has_due(self) -> bool:
        """Whether objects that have expired are still to be returned by `due`. O(1)."""
        next_ms = self._expiries.next_ms()
        return next_ms is not None and next_ms <= self.now_ms

    def memory_bytes(self) -> int:
        """Return the size of the table, the indexes and the queue of expiries."""
        parts = (self.table, self.index, self._expiries, self.areas, self.weights)
        coming = 0 if self._coming is None else self._coming[0].memory_bytes()
        return coming + sum(part.memory_bytes() for part in parts)

    def check(self) -> None:
        """Verify table and index.

        Raises
        ------
        InconsistentIndexError
            Names the invariant that does not hold.
        """
        self.table.check()
        self.index.check()
        self.areas.check()
        self.windows.check(self.now_ms)
        if len(self.index) + len(self.hidden) != len(self.table):
            raise InconsistentIndexError("the object index does not hold the live objects")
        used = self.table.used()
        used = used[~np.isin(self.table.rows["id"][used], self.hidden)]
        if (self.table.rows["expiry_ms"][used] <= self.now_ms).any():
            raise InconsistentIndexError("a held object is not alive")


def _rows_of(offsets: Ints) -> Ints:
    """Return the row of each found object."""
    rows: Ints = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return rows
