"""Live objects: one table and one index for all matchers.

Operations (per object, beyond the index): insert and remove O(1), expiry O(log n).
"""

from __future__ import annotations

import numpy as np

from engine.expiries import Expiries
from engine.layout import NO_HOLDING, OBJECT_DTYPE
from engine.turnover import Turnover
from index.batches import Ints, ObjectBatch
from index.contracts import InconsistentIndexError, ObjectIndex
from index.tables import SlotTable
from index.tables.slots import Slots


class Objects:
    """What is alive.

    Parameters
    ----------
    index
        Where the best and the nearest are found.
    """

    def __init__(self, index: ObjectIndex) -> None:
        self.table = SlotTable(OBJECT_DTYPE)
        self.index = index
        self.now_ms = 0
        self.arrivals = Turnover()
        self.departures = Turnover()
        self._expiries = Expiries()

    def __len__(self) -> int:
        return len(self.table)

    def insert(self, objects: ObjectBatch, expiry_ms: Ints) -> Slots:
        """Add objects; return their slots."""
        slots = self.table.append(
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
        self.arrivals.note(self.now_ms, len(objects), len(self.table))
        self.index.insert(objects)
        return slots

    def remove(self, ids: Ints) -> None:
        """Remove objects that no buffer holds any more."""
        self.index.remove(ids)
        self.table.remove(ids)
        self.departures.note(self.now_ms, len(ids), len(self.table))

    def batch(self, slots: Slots) -> ObjectBatch:
        """Return live objects. O(keywords)."""
        rows = self.table.rows
        return ObjectBatch(
            rows["id"][slots], rows["x_m"][slots], rows["y_m"][slots], self.table.keyword_lists(slots)
        )

    def due(self, now_ms: int) -> Ints:
        """Set the time; return the ids of those that have expired by it, which are still here.

        Raises
        ------
        ValueError
            If time would go backwards.
        """
        if now_ms < self.now_ms:
            raise ValueError(f"now_ms is {now_ms}, must be at least {self.now_ms}")
        self.now_ms = now_ms
        due = self._expiries.pop_due(now_ms)
        return due[self.table.ids.present(due)] if len(due) else due

    def memory_bytes(self) -> int:
        """Size of the table, the index and the queue of expiries."""
        return self.table.memory_bytes() + self.index.memory_bytes() + self._expiries.memory_bytes()

    def check(self) -> None:
        """Verify table and index.

        Raises
        ------
        InconsistentIndexError
            Naming what does not hold.
        """
        self.table.check()
        self.index.check()
        if len(self.index) != len(self.table):
            raise InconsistentIndexError("the object index does not hold what is alive")
        if (self.table.rows["expiry_ms"][self.table.used()] <= self.now_ms).any():
            raise InconsistentIndexError("something is held that is not alive")
