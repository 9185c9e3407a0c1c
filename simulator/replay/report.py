"""What a replay found."""

from __future__ import annotations

from dataclasses import dataclass, field

from nearcast import Counters
from simulator.replay.audit import Mismatch
from simulator.replay.histogram import Histogram
from simulator.replay.timeline import Timeline

MISMATCHES_KEPT_MAX = 1_000
"""Of more there is only the number."""

_SUMS = (
    "devices",
    "subscriptions",
    "boolean_subscriptions",
    "stationary_subscriptions",
    "reports_of_stationary",
    "fixed_devices",
    "reports_of_fixed",
    "objects_published",
    "objects_retracted",
    "anchored",
    "anchored_ahead",
    "held",
    "audited",
    "audited_boolean",
    "audited_stationary",
    "audited_weighed",
    "audited_windows",
    "undecided",
    "mismatch_count",
)


@dataclass(slots=True)
class ReplayReport:
    """What a replay found, or the share of it that one process has."""

    devices: int = 0
    """Those of the trajectories."""
    subscriptions: int = 0
    boolean_subscriptions: int = 0
    stationary_subscriptions: int = 0
    """So many top-k subscriptions stand at a place, each on a device of its own there."""
    reports_of_stationary: int = 0
    """How often those devices spoke."""
    fixed_devices: int = 0
    """Devices all of whose subscriptions have a range that is fixed in place."""
    reports_of_fixed: int = 0
    """How often they spoke."""
    processes: int = 1
    ticks: int = 0
    simulated_s: float = 0.0
    elapsed_s: float = 0.0
    memory_mb_max: float = 0.0
    """The most that the replay's processes had in memory, each at its time, together."""
    late_ms_max: float = 0.0
    """By how much a tick came too late, of a replay that keeps time."""
    objects_published: int = 0
    objects_retracted: int = 0
    anchored: int = 0
    """How many anchors were seen."""
    anchored_ahead: int = 0
    """How many of them elsewhere than at the device, which is known to go there."""
    held: int = 0
    """How many objects came with them, together."""
    counters: Counters = field(default_factory=Counters)
    latencies: Histogram = field(default_factory=Histogram)
    timeline: Timeline = field(default_factory=Timeline)
    audited: int = 0
    audited_boolean: int = 0
    """So many of them lists of boolean subscriptions."""
    audited_stationary: int = 0
    """So many of them lists of top-k subscriptions that are stationary, at a place."""
    audited_weighed: int = 0
    """So many of them lists of top-k subscriptions by weights of keywords."""
    audited_windows: int = 0
    """So many of them lists of subscriptions with a window."""
    undecided: int = 0
    """So many of them differ, in real time, with an instant that is not known well enough."""
    mismatches: list[Mismatch] = field(default_factory=list)
    """The first of them."""
    mismatch_count: int = 0

    def add_mismatch(self, mismatch: Mismatch) -> None:
        """Note a list that is not what it should be."""
        self.mismatch_count += 1
        if len(self.mismatches) < MISMATCHES_KEPT_MAX:
            self.mismatches.append(mismatch)

    def merge(self, other: ReplayReport) -> None:
        """Add what another process of the same replay found."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.processes += other.processes
        self.elapsed_s = max(self.elapsed_s, other.elapsed_s)
        self.memory_mb_max += other.memory_mb_max
        self.late_ms_max = max(self.late_ms_max, other.late_ms_max)
        self.counters += other.counters
        self.latencies.merge(other.latencies)
        self.timeline.merge(other.timeline)
        kept = sorted([*self.mismatches, *other.mismatches], key=lambda one: (one.tick, one.device_id))
        self.mismatches = kept[:MISMATCHES_KEPT_MAX]

    @property
    def silent_share(self) -> float:
        """Share of moves that nobody was told about."""
        return 1.0 - self.counters.reports / max(1, self.counters.moves)

    @property
    def reports_per_device_hour(self) -> float:
        """How often a device speaks."""
        hours = self.devices * self.simulated_s / 3600.0
        return self.counters.reports / hours if hours else 0.0

    @property
    def objects_held_mean(self) -> float:
        """What a device holds for a subscription when it has been anchored anew."""
        return self.held / max(1, self.anchored)

    @property
    def anchors_ahead_share(self) -> float:
        """Share of the anchors that lie elsewhere than at the device, which is known to go there."""
        return self.anchored_ahead / max(1, self.anchored)

    def latency_ms(self, share: float) -> float:
        """Return a quantile of the publish-to-device latency; NaN if nothing was delivered."""
        return self.latencies.quantile_ms(share)

    def figures(self) -> dict[str, float]:
        """Return what a run measured, by name."""
        counters = self.counters
        return {
            "processes": self.processes,
            "devices": self.devices,
            "subscriptions": self.subscriptions,
            "boolean_subscriptions": self.boolean_subscriptions,
            "stationary_subscriptions": self.stationary_subscriptions,
            "simulated_s": self.simulated_s,
            "elapsed_s": round(self.elapsed_s, 1),
            "late_ms_max": round(self.late_ms_max, 1),
            "memory_mb_max": round(self.memory_mb_max),
            "objects_published": self.objects_published,
            "objects_retracted": self.objects_retracted,
            "moves": counters.moves,
            "reports": counters.reports,
            "silent_moves_percent": round(100.0 * self.silent_share, 2),
            "reports_per_device_hour": round(self.reports_per_device_hour, 1),
            "devices_of_fixed_ranges": self.fixed_devices,
            "reports_of_fixed_ranges": self.reports_of_fixed,
            "reports_of_stationary": self.reports_of_stationary,
            "objects_held_mean": round(self.objects_held_mean, 1),
            "anchors_ahead_percent": round(100.0 * self.anchors_ahead_share, 1),
            "deltas": counters.deltas,
            "objects_sent": counters.objects,
            "bytes_from_devices": counters.bytes_sent,
            "bytes_to_devices": counters.bytes_received,
            "publish_to_device_p50_ms": round(self.latency_ms(0.5), 2),
            "publish_to_device_p99_ms": round(self.latency_ms(0.99), 2),
            "audited_lists": self.audited,
            "audited_boolean_lists": self.audited_boolean,
            "audited_stationary_lists": self.audited_stationary,
            "audited_lists_by_tfidf": self.audited_weighed,
            "audited_lists_with_windows": self.audited_windows,
            "undecided_lists": self.undecided,
            "mismatches": self.mismatch_count,
        }
