"""Experiments that find the best objects for a position, as data."""

from __future__ import annotations

from pydantic import Field, field_validator

from bench import experiment as e

_EXTRA_MAX = 1_000


class RetrieveParameters(e.TopKParameters, e.BudgetParameters):
    """Size and shape of a run."""

    objects: int = e.count(100_000, "Number of objects in the index.")
    extras: tuple[int, ...] = Field(
        (0, 8, 32), description="Values of b: a search returns the k + b + 1 best objects."
    )
    searches: int = e.count(20_000, "Number of subscriptions that are evaluated in one call.")
    singles: int = e.count(2_000, "Number of subscriptions that are evaluated in one call each.")
    large_batch: int = e.count(50_000, "Objects that are inserted or removed per batch.")
    small_batch: int = e.count(1_000, "Size of small batches.")
    audited: int = e.count(100, "Number of results compared with the oracle for each b.", least=0)

    @field_validator("extras")
    @classmethod
    def _are_sizes(cls, extras: tuple[int, ...]) -> tuple[int, ...]:
        if not extras or min(extras) < 0 or max(extras) > _EXTRA_MAX:
            raise ValueError(f"must be one or several, each within 0..{_EXTRA_MAX}")
        return extras


RETRIEVE = e.Suite(
    "retrieve",
    "the best objects at a position: time per subscription, and rates of insertion and removal of "
    "objects",
    "bench.retrieve.run:RetrieveBenchmark",
    RetrieveParameters,
    metrics={
        "objects": "objects",
        "extra": "objects more than k + 1",
        "build_s": "s",
        "us_per_subscription_median": "us per subscription",
        "us_per_subscription_mean": "us per subscription",
        "us_per_subscription_batch": "us per subscription",
        "inserts_per_s": "objects/s",
        "removes_per_s": "objects/s",
        "inserts_per_s_small": "objects/s",
        "removes_per_s_small": "objects/s",
        "bytes_per_object": "bytes an object",
    },
    plots=(
        e.Lines("extra", tuple(f"us_per_subscription_{way}" for way in ("mean", "median", "batch"))),
        e.Bars(("inserts_per_s", "removes_per_s"), ("variant", "extra")),
    ),
    reduced={"objects": 100_000, "budget_s": 30},
    experiments=(
        e.Experiment(
            "published",
            "",
            "all object indexes except naive, by b",
            ("iqf", "iqf-plus", "iq-tree", "ir-tree", "inverted-file"),
        ),
        e.Experiment("naive", "", "a scan of all objects, by b", ("naive",)),
    ),
)
