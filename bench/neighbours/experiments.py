"""Experiments on the effect of one caller, within its rights, on honest callers, as data."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bench import experiment as e

Callers = Literal["devices", "publishers", "operators", "strangers"]


class NeighboursParameters(e.BenchParameters):
    """Size and shape of a run."""

    callers: Callers = Field("devices", description="Callers that act; experiments set them.")
    acts: tuple[str, ...] = Field(
        (),
        description="Acts to measure, of the callers of an experiment; all of them by default. For "
        "tenants: the acts of the misbehaving tenant, all at once; by default six that "
        "affect the others.",
    )
    rounds: int = e.count(
        5,
        "Number of rounds: in each, every act is measured, and in turn a window without an act.",
        most=1_000,
    )
    before_s: float = Field(5.0, ge=0.1, le=600.0, description="Time that is measured before an act.")
    during_s: float = Field(8.0, ge=0.1, le=600.0, description="Time that is measured during an act.")
    after_s: float = Field(12.0, ge=0.1, le=600.0, description="Time that is measured after an act.")
    messages_per_s: float = Field(
        20.0,
        ge=0.1,
        le=10_000.0,
        description="Reports of the honest device per second; the publisher sends as many requests.",
    )
    objects: int | None = e.count(
        None,
        "Number of objects on the server, in place of the number of each act; per tenant if there are "
        "several.",
        least=0,
    )
    server_command: str = Field(
        "",
        description="Command of another installation, to measure its server: path/.venv/bin/nearcast.",
    )
    server_flags: tuple[str, ...] = Field((), description="Additional flags of the server.")


_ACTS = {
    "what": "the act of the caller",
    "role": "of its token",
    "objects": "objects",
    "report_ms_p50_without": "ms per report",
    "report_ms_p99_without": "ms per report",
    "rss_mb": "MB",
    "rss_mb_more": "MB, maximum",
    "report_ms_p50": "ms per report",
    "report_ms_p99": "ms per report",
    "report_p99_ratio": "of that without",
    "publish_ms_p99_without": "ms per request",
    "publish_ms_p50": "ms per request",
    "publish_ms_p99": "ms per request",
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
    "what": "the act of the fourth tenant",
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
    "cpu_us_other": "us of CPU per message, the other server",
    "cpu_us": "us of CPU per message",
    "cpu_ratio": "ratio to the other server, median of the pairs",
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
    "the effect of one caller, within its rights, on an honest device and publisher",
    "bench.neighbours.run:ActsBenchmark",
    NeighboursParameters,
    metrics={},
    plots=(),
    reduced={"rounds": 1, "before_s": 0.5, "during_s": 1.0, "after_s": 1.0, "objects": 5_000},
    about="Each act is one caller with one token, at a new server; some acts need no token. Latencies "
    "count from the time at which a message was due. Figures are medians of the rounds, beside "
    "those of rounds without an act. An unknown act prints the list of acts. Tenants: four "
    "tenants that send as fast as they get responses, and at a rate; one of them performs all "
    "acts at once. Versions: two servers in turn, that of this installation and that of --set "
    "server_command=PATH/.venv/bin/nearcast.",
    experiments=(
        _acting("devices", "acts of a device or a gateway"),
        _acting("publishers", "acts of a publisher"),
        _acting("operators", "an operator who watches the map"),
        _acting("strangers", "acts without a token"),
        e.Experiment(
            "tenants",
            "",
            "throughput of four tenants, one of which misbehaves",
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
            "cost of a report and of a publication, compared with the server of another installation",
            changes={"rounds": 150},
            metrics=_VERSIONS,
            plots=(e.Bars(("cpu_us_other", "cpu_us"), is_flat=True),),
            benchmark="bench.neighbours.run:VersionsBenchmark",
        ),
    ),
)
