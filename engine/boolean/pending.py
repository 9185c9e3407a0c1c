"""Hold new objects that cannot be decided before the device reports its position (mode NEAREST).

Operations: note O(1) a pair, the others too. Few objects are pending at a time: this is plain Python.
"""

from __future__ import annotations

import numpy as np

from engine.boolean.pairs import Pairs
from engine.contracts import Bools
from engine.objects import Objects
from index.tables.slots import Slots


class Pending:
    """Pending objects, by slot of the subscription.

    Parameters
    ----------
    objects
        The live objects.
    """

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._ids: dict[int, set[int]] = {}

    def note(self, pairs: Pairs) -> Slots:
        """Record pairs of a slot and an object; return the slots that had no pending object before."""
        newly_pending = [slot for slot in dict.fromkeys(pairs.rows.tolist()) if slot not in self._ids]
        ids = self._objects.table.rows["id"][pairs.objects].tolist()
        for slot, object_id in zip(pairs.rows.tolist(), ids, strict=True):
            self._ids.setdefault(slot, set()).add(object_id)
        return np.array(newly_pending, dtype=np.int32)

    def forget(self, slots: Slots) -> None:
        """Drop the pending objects of subscriptions."""
        if self._ids:
            for slot in slots.tolist():
                self._ids.pop(slot, None)

    def are_for(self, slots: Slots) -> Bools:
        """Return whether each subscription has a pending object."""
        return np.array([slot in self._ids for slot in slots.tolist()], dtype=np.bool_)

    def are_in(self, pairs: Pairs) -> Bools:
        """Return whether each pair of a slot and an object is pending."""
        found = np.zeros(len(pairs.rows), dtype=np.bool_)
        if self._ids:
            slots = np.array(list(self._ids), dtype=np.int64)
            for i in np.flatnonzero(np.isin(pairs.rows, slots)).tolist():
                object_id = int(self._objects.table.rows["id"][pairs.objects[i]])
                found[i] = object_id in self._ids[int(pairs.rows[i])]
        return found
