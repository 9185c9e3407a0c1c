"""What is sent between devices and a server, counted; and devices that know when they have to speak."""

from __future__ import annotations

from dataclasses import dataclass

from bench.benchmark import Row
from bench.silence.wire_sizes import WireSizes
from engine import Published
from engine.contracts import Rows

_HOUR_S = 3600.0


@dataclass(slots=True)
class Traffic:
    """What was sent, counted."""

    reports: int = 0
    """By devices on their own account."""
    location_requests: int = 0
    """By the server: where are you?"""
    answers: int = 0
    pushes: int = 0
    """Deltas that answer nobody."""
    deltas: int = 0
    """All of them."""
    objects: int = 0
    """In deltas, to be added."""
    drops: int = 0
    """In deltas, to be forgotten."""
    stale: int = 0
    """Device-seconds with a result that is not the true one."""

    def count(self, deltas: int, changes: Rows) -> None:
        """Count deltas and the changes in them."""
        drops = int(changes["is_drop"].sum())
        self.deltas += deltas
        self.drops += drops
        self.objects += len(changes) - drops

    def figures(self, sizes: WireSizes, device_seconds: int) -> Row:
        """Summarise, per device and hour."""
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
    """Devices that know when their result changes, and then speak, or by the clock.

    Parameters
    ----------
    count
        How many there are.
    period_s
        Devices report every so many seconds, and only then learn anything; if absent, whenever their
        result has changed.
    """

    def __init__(self, count: int, period_s: int | None) -> None:
        self.traffic = Traffic()
        self.period_s = period_s
        self._count = count

    def report(self, second: int) -> None:
        """Let devices that are somewhere else report."""
        if self.period_s is None:
            self.traffic.reports += self.update()
        elif self.is_sure(second):
            self.traffic.reports += self._count
            self.update()
        else:
            self.traffic.stale += self.stale()

    def learn(self, published: Published) -> None:
        """Push new results, as by a server that knows where devices are."""
        del published
        if self.period_s is None:
            self.traffic.pushes += self.update()

    def is_sure(self, second: int) -> bool:
        """Whether devices show what is true now."""
        return self.period_s is None or second % self.period_s == 0

    def stale(self) -> int:
        """Return how many devices show what is not true."""
        raise NotImplementedError

    def update(self) -> int:
        """Show what is true; return for how many devices that is something else."""
        raise NotImplementedError
