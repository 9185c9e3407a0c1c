"""The report of a replay."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field

from nearcast import Counters
from simulator.replay.audit import Mismatch
from simulator.replay.histogram import Histogram
from simulator.replay.timeline import Timeline

MISMATCHES_KEPT_MAX = 1_000
"""Further mismatches are only counted."""

_SUMS = (
    "devices",
    "subscriptions",
    "boolean_subscriptions",
    "stationary_subscriptions",
    "reports_of_stationary",
    "fixed_devices",
    "reports_of_fixed",
    "fixes",
    "wake_ups",
    "reports_without_fix",
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
    """The results of a replay, or of one process's share of it."""

    devices: int = 0
    """The devices of the trajectories."""
    subscriptions: int = 0
    boolean_subscriptions: int = 0
    stationary_subscriptions: int = 0
    """Stationary top-k subscriptions, each on a separate device at its place."""
    reports_of_stationary: int = 0
    """The number of reports of those devices."""
    fixed_devices: int = 0
    """Devices with only subscriptions of ranges that are fixed in place."""
    reports_of_fixed: int = 0
    """The number of their reports."""
    processes: int = 1
    ticks: int = 0
    simulated_s: float = 0.0
    elapsed_s: float = 0.0
    memory_mb_max: float = 0.0
    """The sum of the peak memories of the replay's processes."""
    late_ms_max: float = 0.0
    """The maximum delay of a tick, in a replay that keeps time."""
    fixes: int = 0
    """Fixes that devices would have needed (`simulator.replay.fixes`); 0 if they were not counted."""
    wake_ups: int = 0
    """Fixes that followed a message from the server, before they were due."""
    reports_without_fix: int = 0
    """Reports of devices that would not have looked: they were faster than assumed."""
    objects_published: int = 0
    objects_retracted: int = 0
    anchored: int = 0
    """The number of anchors."""
    anchored_ahead: int = 0
    """The number of anchors ahead of the device, at places that it is known to go to."""
    held: int = 0
    """The total number of objects that came with the anchors."""
    counters: Counters = field(default_factory=Counters)
    latencies: Histogram = field(default_factory=Histogram)
    timeline: Timeline = field(default_factory=Timeline)
    audited: int = 0
    audited_boolean: int = 0
    """The audited results of boolean subscriptions."""
    audited_stationary: int = 0
    """The audited results of stationary top-k subscriptions."""
    audited_weighed: int = 0
    """The audited results of top-k subscriptions by weights of keywords."""
    audited_windows: int = 0
    """The audited results of subscriptions with a window."""
    undecided: int = 0
    """The audited results that, in real time, depend on an instant that is not known well enough."""
    mismatches: list[Mismatch] = field(default_factory=list)
    """The first mismatches."""
    mismatch_count: int = 0

    def add_mismatch(self, mismatch: Mismatch) -> None:
        """Record a result that differs from the oracle's."""
        self.mismatch_count += 1
        if len(self.mismatches) < MISMATCHES_KEPT_MAX:
            self.mismatches.append(mismatch)

    def merge(self, other: ReplayReport) -> None:
        """Add the report of another process of the same replay."""
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
        """Fraction of moves that were not reported."""
        return 1.0 - self.counters.reports / max(1, self.counters.moves)

    @property
    def reports_per_device_hour(self) -> float:
        """The mean number of reports of a device in an hour."""
        return self.per_device_hour(self.counters.reports)

    def per_device_hour(self, count: float) -> float:
        """Return a count of the run per device and hour in which devices had positions."""
        # A device moves at each tick after its first one, up to its last.
        hours = self.counters.moves * self.timeline.period_s / 3600.0
        return count / hours if hours else 0.0

    @property
    def objects_held_mean(self) -> float:
        """The mean number of objects that a device holds for a subscription after an anchor."""
        return self.held / max(1, self.anchored)

    @property
    def anchors_ahead_share(self) -> float:
        """Fraction of the anchors ahead of the device, at places that it is known to go to."""
        return self.anchored_ahead / max(1, self.anchored)

    def latency_ms(self, share: float) -> float:
        """Return a quantile of the publish-to-device latency; NaN if nothing was delivered."""
        return self.latencies.quantile_ms(share)

    def json(self) -> str:
        """Return the measurements as JSON; those without a value are null."""
        found = {name: None if math.isnan(one) else one for name, one in self.figures().items()}
        return json.dumps(found, indent=2, allow_nan=False) + "\n"

    def figures(self) -> dict[str, float]:
        """Return the measurements of a run by name."""
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
            "fixes_per_device_hour": round(self.per_device_hour(self.fixes), 1),
            "wake_ups_per_device_hour": round(self.per_device_hour(self.wake_ups), 1),
            "reports_without_fix": self.reports_without_fix,
            "radio_bytes_per_device_hour": round(
                self.per_device_hour(counters.bytes_sent + counters.bytes_received)
            ),
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
