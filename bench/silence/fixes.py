"""The fixes that devices need, if they find their position only when `Device.next_fix_in` is over."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bench.benchmark import Row
from index.batches import Floats, Ints

_HOUR_S = 3600.0


class Fixes:
    """Counts fixes, messages that wake devices, and reports of devices that would not have looked.

    A device looks when its time is over, and after a message or an expiry, as in a replay
    (`simulator.replay.fixes`). The time is computed from the position of its last fix. Operations: O(1)
    per device and second.

    Parameters
    ----------
    count
        Number of devices; device i has the handle i + 1.
    speed_max_mps
        The highest speed that the devices assume of themselves, in metres a second.
    """

    def __init__(self, count: int, speed_max_mps: float) -> None:
        self._speed_max_mps = speed_max_mps
        self._until_s: Floats = np.zeros(count)
        self._has_message: npt.NDArray[np.bool_] = np.zeros(count, dtype=np.bool_)
        self._has_expired: npt.NDArray[np.bool_] = np.zeros(count, dtype=np.bool_)
        self.taken = 0
        self.wake_ups = 0
        """Messages to devices that would not have looked, at most one a second."""
        self.missed = 0
        """Reports of devices that would not have looked."""

    def inform(self, handles: Ints) -> None:
        """Let devices look at the next second because of a message."""
        self._has_message[handles - 1] = True

    def expire(self, handles: Ints) -> None:
        """Let devices look at the next second because an object that they hold has expired."""
        self._has_expired[handles - 1] = True

    def looking(self, second: int) -> Ints:
        """Count the devices that look at a second; return their handles, increasing."""
        is_due = self._has_expired | (self._until_s <= second)
        found: Ints = np.flatnonzero(is_due | self._has_message) + 1
        self.taken += len(found)
        self.wake_ups += int((self._has_message & ~is_due).sum())
        return found

    def settle(self, second: int, looking: Ints, reporting: Ints, spares_m: Floats) -> None:
        """Let the devices that have looked compute when to look again.

        Parameters
        ----------
        second
            The present second.
        looking, reporting
            Handles of the devices that have looked, and of those that have reported, increasing.
        spares_m
            What every device has left of its test (*), after reports; a metre of movement takes at most
            two from it: one from the distances of objects, and one from that of the anchor.
        """
        self.missed += len(np.setdiff1d(reporting, looking, assume_unique=True))
        places = looking - 1
        self._has_message[places] = self._has_expired[places] = False
        self._until_s[places] = second + spares_m[places] / (2.0 * self._speed_max_mps)

    def figures(self, device_seconds: int) -> Row:
        """Return the counts as columns, per device and hour."""
        hours = device_seconds / _HOUR_S
        return {
            "fixes_per_device_hour": round(self.taken / hours, 2),
            "wake_ups_per_device_hour": round(self.wake_ups / hours, 2),
            "reports_without_fix": self.missed,
        }
