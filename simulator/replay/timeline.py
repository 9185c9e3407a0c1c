"""The sums at evenly spaced moments of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

STEPS_MAX = 120
"""The number of steps in a chart; a longer run has longer steps."""


class Moment(NamedTuple):
    """Sums since the start of a run, over all devices of a process."""

    moves: int = 0
    reports: int = 0
    deltas: int = 0
    bytes_from_devices: int = 0
    bytes_to_devices: int = 0
    published: int = 0
    audited: int = 0
    mismatches: int = 0
    devices: int = 0
    late_ms: int = 0

    def __add__(self, other: Moment) -> Moment:  # type: ignore[override]
        """Return the sums of both."""
        return Moment(*(left + right for left, right in zip(self, other, strict=True)))


@dataclass(slots=True)
class Timeline:
    """Moments of a run, at the same ticks in every process.

    Parameters
    ----------
    tick_count
        The number of ticks of the run.
    period_s
        The time between two of them.
    ticks, moments
        The ticks that were recorded so far, and the moments at them.
    """

    tick_count: int = 1
    period_s: float = 1.0
    ticks: list[int] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)

    def is_due(self, tick: int) -> bool:
        """Whether a moment is to be recorded at this tick; it is at the first and the last."""
        last = self.tick_count - 1
        steps = min(last, STEPS_MAX)
        # The first tick of each step, with steps as equal as possible.
        return tick == 0 or tick * steps // last != (tick - 1) * steps // last

    def note(self, tick: int, moment: Moment) -> None:
        """Add a moment."""
        self.ticks.append(tick)
        self.moments.append(moment)

    def merge(self, other: Timeline) -> None:
        """Add the moments of another process at the same ticks.

        Raises
        ------
        ValueError
            If it has other ticks.
        """
        if other.ticks != self.ticks:
            raise ValueError(
                f"{len(other.ticks)} moments, must be at the same ticks as {len(self.ticks)}"
            )
        self.moments = [left + right for left, right in zip(self.moments, other.moments, strict=True)]

    def times_s(self) -> list[float]:
        """Return the times of the moments, in simulated seconds."""
        return [tick * self.period_s for tick in self.ticks]

    def column(self, name: str) -> list[int]:
        """Return one of the sums at all moments."""
        return [getattr(one, name) for one in self.moments]

    def gains(self, name: str) -> list[int]:
        """Return the increase of a sum since the moment before; the first entry is its value."""
        values = self.column(name)
        return [now - before for now, before in zip(values, [0, *values], strict=False)]
