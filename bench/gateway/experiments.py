"""The experiment with a gateway process under load, as data."""

from __future__ import annotations

from bench import experiment as e
from bench.server.experiments import LoadParameters


class GatewayParameters(LoadParameters):
    """Size and shape of a run."""

    gateways: int = e.count(3, "Number of gateways of the variant crowd.", most=100)


GATEWAY = e.Suite(
    "gateway",
    "a gateway process under load, in front of a server",
    "bench.gateway.run:GatewayBenchmark",
    GatewayParameters,
    metrics={"objects": "objects", "devices": "devices"},
    plots=(
        e.Lines("devices", ("reports_cpu_us", "server_reports_cpu_us", "fleet_reports_cpu_us"), log="x"),
    ),
    reduced={"devices": 500, "objects": 20_000, "seconds": 1.0, "rounds": 1},
    about="Each device has a WebSocket. CPU is that of the process, all threads together, divided by the "
    "number of messages; a report counts with its delta. Latencies need an idle machine.",
    experiments=(
        e.Experiment(
            "load",
            "",
            "CPU a message, memory a WebSocket and latencies by the number of devices",
            ("sockets",),
            sweep=e.Over("devices", (100, 1_000, 10_000)),
            metrics={
                "kb_per_socket": "kB a WebSocket",
                "reports_per_s": "reports/s",
                "reports_cpu_us": "us of the gateway's CPU a report with its delta",
                "server_reports_cpu_us": "us of the server's CPU a report",
                "fleet_reports_cpu_us": "us of the server's CPU a report on its fleet streams",
                "pushed_cpu_us": "us of the gateway's CPU a pushed delta",
                "publish_ms_p50": "ms to a device",
                "publish_ms_p99": "ms to a device",
            },
        ),
        e.Experiment(
            "crowd",
            "",
            "memory a WebSocket of several gateways that hold many silent devices",
            ("crowd",),
            changes={"devices": 50_000},
            metrics={
                "gateways": "gateways",
                "attach_s": "s to attach all devices, with their first results",
                "kb_per_socket": "kB a WebSocket",
                "server_kb_per_device": "kB of the server a device",
            },
        ),
    ),
)
