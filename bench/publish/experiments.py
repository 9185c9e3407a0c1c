"""Experiments on the objects a second that a server makes durable and notifies devices of, as data."""

from __future__ import annotations

from bench import experiment as e
from bench.recovery.experiments import StoreParameters


class PublishParameters(StoreParameters):
    """Size and shape of a run."""

    objects: int = e.count(
        100_000, "Number of objects that are published in the measured time; as many exist before."
    )
    subscriptions: int = e.count(10_000, "Number of devices, each with one subscription.")
    batch: int = e.count(100, "Objects per request.", most=1_000)
    publishers: int = e.count(
        16,
        "Number of concurrent publishers; each waits for a response before its next request.",
        most=100_000,
    )


PUBLISH = e.Suite(
    "publish",
    "objects per second that are on disk, matched, and in the outboxes of devices",
    "bench.publish.run:PublishBenchmark",
    PublishParameters,
    metrics={
        "objects": "objects",
        "subscriptions": "subscriptions",
        "publishers": "publishers",
        "objects_per_s": "objects/s",
        "request_ms_median": "ms per request",
        "request_ms_p99": "ms per request",
        "request_ms_max": "ms per request",
    },
    plots=(e.Lines("batch", ("objects_per_s",), log="x"),),
    reduced={"objects": 20_000, "subscriptions": 2_000, "batch": (100, 1_000)},
    about="Variants: store (commits alone), server (a server without its transport).",
    experiments=(
        e.Experiment(
            "batches", "", "by the number of objects per request", sweep=e.Over("batch", (1, 100, 1_000))
        ),
    ),
)
