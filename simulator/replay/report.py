"""What a replay found."""

from __future__ import annotations

from dataclasses import dataclass, field

from nearcast import Counters
from simulator.replay.audit import Mismatch


@dataclass(slots=True)
class ReplayReport:
    """What a replay found."""

    devices: int = 0
    """Those of the trajectories."""
    subscriptions: int = 0
    boolean_subscriptions: int = 0
    standing_subscriptions: int = 0
    """So many top-k subscriptions stand at a place, each on a device of its own there."""
    reports_of_standing: int = 0
    """How often those devices spoke."""
    fixed_devices: int = 0
    """Devices all of whose subscriptions have a range that is fixed in place."""
    reports_of_fixed: int = 0
    """How often they spoke."""
    ticks: int = 0
    simulated_s: float = 0.0
    elapsed_s: float = 0.0
    objects_published: int = 0
    objects_retracted: int = 0
    objects_held_mean: float = 0.0
    """What a device holds for a subscription when it has been anchored anew."""
    anchors_ahead_share: float = 0.0
    """Anchors that lie elsewhere than at the device, which is known to go there."""
    counters: Counters = field(default_factory=Counters)
    latencies_ms: list[float] = field(default_factory=list)
    audited: int = 0
    audited_boolean: int = 0
    """So many of them lists of boolean subscriptions."""
    audited_standing: int = 0
    """So many of them lists of top-k subscriptions that stand at a place."""
    audited_weighed: int = 0
    """So many of them lists of top-k subscriptions by weights of keywords."""
    audited_windows: int = 0
    """So many of them lists of subscriptions with a window."""
    mismatches: list[Mismatch] = field(default_factory=list)

    @property
    def silent_share(self) -> float:
        """Share of moves that nobody was told about."""
        return 1.0 - self.counters.reports / max(1, self.counters.moves)

    @property
    def reports_per_device_hour(self) -> float:
        """How often a device speaks."""
        hours = self.devices * self.simulated_s / 3600.0
        return self.counters.reports / hours if hours else 0.0

    def latency_ms(self, share: float) -> float:
        """Return a quantile of the publish-to-device latency; NaN if nothing was delivered."""
        if not self.latencies_ms:
            return float("nan")
        ordered = sorted(self.latencies_ms)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
