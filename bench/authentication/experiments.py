"""Experiments on the cost of authentication and the effect of one intruder on honest devices, as data."""

from __future__ import annotations

from pydantic import Field

from bench import experiment as e
from bench.server.experiments import LoadParameters


class AuthenticationParameters(LoadParameters):
    """Size and shape of a run."""

    rounds: int = e.count(5, "Number of measurements of both, in turn.", most=100)
    reports_per_s: float = Field(
        300.0,
        ge=1.0,
        le=100_000.0,
        description="Messages per second of all honest devices together, beside an intruder.",
    )


AUTHENTICATION = e.Suite(
    "authentication",
    "a server that requires signed tokens",
    "bench.authentication.run:AuthenticationBenchmark",
    AuthenticationParameters,
    metrics={},
    plots=(),
    reduced={"devices": 100, "objects": 10_000, "seconds": 1.0, "rounds": 2},
    about="Variants: cost (a server that requires signed tokens and a server without tokens, in turn) "
    "and intruder (honest devices with and without another device that misuses its token in all "
    "ways at once).",
    experiments=(
        e.Experiment(
            "cost",
            "",
            "the cost of tokens, compared with a server without them",
            ("cost",),
            metrics={
                "what": "per message",
                "open_per_s": "messages/s",
                "guarded_per_s": "messages/s",
                "rate_ratio": "of the rate without",
                "open_cpu_us": "us of CPU per message",
                "guarded_cpu_us": "us of CPU per message",
                "cpu_ratio": "of the CPU without",
            },
            plots=(e.Bars(("open_cpu_us", "guarded_cpu_us"), ("what",)),),
        ),
        e.Experiment(
            "intruder",
            "",
            "the effect on other devices of one device that misuses its token in all ways at once",
            ("intruder",),
            metrics={
                "what": "per message",
                "p99_ms_without": "ms",
                "p99_ms_without_min": "ms",
                "p99_ms_without_max": "ms",
                "p99_ms_beside": "ms",
                "p99_ms_beside_max": "ms",
                "is_kept": "1 if within the range of the rounds without",
                "rss_mb_more": "MB",
            },
            plots=(e.Bars(("p99_ms_without", "p99_ms_beside"), ("what",)),),
        ),
    ),
)
