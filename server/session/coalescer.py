"""The events of one device that wait in the outbox of its stream and may be coalesced or dropped.

A device that is up to date has none. Costs: O(1) per event; O(waiting) to coalesce and to drop.

A marker becomes snapshots in slices: one of each subscription, then those of subscriptions that have
changed since their snapshot, and so on. The third round is the last one: what changes during it follows
all together, so that a device whose subscriptions change all the time is up to date at some time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from server.limits import Limits
from server.session.events import SnapshotDue, VersionedDelta
from server.session.outbox import Queued

_ROUNDS = 3
"""Rounds of snapshots in slices."""


class Coalescer:
    """The deltas of a device in an outbox, or the marker in their place, and its subscriptions' ends."""

    __slots__ = ("_again", "_bytes", "_deltas", "_ends", "_left", "_marker", "_round")

    def __init__(self) -> None:
        self._deltas: list[Queued[Any]] = []
        self._bytes = 0
        self._marker: Queued[Any] | None = None
        self._ends: list[Queued[Any]] = []
        self._left: dict[int, None] | None = None
        """Subscriptions still without a snapshot in this round, in order; None before the first one."""
        self._again: dict[int, None] = {}
        """Subscriptions that have changed since their snapshot: those of the next round."""
        self._round = 1

    def __len__(self) -> int:
        return len(self._deltas) + len(self._ends) + (self._marker is not None)

    def add_delta(self, item: Queued[Any], size_bytes: int) -> None:
        """Record a delta that waits."""
        self._deltas.append(item)
        self._bytes += size_bytes

    def add_end(self, item: Queued[Any]) -> None:
        """Record the end of a subscription that waits."""
        self._ends.append(item)

    def is_beyond(self, limits: Limits) -> bool:
        """Return whether more deltas wait than the limits allow."""
        return len(self._deltas) > limits.outbox_max or self._bytes > limits.outbox_bytes_max

    def coalesce(self) -> int:
        """Replace the first delta with a marker, and empty the others.

        Returns
        -------
        int
            The number of deltas replaced.
        """
        waiting, self._deltas, self._bytes = self._deltas, [], 0
        for item in waiting:
            item.event = None
        self._marker = waiting[0]
        self._marker.event = SnapshotDue()
        return len(waiting)

    def taken(self, item: Queued[Any]) -> None:
        """Record that an event has left the outbox."""
        if self._ends and self._ends[0] is item:
            self._ends.pop(0)
        elif self._deltas and self._deltas[0] is item:
            self._deltas.pop(0)
            if isinstance(item.event, VersionedDelta):
                self._bytes -= item.event.size_bytes

    def begin_snapshots(self, ids: Iterable[int]) -> None:
        """Set the subscriptions that need snapshots, unless some snapshots have been made already."""
        if self._left is None:
            self._left, self._round = dict.fromkeys(ids), 1

    def changed(self, subscription_id: int) -> None:
        """Record that a subscription has changed, so that it needs a snapshot."""
        if self._left is not None and subscription_id not in self._left:
            self._again[subscription_id] = None

    def next_due(self) -> int | None:
        """Pop the next subscription that needs a snapshot; None if there are no more."""
        if not self._left and self._has_next_round:
            self._left, self._again = self._again, {}
            self._round += 1
        for due in (self._left, self._again):
            if due:
                subscription_id = next(iter(due))
                del due[subscription_id]
                return subscription_id
        return None

    @property
    def may_pause(self) -> bool:
        """Whether other devices may have their turn before the next snapshot."""
        return bool(self._left) or self._has_next_round

    @property
    def _has_next_round(self) -> bool:
        return bool(self._again) and self._round < _ROUNDS

    def caught_up(self) -> None:
        """Record that the marker has become snapshots."""
        self._marker = self._left = None

    def take_ends(self) -> list[Queued[Any]]:
        """Remove and return the ends of subscriptions."""
        ends, self._ends = self._ends, []
        return ends

    def drop(self) -> int:
        """Empty the waiting deltas and the marker; return the number of deltas."""
        for item in self._deltas:
            item.event = None
        if self._marker is not None:
            self._marker.event = None
        return len(self._deltas)
