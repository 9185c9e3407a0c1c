"""When the devices of a node's slots were last seen, by the time of the log: what retention needs.

Each device with subscriptions has a record in its slot. The owner writes it again when the device is seen
and the record is older than a step, an eighth of the retention; with other changes of the slot if there
are any, and under the same fence. A node that takes a slot reads the records.

A device may have been seen later than its record says, by a step and a check at most. So it is forgotten
when its record is older than the retention and these: not too early, and about an eighth of the retention
late. Only what a node has seen in its last two seconds before it was killed may be lost.

Operations: O(1) a device, some 200 bytes each; `overdue` O(devices).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import chain, islice

from cluster.registry import SEEN, Changes, LastSeen
from cluster.slots import slot_of

STEPS = 8
"""How many times in a retention the record of a device is written at most."""
CHECK_MS_MAX = 3_600_000
"""The interval between two checks, unless a step is shorter."""


class LastSeenTimes:
    """The records of the slots that a node serves.

    Parameters
    ----------
    retention_ms
        How long devices are remembered; 0 for ever, and then nothing is recorded.
    """

    def __init__(self, retention_ms: int) -> None:
        self._retention_ms = retention_ms
        self.step_ms = max(1, retention_ms // STEPS)
        self.check_ms = min(CHECK_MS_MAX, self.step_ms)
        self._times: dict[int, dict[str, int]] = {}
        """By slot and device."""
        self._pending: dict[str, None] = {}
        """Devices that were seen, and whose records are to be written."""

    # -- slots -----------------------------------------------------------------------------------

    def take(self, slot: int, seen: Iterable[LastSeen], devices: Iterable[str], log_ms: int) -> None:
        """Add a slot with its records. A device without a record counts as seen now."""
        if not self._retention_ms:
            return
        known = {one.device_id: one.time_ms for one in seen}
        times = self._times[slot] = {}
        for device_id in devices:
            times[device_id] = known.get(device_id, log_ms)
            if device_id not in known:
                self._pending[device_id] = None

    def drop(self, slot: int) -> None:
        """Remove a slot."""
        for device_id in self._times.pop(slot, ()):
            self._pending.pop(device_id, None)

    def time_of(self, device_id: str) -> int | None:
        """Return when a device was last seen; None if that is not known."""
        return self._times.get(slot_of(device_id), {}).get(device_id)

    # -- records ---------------------------------------------------------------------------------

    def note(self, device_id: str, log_ms: int) -> None:
        """Record that a device with subscriptions is seen; it is written when a step has passed."""
        time_ms = self.time_of(device_id)
        if time_ms is not None and self._is_due(time_ms, log_ms):
            self._pending[device_id] = None

    def _is_due(self, time_ms: int | None, log_ms: int) -> bool:
        return time_ms is None or log_ms >= time_ms + self.step_ms

    def pending(self, count_max: int) -> list[str]:
        """Return devices whose records are to be written, the oldest first."""
        return list(islice(self._pending, count_max))

    def completed(
        self, changes: Mapping[int, Changes], held: Mapping[str, Collection[int]], log_ms: int
    ) -> dict[int, Changes]:
        """Return changes with the records of their devices.

        The record of a device is written with its first subscription and when a step has passed, and is
        deleted with its last subscription.

        Parameters
        ----------
        changes
            Of subscriptions, by slot.
        held
            The numbers of the subscriptions that each of these devices has before the changes.
        log_ms
            The time of the log.
        """
        if not self._retention_ms:
            return dict(changes)
        return {slot: self._completed(slot, some, held, log_ms) for slot, some in changes.items()}

    def _completed(
        self, slot: int, changes: Changes, held: Mapping[str, Collection[int]], log_ms: int
    ) -> Changes:
        found = dict(changes)
        times = self._times.get(slot, {})
        for device_id in {device_id for device_id, _ in changes}:
            numbers = set(held.get(device_id, ()))
            for (changed_id, number), record in changes.items():
                if changed_id == device_id:
                    (numbers.discard if record is None else numbers.add)(number)
            numbers.discard(SEEN)
            if not numbers:
                found[device_id, SEEN] = None
            elif device_id in self._pending or self._is_due(times.get(device_id), log_ms):
                found[device_id, SEEN] = LastSeen(device_id, log_ms)
        return found

    def wrote(self, slot: int, changes: Changes) -> None:
        """Record that changes of a slot are durable."""
        times = self._times.get(slot)
        for (device_id, number), record in changes.items():
            if number != SEEN or times is None:
                continue
            self._pending.pop(device_id, None)
            if isinstance(record, LastSeen):
                times[device_id] = record.time_ms
            else:
                times.pop(device_id, None)

    def overdue(self, log_ms: int, count_max: int) -> list[str]:
        """Return devices that have not been seen for longer than the retention, as far as is known."""
        before_ms = log_ms - self._retention_ms - self.step_ms - self.check_ms
        devices = chain.from_iterable(times.items() for times in self._times.values())
        overdue = (device_id for device_id, time_ms in devices if time_ms < before_ms)
        return list(islice((one for one in overdue if one not in self._pending), count_max))
