"""Retractions that were read before their messages, kept for as long as these may still arrive.

A message is not retracted before it is published: no message arrives whose time is later than the time at
which its retraction was read. When that time is behind the window, so is the message, and the retraction
is forgotten. With a count-based window of n messages, at most n retractions or `REMEMBERED_MIN` are
remembered, whichever is more; the oldest are forgotten first. With a time-based window, the retractions
of its duration are remembered.

Operations: O(remembered) a batch. About 40 bytes each.
"""

from __future__ import annotations

import numpy as np

from index.batches import Ints
from index.tables.id_map import IdMap
from streaming.partition.window import Bools
from streaming.window_size import WindowSize

REMEMBERED_MIN = 10_000


class EarlyRetractions:
    """Retractions whose messages have not arrived.

    Parameters
    ----------
    size
        The size of the window.
    """

    def __init__(self, size: WindowSize) -> None:
        self._most = max(size.count, REMEMBERED_MIN) if size.count else None
        self._ids = IdMap()
        self._object_id: Ints = np.empty(0, dtype=np.int64)
        self._time_ms: Ints = np.empty(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._object_id)

    def are_there(self, object_ids: Ints) -> Bools:
        """Whether each message was retracted before it arrived."""
        return self._ids.present(object_ids)

    def add(self, object_ids: Ints, time_ms: Ints) -> None:
        """Remember retractions that are not remembered yet, each once, and when they were read."""
        self._ids.insert(object_ids, np.zeros(len(object_ids), dtype=np.int32))
        self._object_id = np.concatenate([self._object_id, object_ids])
        self._time_ms = np.concatenate([self._time_ms, time_ms])

    def forget(self, first_key: tuple[int, int]) -> None:
        """Forget retractions that are behind the window, and the oldest if there are too many."""
        if not len(self):
            return
        first_ms, first_id = first_key
        is_kept = (self._time_ms > first_ms) | (
            (self._time_ms == first_ms) & (self._object_id >= first_id)
        )
        excess = int(is_kept.sum()) - self._most if self._most is not None else 0
        if excess > 0:
            order = np.lexsort((self._object_id, self._time_ms))
            is_kept[order[is_kept[order]][:excess]] = False
        self._ids.remove(self._object_id[~is_kept])
        self._object_id, self._time_ms = self._object_id[is_kept], self._time_ms[is_kept]
