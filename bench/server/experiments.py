"""Experiments with a server process under load, as data."""

from __future__ import annotations

from pydantic import Field

from bench import experiment as e

SINGLE = ("connections", "shared")
"""Variants in which each device has its own stream."""


class LoadParameters(e.TopKParameters):
    """Parameters of the suites that put servers under load."""

    devices: int = e.count(1_000, "Number of devices attached to each server.", least=4, most=1_000_000)
    objects: int = e.count(100_000, "Number of live objects.")
    seconds: float = Field(5.0, ge=0.2, le=600.0, description="Length of one measurement.")
    rounds: int = e.count(3, "Number of measurements of both sides of a comparison, in turn.", most=100)


class ServerParameters(LoadParameters):
    """Size and shape of a run."""

    boolean_share: float = e.share(
        0.0,
        "Share of the devices with a boolean subscription with a fixed range, in place of a top-k one; "
        "for the variants connections and shared.",
    )
    soak_s: float = Field(1_800.0, ge=1.0, description="Duration of the mixed load of the soak.")


_STORM = {
    "storm_s": "s, from the first hello to the last snapshot",
    "storm_cpu_us": "us of CPU per device",
    "restart_s": "s, from the kill to serving",
    "exact_s_p50": "s, from the kill until exact",
    "exact_s_max": "s, from the kill until exact",
}
_SIZES = e.Over("devices", (100, 1_000, 10_000))
_RATES = {
    "publishes_per_s": "objects/s",
    "rss_mb": "MB",
    "kb_per_device": "kB per device",
    "pings_per_s": "pings/s",
    "pings_ratio": "of that of the echo server",
    "reports_per_s": "reports/s",
    "reports_ratio": "of that of the echo server",
    "reports_cpu_us": "us of CPU per report",
    "report_ms_p50": "ms per report",
    "report_ms_p99": "ms per report",
    "publish_ms_p50": "ms to a device",
    "publish_ms_p99": "ms to a device",
    "accepted_per_s": "reports/s",
    "reanchors_per_s": "reports/s",
    "reanchors_ratio": "of the rate that retrieval alone allows",
    "stalled_effect_ms": "ms more p99 beside a device that does not read",
    "reading_spread_ms": "ms of p99 between runs beside one that reads",
}

SERVER = e.Suite(
    "server",
    "a server process under load, beside a bare grpc.aio echo server",
    "bench.server.run:ServerBenchmark",
    ServerParameters,
    metrics={"objects": "objects", "devices": "devices"},
    plots=(
        e.Lines("devices", ("pings_per_s", "echo_pings_per_s"), log="x"),
        e.Lines("devices", ("reports_per_s", "echo_reports_per_s"), log="x"),
        e.Lines("devices", ("report_ms_p50", "report_ms_p99"), log="x"),
        e.Lines("devices", ("publish_ms_p50", "publish_ms_p99"), log="x"),
        e.Lines("devices", ("rss_mb",), log="x"),
    ),
    reduced={"devices": (100, 500), "objects": 20_000, "seconds": 1.0, "rounds": 1},
    about="Variants: connections (each device has one of its own), shared (each has a stream, on ten "
    "connections) and fleet (the devices share four streams), each at its own server: rates, "
    "latencies, memory, and the effect of a device that does not read on others. In storms the "
    "server is killed and restarts, and its devices, which use the SDK, reconnect by themselves, "
    "each with a subscription for the k_max best. metrics: CPU per report of two servers in turn, "
    "one of which is scraped each second. soak: a mixed load; fails if the server's memory grows.",
    experiments=(
        e.Experiment(
            "load",
            "",
            "rates, latencies and memory by the number of devices",
            (*SINGLE, "fleet"),
            sweep=_SIZES,
            metrics=_RATES,
        ),
        e.Experiment(
            "half-boolean",
            "",
            "the same where half of the subscriptions are boolean",
            SINGLE,
            {"boolean_share": 0.5},
            sweep=e.Over("devices", (1_000,)),
            metrics=_RATES,
            reduced={"devices": 100},
        ),
        e.Experiment(
            "storm",
            "",
            "time until all devices have reconnected after the server was killed",
            ("storm-connections", "storm-fleet"),
            sweep=_SIZES,
            metrics=_STORM,
            plots=(e.Lines("devices", ("storm_s", "exact_s_max"), log="x"),),
        ),
        e.Experiment(
            "metrics",
            "",
            "the cost of metrics that are scraped",
            ("metrics",),
            sweep=_SIZES,
            metrics={
                "reports_cpu_us": "us of CPU per report",
                "metrics_reports_cpu_us": "us of CPU per report, scraped",
                "metrics_cpu_ratio": "of the CPU without",
            },
            plots=(e.Bars(("reports_cpu_us", "metrics_reports_cpu_us"), ("devices",)),),
        ),
        e.Experiment(
            "soak",
            "",
            "whether memory stays flat under a mixed load",
            ("soak",),
            metrics={
                "seconds": "s",
                "own_mb_mean": "MB",
                "rise_mb": "MB",
                "noise_mb": "MB",
                "reconnects": "connections",
            },
            plots=(e.Course("samples", "server's own memory, MB"),),
            reduced={"devices": 200, "soak_s": 60.0},
        ),
    ),
)
