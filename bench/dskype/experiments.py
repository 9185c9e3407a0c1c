"""Experiments of the distributed system, skype.txt section 8.2, Figures 21 to 26, Table 5, as data."""

from __future__ import annotations

from pydantic import Field

from bench import experiment as e
from bench.skype.experiments import SkypeParameters

PROCESS = "process"
WARM = 2
"""Batches of messages that are not measured."""
HYBRIDS = ("spatial-first", "keyword-first")
"""Mechanisms that divide twice."""


class DskypeParameters(SkypeParameters):
    """Size and shape of a run, with the workload of the suite skype."""

    messages: int = e.count(
        200_000, "Maximum number of messages; a slower job ends when its time is over."
    )
    batch: int = e.count(10_000, "Messages per batch.", most=1_000_000)
    partitions: int = e.count(2, "Number of partitions of the job.", most=1_024)
    first_level: int = e.count(0, "Hybrids: parts of the first division.", least=0, most=1_024)
    paced_s: float = Field(
        0.0,
        ge=0.0,
        le=3_600.0,
        description="Time for which messages arrive at half the achieved rate, to measure the delay of "
        "results.",
    )
    restarts: bool = Field(
        False,
        description="Measure the time of a restart, with indexes in memory and without.",
    )


_SWEPT = ("hashing", "location", "prefix")
"""Mechanisms of the paper's Figures 22 to 24: keyword, which is slower than prefix, is left out."""


def _hybrids(base: DskypeParameters) -> list[e.Step]:
    """Return steps from all parts in the second division to all in the first.

    They include location and prefix, the mechanisms that the hybrids lie between.
    """
    count = base.partitions
    firsts = [one for one in range(1, count + 1) if count % one == 0]
    points = [(first, name, first) for first in firsts for name in HYBRIDS]
    points += [(count, "location", 0), (1, "prefix", 0)]
    return [
        e.Step({"first_level": level}, {"levels": f"{first} x {count // first}"}, (name,))
        for first, name, level in points
    ]


def _swept(figure: int, what: str, sweep: e.Sweep, x: str, few: tuple[int, ...]) -> e.Experiment:
    """Return a figure of the rate over the varied parameter; a reduced run has only a few values."""
    return e.Experiment(
        f"figure-{figure}",
        f"Skype, Figure {figure}",
        f"messages per second by {what}",
        _SWEPT,
        sweep=sweep,
        plots=(e.Lines(x, ("messages_per_s",)),),
        reduced={x: few},
    )


DSKYPE = e.Suite(
    "dskype",
    "exact results of a stream job on Spark: messages per second",
    "bench.dskype.run:DskypeBenchmark",
    DskypeParameters,
    metrics={
        "subscriptions": "subscriptions",
        "objects": "messages in the window",
        "k_max": "k",
        "messages": "messages",
        "messages_per_s": "messages/s",
        "changes_per_message": "changes per message",
        "batch": "messages per batch",
        "batch_s_p50": "s per batch",
        "batch_s_p99": "s per batch",
        "apply_us_per_message": "us per message, of all partitions",
        "tuples_per_message": "tuples per message, as the paper counts",
        "tuples_everywhere_per_message": "tuples per message, on all edges",
        "cost_max_mean": "of the mean",
        "replication": "partitions per subscription",
        "evaluated_per_message": "evaluations per message",
        "out_bytes_per_message": "bytes per message",
        "checkpoint_mb": "MB",
        "memory_mb": "MB",
        "fill_s": "s",
        "restart_s": "s",
    },
    plots=(e.Bars(("messages_per_s",)),),
    reduced={
        "subscriptions": 10_000,
        "window": 10_000,
        "messages": 20_000,
        "batch": 2_500,
        "partitions": 4,
        "budget_s": 120,
    },
    about="The window and all buffers are filled first. Variants: hashing, location, keyword, prefix, "
    "the hybrids spatial-first and keyword-first, and process, which is one engine without Spark.",
    experiments=(
        e.Experiment("figure-21", "Skype, Figure 21, Table 5", "ways to divide subscriptions"),
        _swept(
            22,
            "the number of partitions",
            e.Over("partitions", (2, 4, 8, 16, 32)),
            "partitions",
            (2, 4),
        ),
        _swept(23, "k", e.Over("k", (10, 20, 30, 40, 50)), "k", (10, 50)),
        _swept(
            24,
            "the number of subscriptions",
            e.Shares(("subscriptions",), (1.0, 2.0, 3.0, 4.0)),
            "subscriptions",
            (5_000, 20_000),
        ),
        e.Experiment(
            "figure-25",
            "Skype, Figures 25 and 26",
            "hybrids, from all parts in the second division to all in the first",
            sweep=e.Steps(_hybrids),
            plots=(e.Lines("levels", ("messages_per_s",)),),
            reduced={"messages": 12_500},
        ),
    ),
)
