"""Experiments that find the subscriptions that a new object affects, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from bench import experiment as e


class MatchParameters(e.TopKParameters, e.BudgetParameters):
    """Size and shape of a run."""

    subscriptions: int = e.count(100_000, "Number of subscriptions, all different.")
    objects: int = e.count(100_000, "Number of live objects from which reaches are computed.")
    buffer_extra: int = e.count(8, "b: the reach is the (k + b + 1)-th length.", least=0, most=1_000)
    arrivals: int = e.count(2_000, "Number of new objects to match.")
    moved: int = e.count(20_000, "Number of subscriptions that are moved and moved back.")
    audited: int = e.count(40, "Number of new objects with matches that are compared.", least=0)


@dataclass(frozen=True, slots=True)
class Proportionate:
    """Vary subscriptions, and objects in proportion, up to the given number.

    An object then has the same number of results at each step.
    """

    values: Sequence[Any]

    def steps(self, base: MatchParameters) -> list[e.Step]:
        """Return a step for each number of subscriptions."""
        sizes = [base.changed(subscriptions=value).subscriptions for value in self.values]
        found = [
            {"subscriptions": size, "objects": max(1, base.objects * size // max(sizes))}
            for size in sizes
        ]
        return [e.Step(one, one) for one in found]

    def replaced(self, name: str, values: Sequence[Any]) -> e.Sweep | None:
        """Return the same sweep with other numbers of subscriptions."""
        return replace(self, values=tuple(values)) if name == "subscriptions" else None


_SIZES = (10_000, 30_000, 100_000)

MATCH = e.Suite(
    "match",
    "anchored subscriptions that a new object affects: time per object",
    "bench.match.run:MatchBenchmark",
    MatchParameters,
    metrics={
        "subscriptions": "subscriptions",
        "objects": "objects",
        "us_per_object_median": "us per object",
        "us_per_object_p99": "us per object",
        "us_per_object_mean": "us per object",
        "us_per_object_batch": "us per object",
        "candidates_per_result": "subscriptions per result",
        "results_per_object": "subscriptions per object",
        "objects_measured": "objects",
        "bytes_per_subscription": "bytes a subscription",
        "us_per_insert": "us per subscription",
        "us_per_move": "us per subscription",
    },
    plots=(e.Lines("subscriptions", ("us_per_object_median", "us_per_object_batch"), log="x"),),
    reduced={"subscriptions": _SIZES, "objects": 100_000, "budget_s": 20},
    experiments=(
        e.Experiment(
            "fixed-objects",
            "",
            "by the number of subscriptions, among as many objects",
            sweep=e.Over("subscriptions", (100_000,)),
        ),
        e.Experiment(
            "constant-results",
            "",
            "by the number of subscriptions, among objects in proportion to them",
            sweep=Proportionate(_SIZES),
        ),
    ),
    about="Variants: sq-tree, sq-plus-tree, naive, dict (keyword to subscriptions, verified one by one "
    "in plain Python), strtree (shapely's STRtree of the largest discs).",
)
