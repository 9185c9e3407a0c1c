"""Count the traffic between devices and a server; devices that know when their results change."""

from __future__ import annotations

from dataclasses import dataclass

from bench.benchmark import Row
from bench.silence.wire_sizes import WireSizes
from engine import Published
from engine.contracts import Rows

_HOUR_S = 3600.0


@dataclass(slots=True)
class Traffic:
    """Counts of messages and their contents."""

    reports: int = 0
    """Reports that devices sent by themselves."""
    location_requests: int = 0
    """Requests of the server for a device's position."""
    answers: int = 0
    pushes: int = 0
    """Deltas that answer no message."""
    deltas: int = 0
    """All deltas."""
    objects: int = 0
    """Objects to be added, in deltas."""
    drops: int = 0
    """Objects to be dropped, in deltas."""
    stale: int = 0
    """Device-seconds with a wrong result."""

    def count(self, deltas: int, changes: Rows) -> None:
        """Count deltas and the changes in them."""
        drops = int(changes["is_drop"].sum())
        self.deltas += deltas
        self.drops += drops
        self.objects += len(changes) - drops

    def figures(self, sizes: WireSizes, device_seconds: int) -> Row:
        """Return the counts as columns, per device and hour."""
        hours = device_seconds / _HOUR_S
        counts = {
            "reports": self.reports,
            "objects": self.objects,
            "pushes": self.pushes,
            "questions": self.location_requests,
            "answers": self.answers,
            "positions": self.reports + self.answers,
            "drops": self.drops,
        }
        up = sizes.up(self.reports + self.answers, self.deltas)
        down = sizes.down(self.deltas, self.objects, self.drops, self.location_requests)
        return {
            **{f"{name}_per_device_hour": round(count / hours, 2) for name, count in counts.items()},
            "bytes_up": round(up / hours, 1),
            "bytes_down": round(down / hours, 1),
            "stale_share": round(self.stale / device_seconds, 4),
        }


class InformedDevices:
    """Devices that know when their results change, and report then, or periodically.

    Parameters
    ----------
    count
        Number of devices.
    period_s
        Seconds between two reports, the only times at which devices are updated; if absent, devices
        report whenever their result has changed.
    """

    def __init__(self, count: int, period_s: int | None) -> None:
        self.traffic = Traffic()
        self.period_s = period_s
        self._count = count

    def report(self, second: int) -> None:
        """Let devices report, those whose result has changed or, at multiples of the period, all."""
        if self.period_s is None:
            self.traffic.reports += self.update()
        elif self.is_sure(second):
            self.traffic.reports += self._count
            self.update()
        else:
            self.traffic.stale += self.stale()

    def learn(self, published: Published) -> None:
        """Push new results, as a server does that knows the positions of devices."""
        del published
        if self.period_s is None:
            self.traffic.pushes += self.update()

    def is_sure(self, second: int) -> bool:
        """Return whether devices show exact results at a second."""
        return self.period_s is None or second % self.period_s == 0

    def stale(self) -> int:
        """Return the number of devices that show a wrong result."""
        raise NotImplementedError

    def update(self) -> int:
        """Replace the shown results by the true ones; return the number of devices with a change."""
        raise NotImplementedError
