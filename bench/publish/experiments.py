"""How many objects a second a server makes durable and notifies devices of, as data."""

from __future__ import annotations

from pydantic import Field

from bench.experiment import Experiment, Lines, Over, Suite
from bench.recovery.experiments import StoreParameters


class PublishParameters(StoreParameters):
    """Size and shape of a run."""

    objects: int = Field(
        100_000,
        ge=1,
        le=10_000_000,
        description="How many are published while the clock runs; as many are there before.",
    )
    subscriptions: int = Field(
        10_000, ge=1, le=10_000_000, description="How many devices listen, with one each."
    )
    batch: int = Field(100, ge=1, le=1_000, description="Objects a request.")
    publishers: int = Field(
        16,
        ge=1,
        le=100_000,
        description="Those that publish at once, each waiting for its answer before it goes on.",
    )


PUBLISH = Suite(
    "publish",
    "objects a second that are on disk, matched, and in the outboxes of devices",
    "bench.publish.run:PublishBenchmark",
    PublishParameters,
    metrics={
        "objects": "objects",
        "subscriptions": "subscriptions",
        "publishers": "publishers",
        "objects_per_s": "objects/s",
        "request_ms_median": "ms a request",
        "request_ms_p99": "ms a request",
        "request_ms_max": "ms a request",
    },
    plots=(Lines("batch", ("objects_per_s",), log="x"),),
    reduced={"objects": 20_000, "subscriptions": 2_000, "batch": (100, 1_000)},
    about="Variants: store (commits alone), server (all of a server but its transport).",
    experiments=(
        Experiment(
            "batches", "", "by the number of objects a request", sweep=Over("batch", (1, 100, 1_000))
        ),
    ),
)
