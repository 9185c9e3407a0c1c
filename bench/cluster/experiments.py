"""Experiments with a cluster under load, as data."""

from __future__ import annotations

from pydantic import Field

from bench import experiment as e
from bench.server.experiments import LoadParameters


class ClusterParameters(LoadParameters):
    """Size and shape of a run."""

    devices: int = e.count(2_000, "Number of devices attached to each side.", least=4, most=1_000_000)
    nodes: int = e.count(2, "Number of nodes.", least=2, most=16)
    kills: int = e.count(30, "Number of times that a node is killed or stopped.", most=1_000)
    device_reports_per_s: float = Field(
        0.2, ge=0.0, le=10.0, description="Reports a second of each device, for the variant plan."
    )
    objects_per_s: float = Field(
        500.0,
        ge=0.0,
        le=10_000.0,
        description="Objects a second in requests of 100, for the variant plan.",
    )
    pushes_per_s: float = Field(
        50.0,
        ge=0.0,
        le=1_000.0,
        description="Objects a second that change the result of a device, in requests of 10, for the "
        "variant plan.",
    )


CLUSTER = e.Suite(
    "cluster",
    "nodes over three servers of a log that sync each append, all on this machine",
    "bench.cluster.run:ClusterBenchmark",
    ClusterParameters,
    metrics={"objects": "objects", "devices": "devices", "nodes": "nodes"},
    plots=(),
    reduced={"devices": 100, "objects": 5_000, "seconds": 1.0, "rounds": 1, "kills": 3},
    about="takeover kills one node after the other; drain stops it with SIGTERM. Its devices, which use "
    "the SDK on connections of their own or on four fleet streams, continue at others by themselves. The "
    "node starts again, and the next kill waits until every slot is back. load compares nodes and log "
    "with a single server in alternating windows. plan has a steady load of reports and publications. "
    "CPU is that of all processes of a side, all threads together.",
    experiments=(
        e.Experiment(
            "takeover",
            "",
            "time until all devices of a node that was killed are exact again",
            ("connections", "fleet"),
            metrics={
                "kills": "kills",
                "all_exact_s_p50": "s, from the kill until all devices are exact, median of the kills",
                "all_exact_s_max": "s, the same, worst of the kills",
                "exact_s_p50": "s, from the kill until a device is exact",
                "exact_s_p99": "s, the same",
            },
            plots=(e.Bars(("all_exact_s_p50", "all_exact_s_max"), ("variant",)),),
        ),
        e.Experiment(
            "drain",
            "",
            "time for which devices of a node that is stopped are not exact",
            ("drain", "drain-fleet"),
            metrics={
                "stops": "stops",
                "away_s_p50": "s, longest time for which a device of the node was not exact",
                "away_s_p99": "s, the same",
                "all_away_s_p50": "s, the longest such time of all devices, median of the stops",
                "all_away_s_max": "s, the same, worst of the stops",
                "ended_s_p50": "s, from SIGTERM until the node has ended",
            },
            plots=(e.Bars(("all_away_s_p50", "all_away_s_max"), ("variant",)),),
        ),
        e.Experiment(
            "load",
            "",
            "CPU and latencies of nodes and three log servers, beside a single server, and beside as "
            "many single servers as there are nodes, each with a share of the devices",
            ("load",),
            metrics={
                "reports_cpu_us": "us of CPU a report, single server",
                "cluster_reports_cpu_us": "us of CPU a report, nodes and log",
                "several_reports_cpu_us": "us of CPU a report, several single servers",
                "reports_cpu_ratio": "nodes and log, of the CPU of a single server",
                "several_reports_cpu_ratio": "several single servers, of the CPU of one",
                "objects_cpu_us": "us of CPU a published object, single server",
                "applied_cpu_us": "us of CPU an object, of each node",
                "applied_cpu_ratio": "of the CPU of a single server",
                "log_cpu_us": "us of CPU an object, of the log's servers together",
                "publish_ms_p50": "ms to a device, single server",
                "publish_ms_p99": "ms to a device, single server",
                "cluster_publish_ms_p50": "ms to a device, cluster",
                "cluster_publish_ms_p99": "ms to a device, cluster",
            },
            plots=(
                e.Bars(
                    ("reports_cpu_us", "several_reports_cpu_us", "cluster_reports_cpu_us"), ("devices",)
                ),
            ),
        ),
        e.Experiment(
            "plan",
            "",
            "CPU and memory of a node under a steady load, beside what nearcast plan computes for it",
            ("plan",),
            sweep=e.Over("devices", (500, 2_000)),
            changes={"seconds": 20.0},
            metrics={
                "idle_cores": "cores, a node, without load",
                "reports_per_s": "reports/s",
                "deltas_per_s": "pushed deltas/s",
                "published_per_s": "objects/s",
                "node_cores": "cores, a node",
                "planned_node_cores": "cores, a node, computed",
                "node_cores_ratio": "measured, of the computed",
                "node_mb": "MB, a node",
                "planned_node_mb": "MB, a node, computed",
                "node_mb_ratio": "measured, of the computed",
            },
            plots=(e.Lines("devices", ("node_cores", "planned_node_cores")),),
        ),
    ),
)
