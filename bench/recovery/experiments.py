"""A server that comes back after a crash, as data."""

from __future__ import annotations

from pydantic import DirectoryPath, Field

from bench.experiment import Bars, Experiment, Over, Suite, TopKParameters


class StoreParameters(TopKParameters):
    """What suites have that write stores."""

    payload_bytes: int = Field(64, ge=0, le=16 * 1024, description="Of each object.")
    folder: DirectoryPath | None = Field(
        None,
        description="Where stores are written, and deleted afterwards; by default that of temporary "
        "files.",
    )


class RecoveryParameters(StoreParameters):
    """Size and shape of a run."""

    objects: int = Field(100_000, ge=1, le=10_000_000, description="How many the store holds.")
    subscriptions: int = Field(
        100_000, ge=1, le=10_000_000, description="As many as objects; a device has one subscription."
    )
    attached: int = Field(
        100_000,
        ge=0,
        le=10_000_000,
        description="Devices that come back afterwards and are given their lists, at most all.",
    )
    audited: int = Field(
        100,
        ge=0,
        description="Subscriptions that are woken afterwards, their lists compared with the oracle.",
    )


RECOVERY = Suite(
    "recovery",
    "time and memory until a server has what its store holds, after a crash",
    "bench.recovery.run:RecoveryBenchmark",
    RecoveryParameters,
    metrics={
        "objects_committed_per_s": "objects/s",
        "subscriptions_committed_per_s": "subscriptions/s",
        "store_mb": "MB",
        "seconds": "s",
        "open_s": "s",
        "objects_s": "s",
        "subscriptions_s": "s",
        "resident_mb": "MB",
        "bytes_per_object": "bytes an object",
        "bytes_per_subscription": "bytes a subscription",
        "attached": "devices",
        "attached_per_s": "devices/s",
        "bytes_more_attached": "bytes a device",
    },
    plots=(
        Bars(("open_s", "objects_s", "subscriptions_s"), ("subscriptions",), is_stacked=True),
        Bars(("bytes_per_object", "bytes_per_subscription"), ("subscriptions",), is_stacked=True),
    ),
    reduced={},
    about="A process commits objects and subscriptions, a thousand at a time, and dies as if killed. "
    "Another one takes the store over; then devices come back, and some lists are compared with the "
    "oracle.",
    experiments=(
        Experiment(
            "sizes",
            "",
            "by the number of objects, and as many parked subscriptions",
            sweep=Over("objects", (100_000,), ("subscriptions",)),
        ),
    ),
)
