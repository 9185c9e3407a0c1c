"""Experiments with a server that recovers after a crash, as data."""

from __future__ import annotations

from pydantic import DirectoryPath, Field

from bench import experiment as e


class StoreParameters(e.TopKParameters):
    """Parameters of the suites that write stores."""

    payload_bytes: int = e.count(64, "Size of the payload of each object.", least=0, most=16 * 1024)
    folder: DirectoryPath | None = Field(
        None,
        description="Folder in which stores are written, and deleted afterwards; by default that of "
        "temporary files.",
    )


class RecoveryParameters(StoreParameters):
    """Size and shape of a run."""

    objects: int = e.count(100_000, "Number of objects in the store.")
    subscriptions: int = e.count(
        100_000, "Number of devices, as many as objects; a device has one subscription."
    )
    attached: int = e.count(
        100_000,
        "Number of devices that reconnect afterwards and receive their results, at most all.",
        least=0,
    )
    audited: int = e.count(
        100,
        "Number of subscriptions that are woken afterwards, with results that are compared with "
        "the oracle.",
        least=0,
    )


RECOVERY = e.Suite(
    "recovery",
    "time and memory of the recovery of a server after a crash",
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
        "bytes_per_object": "bytes per object",
        "bytes_per_subscription": "bytes per subscription",
        "attached": "devices",
        "attached_per_s": "devices/s",
        "bytes_more_attached": "bytes per device",
    },
    plots=(
        e.Bars(("open_s", "objects_s", "subscriptions_s"), ("subscriptions",), is_stacked=True),
        e.Bars(("bytes_per_object", "bytes_per_subscription"), ("subscriptions",), is_stacked=True),
    ),
    reduced={},
    about="A process commits objects and subscriptions, a thousand at a time, and ends as if killed. "
    "Another process opens the store; then devices reconnect, and some results are compared with "
    "the oracle.",
    experiments=(
        e.Experiment(
            "sizes",
            "",
            "by the number of objects, and as many parked subscriptions",
            sweep=e.Over("objects", (100_000,), ("subscriptions",)),
        ),
    ),
)
