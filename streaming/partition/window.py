"""The window of messages: the last ones in the order of (time, id), including expired and retracted ones.

The messages in the window follow from the rows alone, not from the order of their arrival: a late message
takes its place among the others, unless it is behind the window. Each publication counts, even if its
lifetime is over or it was retracted. A message that is in the window is known, so duplicate deliveries
are recognised; a message behind the window never returns.

In a time-based window the engine removes messages by their expiry. In a count-based window the engine's
clock counts ranks: messages leave in the order of their ranks, so the rank of a message is its expiry
there. A late message has the rank of the next one; if the window starts between two messages of one
rank, the first of them is removed by its id.

Operations: O(1) a message expected; a late message O(messages that are later). About 40 bytes a message
of the window, 60 in a count-based window.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from index.batches import Ints
from index.contracts import InconsistentIndexError
from index.tables.growth import longer
from index.tables.id_map import IdMap
from streaming.arrays.blocks import FOR_EVER_MS
from streaming.window_size import WindowSize

_ROOM_MIN = 1024
_LATER = np.iinfo(np.int64).max

Bools = npt.NDArray[np.bool_]


class Arrived(NamedTuple):
    """The outcome of messages that have arrived, in the order of (time, id)."""

    is_inside: Bools
    """Whether each message is in the window."""
    ends: Ints
    """When each message ends by the engine's clock."""
    left_ids: Ints
    """Earlier messages that are now behind the window, in a count-based window."""
    clock: int
    """The time to which the engine's clock may advance: all that ends by then is behind the window."""


class Window:
    """The messages that are in the window.

    Parameters
    ----------
    size
        The size of the window.
    """

    def __init__(self, size: WindowSize) -> None:
        self.size = size
        self.next_number = 0
        """The number of messages that have taken a place so far."""
        self._ids = IdMap()
        self._begin = self._end = 0
        self._time_ms: Ints = np.zeros(_ROOM_MIN, dtype=np.int64)
        self._object_id: Ints = np.zeros(_ROOM_MIN, dtype=np.int64)
        self._next_rank = 1
        room = _ROOM_MIN if size.count else 0
        self._rank: Ints = np.zeros(room, dtype=np.int64)
        self._expiry_ms: Ints = np.zeros(room, dtype=np.int64)
        """Of a count-based window; `FOR_EVER_MS` for messages that have ended."""
        self._next_expiry_ms = FOR_EVER_MS
        """No message ends earlier."""

    def __len__(self) -> int:
        return self._end - self._begin

    def expiry_ms(self, time_ms: Ints, expiry_ms: Ints) -> Ints:
        """Return when messages end: the earlier of the ends of their lifetime and of the window."""
        duration_ms = self.size.duration_ms
        return np.minimum(expiry_ms, time_ms + duration_ms) if duration_ms else expiry_ms

    @property
    def capacity(self) -> int:
        """The number of messages for which its arrays have space."""
        return len(self._time_ms)

    def first_key(self, now_ms: int) -> tuple[int, int]:
        """Return the least (time, id) that a message must have to be in the window."""
        if self.size.duration_ms:
            return now_ms - self.size.duration_ms + 1, 0
        if len(self) < self.size.count:
            return 0, 0
        return int(self._time_ms[self._begin]), int(self._object_id[self._begin])

    def are_known(self, object_ids: Ints) -> Bools:
        """Whether each message is in the window."""
        return self._ids.present(object_ids)

    def are_new(self, object_ids: Ints) -> Bools:
        """Whether each message is not in the window, and does not occur earlier in `object_ids`."""
        _, first = np.unique(object_ids, return_index=True)
        is_first = np.zeros(len(object_ids), dtype=np.bool_)
        is_first[first] = True
        return is_first & ~self.are_known(object_ids)

    def due(self, now_ms: int) -> Ints:
        """Return messages whose lifetimes end by a time, each once, in a count-based window.

        O(messages of the window) if there are any.
        """
        if now_ms < self._next_expiry_ms:
            return np.empty(0, dtype=np.int64)
        expiry_ms = self._expiry_ms[self._begin : self._end]
        is_due = expiry_ms <= now_ms
        expiry_ms[is_due] = FOR_EVER_MS
        self._next_expiry_ms = int(expiry_ms.min(initial=FOR_EVER_MS))
        found: Ints = self._object_id[self._begin : self._end][is_due]
        return found

    def arrive(self, object_ids: Ints, time_ms: Ints, expiry_ms: Ints, now_ms: int) -> Arrived:
        """Add new messages to the window, and remove messages that are now behind it.

        Parameters
        ----------
        object_ids, time_ms, expiry_ms
            Messages that are new, in the order of (time, id).
        now_ms
            The time.
        """
        is_new = self._merge(object_ids, time_ms, expiry_ms, now_ms)
        before, begin = self._begin, self._beginning(now_ms)
        places = before + np.flatnonzero(is_new)
        is_inside = places >= begin
        gone = before + np.flatnonzero(~is_new[: begin - before])
        left_ids = self._object_id[gone]
        self._ids.remove(left_ids)
        self._ids.insert(object_ids[is_inside], np.zeros(int(is_inside.sum()), dtype=np.int32))
        self.next_number += int(is_inside.sum())
        self._begin = begin
        if not self.size.count:
            return Arrived(is_inside, expiry_ms, np.empty(0, dtype=np.int64), now_ms)
        clock = int(self._rank[begin] if begin < self._end else self._next_rank) - 1
        return Arrived(is_inside, self._rank[places], left_ids, clock)

    def _beginning(self, now_ms: int) -> int:
        """Return the place of the first message that is in the window."""
        if self.size.count:
            return max(self._begin, self._end - self.size.count)
        times = self._time_ms[self._begin : self._end]
        return self._begin + int(np.searchsorted(times, now_ms - self.size.duration_ms, "right"))

    def _merge(self, object_ids: Ints, time_ms: Ints, expiry_ms: Ints, now_ms: int) -> Bools:
        """Merge messages into the others; return the mask of new messages."""
        self._reserve(len(object_ids))
        begin, end, stop = self._begin, self._end, self._end + len(object_ids)
        is_new = np.zeros(stop - begin, dtype=np.bool_)
        if not len(object_ids):
            return is_new
        first = begin + int(np.searchsorted(self._time_ms[begin:end], time_ms[0]))
        times = np.concatenate([self._time_ms[first:end], time_ms])
        ids = np.concatenate([self._object_id[first:end], object_ids])
        order = np.lexsort((ids, times)) if first < end else np.arange(len(ids))
        is_new[first - begin :] = order >= end - first
        self._time_ms[first:stop] = times[order]
        self._object_id[first:stop] = ids[order]
        if self.size.count:
            self._rank[end:stop] = _LATER
            self._rank[first:stop] = self._ranked(self._rank[first:stop][order])
            lasting = np.where(expiry_ms > now_ms, expiry_ms, FOR_EVER_MS)
            self._expiry_ms[first:stop] = np.concatenate([self._expiry_ms[first:end], lasting])[order]
            self._next_expiry_ms = min(self._next_expiry_ms, int(lasting.min()))
        self._end = stop
        return is_new

    def _ranked(self, ranks: Ints) -> Ints:
        """Return ranks with those of new messages: a message that follows all others has its own rank."""
        last = np.flatnonzero(ranks != _LATER)
        after = int(last[-1]) + 1 if len(last) else 0
        count = len(ranks) - after
        ranks[after:] = np.arange(self._next_rank, self._next_rank + count)
        self._next_rank += count
        found: Ints = np.minimum.accumulate(ranks[::-1])[::-1]
        return found

    def _reserve(self, count: int) -> None:
        """Reserve capacity for more messages; reuse that of messages that left, if there are many."""
        names = ["_time_ms", "_object_id", *(["_rank", "_expiry_ms"] if self.size.count else [])]
        if self._end + count > len(self._time_ms) and self._begin > len(self):
            for name in names:
                column = getattr(self, name)
                column[: len(self)] = column[self._begin : self._end]
            self._begin, self._end = 0, len(self)
        for name in names:
            setattr(self, name, longer(getattr(self, name), self._end + count))

    def check(self) -> None:
        """Verify that the messages in the window are known and in order, and end in this order.

        Raises
        ------
        InconsistentIndexError
            If an invariant does not hold; the message names it.
        """
        own = slice(self._begin, self._end)
        times, ids = self._time_ms[own], self._object_id[own]
        if not np.array_equal(np.lexsort((ids, times)), np.arange(len(self))):
            raise InconsistentIndexError("the messages of the window are not in order")
        if len(self._ids) != len(self) or not self.are_known(ids).all():
            raise InconsistentIndexError("the index of the window does not match its messages")
        if self.size.count and (len(self) > self.size.count or (np.diff(self._rank[own]) < 0).any()):
            raise InconsistentIndexError("the window is too long, or its messages are out of order")
        self._ids.check()
