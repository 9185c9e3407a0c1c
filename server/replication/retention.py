"""Retention in a cluster: the owner of a slot forgets its devices that were not seen for days."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from cluster.slots import slot_of
from server.replication.coordinator import ReplicatedCoordinator
from server.replication.last_seen import LastSeenTimes
from server.runtime.retention import DEVICES_MAX, Retention


class SlotRetention(Retention):
    """Finds devices to be forgotten in the records of slots, at the time of the log.

    Parameters
    ----------
    coordinator
        Of the node; it gets the records.
    days
        How long devices are remembered; 0 for no limit.
    """

    def __init__(self, coordinator: ReplicatedCoordinator, days: float) -> None:
        super().__init__(days)
        self._coordinator = coordinator
        coordinator.last_seen = LastSeenTimes(self._days_ms)
        self._check_ms = coordinator.last_seen.check_ms

    async def _overdue(self, now_ms: int) -> list[str]:  # noqa: ARG002 - the time of the log decides
        """Record that attached devices are seen, and return others that are to be forgotten."""
        coordinator = self._coordinator
        if coordinator.lag_offset:
            return []
        for session in coordinator.sessions.made():
            if session.is_attached and session.handles:
                coordinator.last_seen.note(session.device_id, coordinator.log_ms)
        return coordinator.last_seen.overdue(coordinator.log_ms, DEVICES_MAX)

    def _together(self, found: list[str]) -> Iterable[list[str]]:
        """Return the devices found by slot: each slot is written on its own, and may be refused."""
        by_slot: defaultdict[int, list[str]] = defaultdict(list)
        for device_id in found:
            by_slot[slot_of(device_id)].append(device_id)
        return by_slot.values()
