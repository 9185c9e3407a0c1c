"""What has happened up to each of some moments of a run, which lie evenly."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

STEPS_MAX = 120
"""As many as a chart shows; in a longer run they are longer."""


class Moment(NamedTuple):
    """Sums since the beginning of a run, over all devices of a process."""

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
        How many ticks the run has.
    period_s
        Between two of them.
    """

    tick_count: int = 1
    period_s: float = 1.0
    ticks: list[int] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)

    def is_due(self, tick: int) -> bool:
        """Whether a moment is to be noted at this tick; at the first and the last one it is."""
        last = self.tick_count - 1
        steps = min(last, STEPS_MAX)
        # The first tick of each step, if they are as equal as can be.
        return tick == 0 or tick * steps // last != (tick - 1) * steps // last

    def note(self, tick: int, moment: Moment) -> None:
        """Add a moment."""
        self.ticks.append(tick)
        self.moments.append(moment)

    def merge(self, other: Timeline) -> None:
        """Add what another process has noted at the same ticks.

        Raises
        ------
        ValueError
            If it has noted other ticks.
        """
        if other.ticks != self.ticks:
            raise ValueError(
                f"{len(other.ticks)} moments, must be at the same ticks as {len(self.ticks)}"
            )
        self.moments = [left + right for left, right in zip(self.moments, other.moments, strict=True)]

    def times_s(self) -> list[float]:
        """Return when the moments are, in simulated seconds."""
        return [tick * self.period_s for tick in self.ticks]

    def column(self, name: str) -> list[int]:
        """Return one of the sums at all moments."""
        return [getattr(one, name) for one in self.moments]

    def gains(self, name: str) -> list[int]:
        """Return how much one of the sums has grown since the moment before; first its value."""
        values = self.column(name)
        return [now - before for now, before in zip(values, [0, *values], strict=False)]
