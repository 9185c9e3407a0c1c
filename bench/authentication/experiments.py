"""Experiments on the cost of authentication and the effect of one intruder on honest devices, as data."""

from __future__ import annotations

from pydantic import Field

from bench import experiment as e
from bench.server.experiments import LoadParameters


class AuthenticationParameters(LoadParameters):
    """Size and shape of a run."""

    rounds: int = e.count(5, "How often both are measured, in turn.", most=100)
    reports_per_s: float = Field(
        300.0,
        ge=1.0,
        le=100_000.0,
        description="Of all honest devices together, beside an intruder.",
    )


AUTHENTICATION = e.Suite(
    "authentication",
    "a server that asks for signed tokens",
    "bench.authentication.run:AuthenticationBenchmark",
    AuthenticationParameters,
    metrics={},
    plots=(),
    reduced={"devices": 100, "objects": 10_000, "seconds": 1.0, "rounds": 2},
    about="Variants: cost (a server that asks for signed tokens beside one that asks nobody, in turn) "
    "and intruder (honest devices with and without another one that uses its token in all ways at once).",
    experiments=(
        e.Experiment(
            "cost",
            "",
            "what it costs, beside a server that asks nobody",
            ("cost",),
            metrics={
                "what": "a message",
                "open_per_s": "messages/s",
                "guarded_per_s": "messages/s",
                "rate_ratio": "of the rate without",
                "open_cpu_us": "us of CPU a message",
                "guarded_cpu_us": "us of CPU a message",
                "cpu_ratio": "of the CPU without",
            },
            plots=(e.Bars(("open_cpu_us", "guarded_cpu_us"), ("what",)),),
        ),
        e.Experiment(
            "intruder",
            "",
            "what one device that uses its token in all ways at once does to others",
            ("intruder",),
            metrics={
                "what": "a message",
                "p99_ms_without": "ms",
                "p99_ms_without_min": "ms",
                "p99_ms_without_max": "ms",
                "p99_ms_beside": "ms",
                "p99_ms_beside_max": "ms",
                "is_kept": "whether it is within the range without",
                "rss_mb_more": "MB",
            },
            plots=(e.Bars(("p99_ms_without", "p99_ms_beside"), ("what",)),),
        ),
    ),
)
