"""Which subscriptions a new object concerns, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from pydantic import Field

from bench.experiment import BudgetParameters, Experiment, Lines, Over, Step, Suite, TopKParameters


class MatchParameters(TopKParameters, BudgetParameters):
    """Size and shape of a run."""

    subscriptions: int = Field(
        100_000, ge=1, le=10_000_000, description="How many there are, all different."
    )
    objects: int = Field(
        100_000, ge=1, le=10_000_000, description="Live objects that the reaches are computed from."
    )
    buffer_extra: int = Field(8, ge=0, le=1_000, description="b: the reach is the (k + b + 1)-th length.")
    arrivals: int = Field(2_000, ge=1, description="New objects that are matched.")
    moved: int = Field(20_000, ge=1, description="Subscriptions that are moved, there and back.")
    audited: int = Field(40, ge=0, description="New objects whose matches are compared.")


@dataclass(frozen=True, slots=True)
class Proportionate:
    """Objects grow with subscriptions, up to what is set, so that an object has as many results."""

    values: Sequence[Any]

    def steps(self, base: MatchParameters) -> list[Step]:
        """Return a step a number of subscriptions."""
        sizes = [base.changed(subscriptions=value).subscriptions for value in self.values]
        found = [
            {"subscriptions": size, "objects": max(1, base.objects * size // max(sizes))}
            for size in sizes
        ]
        return [Step(one, one) for one in found]

    def replaced(self, name: str, values: Sequence[Any]) -> Self | None:
        """Return the same with other numbers of subscriptions."""
        return replace(self, values=tuple(values)) if name == "subscriptions" else None


_SIZES = (10_000, 30_000, 100_000)

MATCH = Suite(
    "match",
    "which anchored subscriptions a new object concerns: time an object",
    "bench.match.run:MatchBenchmark",
    MatchParameters,
    metrics={
        "subscriptions": "subscriptions",
        "objects": "objects",
        "us_per_object_median": "us an object",
        "us_per_object_p99": "us an object",
        "us_per_object_mean": "us an object",
        "us_per_object_batch": "us an object",
        "candidates_per_result": "subscriptions a result",
        "results_per_object": "subscriptions an object",
        "objects_measured": "objects",
        "bytes_per_subscription": "bytes a subscription",
        "us_per_insert": "us a subscription",
        "us_per_move": "us a subscription",
    },
    plots=(Lines("subscriptions", ("us_per_object_median", "us_per_object_batch"), log="x"),),
    reduced={"subscriptions": _SIZES, "objects": 100_000, "budget_s": 20},
    experiments=(
        Experiment(
            "fixed-objects",
            "",
            "by the number of subscriptions, among as many objects",
            sweep=Over("subscriptions", (100_000,)),
        ),
        Experiment(
            "constant-results",
            "",
            "by the number of subscriptions, among objects in proportion to them",
            sweep=Proportionate(_SIZES),
        ),
    ),
    about="Variants: sq-tree, sq-plus-tree, naive, dict (keyword to subscriptions, verified one by one "
    "in plain Python), strtree (shapely's STRtree of the largest discs).",
)
