"""Experiments on the effect of one caller, within its rights, on honest callers, as data."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bench import experiment as e

Callers = Literal["devices", "publishers", "strangers"]


class NeighboursParameters(e.BenchParameters):
    """Size and shape of a run."""

    callers: Callers = Field("devices", description="Whose acts: experiments say it.")
    acts: tuple[str, ...] = Field(
        (),
        description="Only these acts, of the callers of an experiment; all of them by default. Of "
        "tenants: what the one that misbehaves does at once; six that cost others something by default.",
    )
    rounds: int = e.count(
        5, "How often each act is measured, and nothing, in turn; pairs of windows.", most=1_000
    )
    before_s: float = Field(5.0, ge=0.1, le=600.0, description="How long is measured before an act.")
    during_s: float = Field(8.0, ge=0.1, le=600.0, description="The same, during an act.")
    after_s: float = Field(12.0, ge=0.1, le=600.0, description="The same, after an act.")
    messages_per_s: float = Field(
        20.0,
        ge=0.1,
        le=10_000.0,
        description="Reports of the honest device; the publisher sends as many requests.",
    )
    objects: int | None = e.count(
        None,
        "Objects that the server has, in place of each act's own number; of each tenant if "
        "there are several.",
        least=0,
    )
    server_command: str = Field(
        "",
        description="Command line of another installation, whose server is measured: "
        "path/.venv/bin/nearcast.",
    )
    server_flags: tuple[str, ...] = Field((), description="More flags of the server's.")


_ACTS = {
    "what": "what the caller does",
    "role": "of its token",
    "objects": "objects",
    "report_ms_p50_without": "ms a report",
    "report_ms_p99_without": "ms a report",
    "rss_mb": "MB",
    "rss_mb_more": "MB at the peak",
    "report_ms_p50": "ms a report",
    "report_ms_p99": "ms a report",
    "report_p99_ratio": "of that without",
    "publish_ms_p99_without": "ms a request",
    "publish_ms_p50": "ms a request",
    "publish_ms_p99": "ms a request",
    "publish_p99_ratio": "of that without",
    "pause_ms": "ms",
    "rss_mb_more_after": "MB",
    "recovery_s": "s",
    "server_cores": "cores",
    "exceeded": "columns above their bounds",
    "honest_refused": "messages",
    "acts_sent": "calls",
    "acts_answered": "calls",
    "acts_refused": "calls",
}
_TENANTS = {
    "what": "what the fourth tenant does",
    "reports_per_s_without": "reports/s",
    "reports_per_s": "reports/s",
    "reports_ratio": "of that without",
    "publishes_per_s_without": "requests/s",
    "publishes_per_s": "requests/s",
    "publishes_ratio": "of that without",
    "honest_refused": "messages",
}
_VERSIONS = {
    "callers": "that send as fast as they get responses",
    "per_s_other": "messages/s, the other server",
    "per_s": "messages/s",
    "cpu_us_other": "us of CPU a message, the other server",
    "cpu_us": "us of CPU a message",
    "cpu_ratio": "of the other's, median of the pairs",
    "cpu_ratio_q1": "first quartile",
    "cpu_ratio_q3": "third quartile",
}


def _acting(callers: Callers, what: str) -> e.Experiment:
    return e.Experiment(
        callers,
        "",
        f"latencies and memory beside one caller: {what}",
        changes={"callers": callers},
        metrics=_ACTS,
        plots=tuple(
            e.Bars((f"{name}_without", name), is_flat=True)
            for name in ("report_ms_p99", "publish_ms_p99", "rss_mb_more")
        ),
    )


NEIGHBOURS = e.Suite(
    "neighbours",
    "what one caller within its rights does to an honest device and publisher",
    "bench.neighbours.run:ActsBenchmark",
    NeighboursParameters,
    metrics={},
    plots=(),
    reduced={"rounds": 1, "before_s": 0.5, "during_s": 1.0, "after_s": 1.0, "objects": 5_000},
    about="Each act is one caller with one token at a fresh server; some need none. Latencies count "
    "from when a message was due. Figures are medians of the rounds, beside those of rounds in which "
    "nobody acts. An act that is none lists all. Tenants: four that send as fast as they get responses, "
    "and at a rate, of which one does all acts at once. Versions: two servers in turn, this "
    "installation's and that of --set server_command=PATH/.venv/bin/nearcast.",
    experiments=(
        _acting("devices", "acts of a device or a gateway"),
        _acting("publishers", "acts of a publisher"),
        _acting("strangers", "acts without a token"),
        e.Experiment(
            "tenants",
            "",
            "what four tenants get done of which one misbehaves",
            metrics=_TENANTS,
            plots=tuple(
                e.Bars((f"{kind}_per_s_without", f"{kind}_per_s"), is_flat=True)
                for kind in ("reports", "publishes")
            ),
            benchmark="bench.neighbours.run:TenantsBenchmark",
        ),
        e.Experiment(
            "versions",
            "",
            "what a report and a publication cost, beside the server of another installation",
            changes={"rounds": 150},
            metrics=_VERSIONS,
            plots=(e.Bars(("cpu_us_other", "cpu_us"), is_flat=True),),
            benchmark="bench.neighbours.run:VersionsBenchmark",
        ),
    ),
)
