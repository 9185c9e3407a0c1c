"""The fixes and wake-ups that devices would need if they looked at their position only when they have to.

A replay gives a device its position at every tick. A phone would look only when `Device.next_fix_in` is
over, or when a message from the server has woken it. Those ticks are counted, and so is every report of a
device that would not have looked: there is none if no device is faster than assumed.
"""

from __future__ import annotations

from nearcast import Device

_MS_PER_S = 1000.0


class Fixes:
    """Counts the fixes and wake-ups of devices.

    Operations: O(1) per device and tick, and one call of `next_fix_in` per fix.

    Parameters
    ----------
    speed_max_mps
        The highest speed of the devices, in metres a second, as an app would assume it.
    """

    def __init__(self, speed_max_mps: float) -> None:
        self._speed_max_mps = speed_max_mps
        self._due_ms: dict[Device, float] = {}
        """When a device has to look; none for a device that has just looked."""
        self._deltas: dict[Device, int] = {}
        self.fixes = 0
        self.wake_ups = 0
        """Messages that woke a device, at most one a tick. Each is followed by a fix."""
        self.missed = 0
        """Reports of devices that would not have looked."""

    def looks(self, device: Device, now_ms: int) -> bool:
        """Return whether a device looks at this tick, before it moves, and count that."""
        due_ms = self._due_ms.get(device, 0.0)
        is_woken = device.counters.deltas != self._deltas.get(device)
        if due_ms > now_ms and not is_woken:
            return False
        self.fixes += 1
        self.wake_ups += is_woken and due_ms > now_ms
        self._due_ms.pop(device, None)
        return True

    def settle(self, device: Device, now_ms: int) -> None:
        """Let a device that has looked find out when to look again, when all messages have arrived."""
        if device not in self._due_ms:
            next_ms = _MS_PER_S * device.next_fix_in(self._speed_max_mps)
            self._due_ms[device] = now_ms + next_ms
            self._deltas[device] = device.counters.deltas
