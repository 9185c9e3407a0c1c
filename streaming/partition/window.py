"""The window of messages: numbers in the order in which they come, without gaps, and their objects.

Who knows an object's number knows whether it came already: what a source delivers again is recognised as
long as the window reaches. Operations: O(1) a message expected. About 40 bytes a message.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from index.batches import Ints
from index.tables.id_map import IdMap

_ROOM_MIN = 1024
_NUMBER_MASK = (1 << 31) - 1
"""What the map from objects to numbers keeps of a number: more than a window may have."""


@dataclass(frozen=True, slots=True)
class WindowSize:
    """Which messages count: the last so many, or those of the last milliseconds; the other is 0."""

    count: int = 0
    duration_ms: int = 0

    def expiry_ms(self, time_ms: Ints, expiry_ms: Ints) -> Ints:
        """Return when messages end, their lifetime or the window."""
        return np.minimum(expiry_ms, time_ms + self.duration_ms) if self.duration_ms else expiry_ms


class Window:
    """Numbers of messages.

    Parameters
    ----------
    size
        How far back it reaches.
    """

    def __init__(self, size: WindowSize) -> None:
        self.size = size
        self.next_number = 0
        """Above every number given."""
        self._first = 0
        """What is known begins with this number."""
        self._ids = IdMap()
        self._object_ids: Ints = np.zeros(_ROOM_MIN, dtype=np.int64)
        self._time_ms: Ints = np.zeros(_ROOM_MIN, dtype=np.int64)

    def begin(self, next_number: int) -> None:
        """Let numbers begin elsewhere, before any was given."""
        self._first = self.next_number = next_number

    def are_new(self, object_ids: Ints) -> npt.NDArray[np.bool_]:
        """Whether each message brings an object that is not known, and was not before it here."""
        _, first = np.unique(object_ids, return_index=True)
        is_first = np.zeros(len(object_ids), dtype=np.bool_)
        is_first[first] = True
        return is_first & ~self._ids.present(object_ids)

    def numbers_of(self, object_ids: Ints) -> Ints:
        """Return the numbers of those that are known."""
        known = object_ids[self._ids.present(object_ids)]
        found = self._ids.find(known).astype(np.int64)
        return self._first + ((found - self._first) & _NUMBER_MASK)

    def object_ids(self, numbers: Ints) -> Ints:
        """Return the objects of numbers that are known, or just were."""
        found: Ints = self._object_ids[numbers % len(self._object_ids)]
        return found

    def arrive(self, object_ids: Ints, time_ms: Ints) -> Ints:
        """Give numbers to messages that are new; return them."""
        numbers = np.arange(self.next_number, self.next_number + len(object_ids), dtype=np.int64)
        self._reserve(self.next_number - self._first + len(object_ids))
        places = numbers % len(self._object_ids)
        self._object_ids[places] = object_ids
        self._time_ms[places] = time_ms
        self._ids.insert(object_ids, (numbers & _NUMBER_MASK).astype(np.int32))
        self.next_number += len(object_ids)
        return numbers

    def forget(self, now_ms: int) -> None:
        """Forget the oldest messages that are behind the window."""
        first = max(self._first, self.next_number - self.size.count) if self.size.count else self._first
        if self.size.duration_ms:
            numbers = np.arange(self._first, self.next_number)
            is_young = self._time_ms[numbers % len(self._time_ms)] > now_ms - self.size.duration_ms
            first = self._first + int(is_young.argmax()) if is_young.any() else self.next_number
        self._ids.remove(self.object_ids(np.arange(self._first, first)))
        self._first = first

    def _reserve(self, count: int) -> None:
        """Have room for so many messages, and as many that were forgotten last."""
        room = len(self._object_ids)
        if 2 * count <= room:
            return
        while room < 2 * count:
            room *= 2
        # With what was forgotten last: results of before may still be told of it.
        numbers = np.arange(max(0, self.next_number - len(self._object_ids)), self.next_number)
        for name in ("_object_ids", "_time_ms"):
            longer = np.zeros(room, dtype=np.int64)
            longer[numbers % room] = getattr(self, name)[numbers % len(self._object_ids)]
            setattr(self, name, longer)
