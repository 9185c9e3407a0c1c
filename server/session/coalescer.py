"""What of one device waits in the outbox of its stream, so that it can coalesce or be dropped.

A device that is up to date has none of it. O(1) an event; O(waiting) to coalesce and to drop.

A marker becomes snapshots in slices: of each subscription once, then, all together, of those that have
changed since it was their turn.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from server.limits import Limits
from server.session.events import SnapshotDue, VersionedDelta
from server.session.outbox import Queued


class Coalescer:
    """A device's deltas in an outbox, or the marker that stands for them, and its subscriptions' ends."""

    __slots__ = ("_again", "_bytes", "_deltas", "_ends", "_left", "_marker")

    def __init__(self) -> None:
        self._deltas: list[Queued[Any]] = []
        self._bytes = 0
        self._marker: Queued[Any] | None = None
        self._ends: list[Queued[Any]] = []
        self._left: dict[int, None] | None = None
        """Subscriptions of which no snapshot has been made, in order; None before the first is."""
        self._again: dict[int, None] = {}

    def __len__(self) -> int:
        return len(self._deltas) + len(self._ends) + (self._marker is not None)

    def add_delta(self, item: Queued[Any], size_bytes: int) -> None:
        """Note that a delta waits."""
        self._deltas.append(item)
        self._bytes += size_bytes

    def add_end(self, item: Queued[Any]) -> None:
        """Note that the end of a subscription waits."""
        self._ends.append(item)

    def is_beyond(self, limits: Limits) -> bool:
        """Whether more deltas wait than may."""
        return len(self._deltas) > limits.outbox_max or self._bytes > limits.outbox_bytes_max

    def coalesce(self) -> int:
        """Put a marker in the place of the first delta, nothing in that of the others.

        Returns
        -------
        int
            How many deltas are gone.
        """
        waiting, self._deltas, self._bytes = self._deltas, [], 0
        for item in waiting:
            item.event = None
        self._marker = waiting[0]
        self._marker.event = SnapshotDue()
        return len(waiting)

    def taken(self, item: Queued[Any]) -> None:
        """Note that an event has left the outbox."""
        if self._ends and self._ends[0] is item:
            self._ends.pop(0)
        elif self._deltas and self._deltas[0] is item:
            self._deltas.pop(0)
            if isinstance(item.event, VersionedDelta):
                self._bytes -= item.event.size_bytes

    def begin_snapshots(self, ids: Iterable[int]) -> None:
        """Note of which subscriptions there are to be snapshots, unless some have been made already."""
        if self._left is None:
            self._left = dict.fromkeys(ids)

    def changed(self, subscription_id: int) -> None:
        """Note that a subscription has changed, which a snapshot is to tell."""
        if self._left is not None and subscription_id not in self._left:
            self._again[subscription_id] = None

    def next_due(self) -> int | None:
        """Take the next subscription of which a snapshot is to be made; None if there are no more."""
        for due in (self._left, self._again):
            if due:
                subscription_id = next(iter(due))
                del due[subscription_id]
                return subscription_id
        return None

    @property
    def may_pause(self) -> bool:
        """Whether others may have their turn before the next snapshot."""
        return bool(self._left)

    def caught_up(self) -> None:
        """Note that the marker has become snapshots."""
        self._marker = self._left = None

    def take_ends(self) -> list[Queued[Any]]:
        """Take the ends of subscriptions out."""
        ends, self._ends = self._ends, []
        return ends

    def drop(self) -> int:
        """Leave nothing to be sent of the deltas and the marker; return how many deltas."""
        for item in self._deltas:
            item.event = None
        if self._marker is not None:
            self._marker.event = None
        return len(self._deltas)
