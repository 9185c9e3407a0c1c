"""Hold the objects that wait for the position of a subscription's device.

Operations: note and take O(1) a pair of a subscription and an object.
"""

from __future__ import annotations

import numpy as np

from engine.top_k import pending_kernels as kernels
from engine.top_k.layout import NO_PENDING, PENDING_DTYPE, Rows
from index.batches import Ints
from index.tables.growth import longer
from index.tables.slots import Slots

_ROOM_MIN = 64


class Pending:
    """Pairs of a subscription and an object, chained by subscription."""

    def __init__(self) -> None:
        self.pairs: Rows = np.zeros(_ROOM_MIN, dtype=PENDING_DTYPE)
        self.ends = np.zeros(1, dtype=np.int64)
        self._free = np.full(1, NO_PENDING, dtype=np.int32)
        self.count = 0
        """The number of pairs: while it is 0, a report calls nothing in this module."""

    def __len__(self) -> int:
        return self.count

    @property
    def end(self) -> int:
        """Return the number of the first pair of the unused rest."""
        return int(self.ends[0])

    def note(self, subscriptions: Rows, owners: Slots, object_ids: Ints) -> Slots:
        """Add pairs; return the subscriptions that had no pending object before, each once."""
        self.count += len(owners)
        self.pairs = longer(self.pairs, max(self.end, self.count))
        newly_pending = np.empty(len(owners), dtype=np.int32)
        count = kernels.note(
            subscriptions, self.pairs, self._free, self.ends, owners, object_ids, newly_pending
        )
        return newly_pending[:count]

    def take(self, subscriptions: Rows, slots: Slots) -> tuple[Ints, Ints]:
        """Remove the pending objects of subscriptions; return offsets and ids, each row's objects."""
        offsets = np.zeros(len(slots) + 1, dtype=np.int64)
        kernels.measure(subscriptions, self.pairs, slots, offsets)
        object_ids = np.empty(int(offsets[-1]), dtype=np.int64)
        kernels.take(subscriptions, self.pairs, self._free, slots, object_ids)
        self.count -= len(object_ids)
        return offsets, object_ids

    def ids(self, subscriptions: Rows, slot: int) -> list[int]:
        """Return the pending objects of one subscription."""
        return self._ids(int(subscriptions["first_pending"][slot]))

    def free_count(self) -> int:
        """Count the pairs that are free. O(pairs)."""
        return len(self._ids(int(self._free[0])))

    def _ids(self, first: int) -> list[int]:
        found, place = [], first
        while place != NO_PENDING:
            found.append(int(self.pairs["object_id"][place]))
            place = int(self.pairs["next"][place])
        return found

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        return int(self.pairs.nbytes)
