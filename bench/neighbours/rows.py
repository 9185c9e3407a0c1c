"""Summarise trials with and without an act as a row."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from bench.benchmark import Row
from bench.neighbours.acts import NamedAct
from bench.neighbours.summaries import Summary, recovery_s, summary
from bench.neighbours.trial import Outcome

KINDS = ("report", "publish")
SETTLED_S = 10.0
"""Seconds after an act; memory should then be as before it."""


BOUNDS = {
    "report_p99_ratio": 2.0,
    "publish_p99_ratio": 2.0,
    "pause_ms": 50.0,
    "rss_mb_more": 100.0,
    "rss_mb_more_after": 50.0,
    "recovery_s": 1.0,
}
"""Bounds that no caller within its rights should exceed."""


class Figures(NamedTuple):
    """Figures of one trial."""

    before: dict[str, Summary]
    during: dict[str, Summary]
    after: dict[str, Summary]
    pause_ms: float
    """The longest latency of a message that was due during or after an act."""
    recovery_s: float | None
    rss_mb: float
    """Memory before the act."""
    rss_mb_peak: float
    rss_mb_after: float
    """Memory ten seconds after the act, or at the end."""
    cores: float


def figures(outcome: Outcome) -> Figures:
    """Return the figures of a trial."""
    spans, readings = outcome.spans, outcome.readings
    latencies = {kind: outcome.found.get(kind, {}).get("latencies", []) for kind in KINDS}

    def summaries(from_s: float, to_s: float) -> dict[str, Summary]:
        return {kind: summary(latencies[kind], from_s, to_s) for kind in KINDS}

    before = summaries(spans.before_s, spans.act_s)
    during, after = summaries(spans.act_s, spans.calm_s), summaries(spans.calm_s, spans.end_s)
    recoveries = [
        recovery_s(latencies[kind], before[kind].ms_p99 / 1e3, spans.calm_s, spans.end_s)
        for kind in KINDS
    ]
    return Figures(
        before,
        during,
        after,
        max(one.ms_max for part in (during, after) for one in part.values()),
        None if None in recoveries else max(filter(None, recoveries), default=0.0),
        readings.rss_mb(spans.act_s),
        readings.rss_mb_max(spans.act_s, spans.end_s),
        readings.rss_mb(min(spans.end_s, spans.calm_s + SETTLED_S)),
        readings.cores(spans.act_s, spans.calm_s),
    )


def row(act: NamedAct, control: Sequence[Outcome], trials: Sequence[Outcome]) -> Row:
    """Return medians of the trials of an act, and of trials without an act."""
    without, found = [figures(one) for one in control], [figures(one) for one in trials]
    columns: Row = {
        "variant": act.name,
        "what": act.what,
        "role": act.role.value if act.role else "none",
        "objects": act.world.objects,
        "rounds": len(found),
    }
    for kind in KINDS:
        columns |= _latency_columns(kind, without, found)
    recoveries = [one.recovery_s for one in found if one.recovery_s is not None]
    calls = Counter[str]()
    for outcome in trials:
        calls.update(outcome.counts.get(act.name, {}))
    columns |= {
        "pause_ms_without": _median(without, lambda one: one.pause_ms),
        "pause_ms": _median(found, lambda one: one.pause_ms),
        "rss_mb": _median(found, lambda one: one.rss_mb),
        "rss_mb_more_without": _median(without, lambda one: one.rss_mb_peak - one.rss_mb),
        "rss_mb_more": _median(found, lambda one: one.rss_mb_peak - one.rss_mb),
        "rss_mb_more_after": _median(found, lambda one: one.rss_mb_after - one.rss_mb),
        "recovery_s": statistics.median(recoveries) if len(recoveries) == len(found) else None,
        "server_cores": _median(found, lambda one: one.cores),
        "honest_answered": _total(trials, "answered"),
        "honest_refused": _total(trials, "refused"),
        "honest_unanswered": _total(trials, "unanswered"),
        "honest_broken": _total(trials, "broken"),
        "servers_ended": sum(not one.is_alive for one in trials),
        "acts_sent": calls.pop("sent", 0),
        "acts_answered": calls.pop("responses", 0),
        "acts_refused": calls.pop("refused", 0),
        "acts_counts": dict(calls.most_common(8)),
        "server_counts": _server_counts(trials),
        "lists_audited": 0,
        "mismatches": 0,
    }
    return columns | {"exceeded": exceeded(columns)}


def exceeded(row: Row) -> list[str]:
    """Return the columns that exceed their bounds; unknown values do."""
    return [name for name, most in BOUNDS.items() if row[name] is None or row[name] > most]


def _latency_columns(kind: str, without: Sequence[Figures], found: Sequence[Figures]) -> Row:
    columns: Row = {
        f"{kind}_ms_p50_without": _median(without, lambda one: one.during[kind].ms_p50),
        f"{kind}_ms_p50": _median(found, lambda one: one.during[kind].ms_p50),
        f"{kind}_ms_p99_without": _median(without, lambda one: one.during[kind].ms_p99),
        f"{kind}_ms_p99": _median(found, lambda one: one.during[kind].ms_p99),
        f"{kind}_ms_max": _median(found, lambda one: one.during[kind].ms_max),
        f"{kind}_ms_p99_before": _median(found, lambda one: one.before[kind].ms_p99),
        f"{kind}_ms_p99_after": _median(found, lambda one: one.after[kind].ms_p99),
        f"{kind}_count": sum(one.during[kind].messages for one in found),
        f"{kind}_runs_ms_p99": [one.during[kind].ms_p99 for one in found],
    }
    before = columns[f"{kind}_ms_p99_without"]
    columns[f"{kind}_p99_ratio"] = round(columns[f"{kind}_ms_p99"] / before, 2) if before else None
    return columns


def _median(found: Sequence[Figures], value: Callable[[Figures], float]) -> float:
    return round(statistics.median(value(one) for one in found), 2)


def _server_counts(trials: Sequence[Outcome]) -> dict[str, int]:
    """Return the sums of the servers' counters over all trials."""
    found = Counter[str]()
    for outcome in trials:
        found.update(outcome.server_counts)
    return {name: count for name, count in found.items() if count}


def _total(trials: Sequence[Outcome], name: str) -> int:
    return sum(one.found.get(kind, {}).get(name, 0) for one in trials for kind in KINDS)
