"""Find the subscriptions that a new object affects, in microseconds.

A variant is built, some of its subscriptions are moved there and back, and new objects are matched, one a
call and all in one. Kernels are compiled before. Slow variants match fewer objects or run with fewer
subscriptions, and their rows show the numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bench.benchmark import Benchmark, Estimate, Progress, Row, silent
from bench.datasets import source
from bench.match.audits import MatchAudit
from bench.match.experiments import MatchParameters
from bench.match.workload import CHUNK, MatchWorkload, prepare
from bench.matching import timed
from bench.parts import interest_part, object_part, reach_part
from bench.peers.subscription_dict import SubscriptionDict
from bench.peers.subscription_strtree import SubscriptionStrtree
from index.batches import Matches, ObjectBatch, ReachBatch
from index.catalogue import SUBSCRIPTION_INDEXES
from index.contracts import SubscriptionIndex
from index.square import Square

VARIANTS: dict[str, Callable[[Square | None], SubscriptionIndex]] = {
    **{name: SUBSCRIPTION_INDEXES[name] for name in ("sq-tree", "sq-plus-tree", "naive")},
    "dict": lambda _square: SubscriptionDict(),
    "strtree": lambda _square: SubscriptionStrtree(),
}
"""Variants by name: published indexes, and the structures that one would use instead."""

_TRIAL = 4_000
"""Subscriptions of the run from which the time of a large one is estimated."""
_STEP_M = 300.0
"""Standard deviation of a move, in each direction."""
_MEASURED_MIN = 10
_MATCHING_SHARE = 0.3
"""Share of the time of a run, for each of the two ways of matching."""


class Costs(NamedTuple):
    """Costs of building and moving."""

    us_per_insert: float
    us_per_move: float


class MatchBenchmark(Benchmark[MatchParameters]):
    """Measure subscription indexes, and the structures that one would use instead."""

    VARIANTS = tuple(VARIANTS)

    def workload(self, parameters: MatchParameters) -> tuple[MatchWorkload, MatchAudit]:
        """Return the workload of a point, and the true matches of the largest workload of its kind."""
        whole = self.whole(parameters, "subscriptions")

        def make() -> tuple[MatchWorkload, MatchAudit]:
            drawn = prepare(source(whole.data), whole, self.progress)
            return drawn, MatchAudit(drawn, whole.audited)

        workload, audit = self.kept("workload", whole, make)
        return workload.first(parameters.subscriptions), audit

    def trial(self, variant: str, parameters: MatchParameters) -> Estimate:
        """Build a small index.

        The cost of a move may grow with the number of subscriptions: an immutable tree is rebuilt.
        """
        trial = self.workload(parameters)[0].first(min(_TRIAL, parameters.subscriptions))
        costs, index = _built(variant, trial, parameters.moved, silent)
        index.match(object_part(trial.arrivals, 0, 1))
        each_s = 1e-6 * (costs.us_per_insert + 2.0 * costs.us_per_move) / (1.0 - 2.0 * _MATCHING_SHARE)
        return lambda other: float(other.subscriptions * each_s)

    def smaller(self, variant: str, parameters: MatchParameters) -> MatchParameters | None:
        """Return parameters with half as many subscriptions; None if there are too few."""
        del variant
        count = parameters.subscriptions
        return parameters.changed(subscriptions=count // 2) if count > _TRIAL else None

    def measure(self, variant: str, parameters: MatchParameters) -> list[Row]:
        """Build a variant, move, match."""
        workload, audit = self.workload(parameters)
        count, budget_s = len(workload), parameters.budget_s
        costs, index = _built(variant, workload, parameters.moved, self.progress)
        index.match(object_part(workload.live, 0, 1))  # an immutable tree is built here
        before = _candidates(index)
        single = timed(index, workload.arrivals, 1, budget_s * _MATCHING_SHARE, _MEASURED_MIN)
        candidates = _candidates(index) - before
        measured = len(single.us)
        batch, batch_s = _all_in_one(index, object_part(workload.arrivals, 0, measured), budget_s)
        results = len(single.matches.ids)
        row: Row = {
            "is_distinct": True,
            "k_max": parameters.k_max,
            "buffer_extra": parameters.buffer_extra,
            "subscriptions": count,
            "objects": len(workload.live),
            "us_per_object_median": round(single.quantile(0.5), 2),
            "us_per_object_p99": round(single.quantile(0.99), 2),
            "us_per_object_mean": round(single.mean(), 2),
            "us_per_object_batch": round(1e6 * batch_s / measured, 2),
            "results_per_object": round(results / measured, 3),
            "objects_measured": measured,
            "bytes_per_subscription": round(index.memory_bytes() / count, 1),
            "us_per_insert": round(costs.us_per_insert, 3),
            "us_per_move": round(costs.us_per_move, 3),
            "infinite_reaches": int(np.isinf(workload.reaches.reach_m).sum()),
            "lists_audited": 2 * min(measured, len(audit.expected)),
            "mismatches": audit.mismatches(single.matches, count) + audit.mismatches(batch, count),
        }
        if candidates:
            row["candidates_per_result"] = round(candidates / max(1, results), 3)
        return [row]


def _built(
    name: str, workload: MatchWorkload, moved: int, progress: Progress
) -> tuple[Costs, SubscriptionIndex]:
    """Build a variant and move some subscriptions there and back."""
    index = VARIANTS[name](workload.data.square())
    count = len(workload)
    nothing = object_part(workload.live, 0, 0)
    index.match(workload.live)  # as in a server: some indexes learn the frequencies of keywords
    spent = 0.0
    for first in range(0, count, CHUNK):
        some = slice(first, min(first + CHUNK, count))
        reaches = reach_part(workload.reaches, some.start, some.stop)
        interests = interest_part(workload.interests, some.start, some.stop)
        began = time.perf_counter()
        index.insert(reaches, interests)
        spent += time.perf_counter() - began
        progress(name, some.stop, count)
    began = time.perf_counter()
    index.match(nothing)
    spent += time.perf_counter() - began
    there, back = _moves(workload, moved)
    began = time.perf_counter()
    for reaches in (there, back):
        index.move(reaches)
        index.match(nothing)  # an immutable tree is rebuilt here
    moving = time.perf_counter() - began
    return Costs(1e6 * spent / count, 1e6 * moving / (2 * len(there))), index


def _moves(workload: MatchWorkload, moved: int) -> tuple[ReachBatch, ReachBatch]:
    """Return a sample moved by random steps, and the same sample moved back."""
    chance = np.random.default_rng(3)
    rows = chance.choice(len(workload), min(moved, len(workload)), replace=False)
    reaches = workload.reaches
    back = ReachBatch(
        reaches.ids[rows],
        reaches.x_m[rows],
        reaches.y_m[rows],
        reaches.radius_m[rows],
        reaches.reach_m[rows],
        reaches.reach_id[rows],
    )
    steps = chance.normal(0.0, _STEP_M, (2, len(rows)))
    return replace(back, x_m=back.x_m + steps[0], y_m=back.y_m + steps[1]), back


def _all_in_one(index: SubscriptionIndex, objects: ObjectBatch, budget_s: float) -> tuple[Matches, float]:
    """Match objects in one call; return the matches and the seconds that this took.

    If there is time, match twice and return the shorter time: an index that allocated too little space
    for its matches starts again.
    """
    spent: list[float] = []
    while True:
        began = time.perf_counter()
        found = index.match(objects)
        spent.append(time.perf_counter() - began)
        if len(spent) > 1 or spent[0] > budget_s * _MATCHING_SHARE:
            return found, min(spent)


def _candidates(index: SubscriptionIndex) -> int:
    """Return the number of subscriptions verified so far; 0 if the index does not count them."""
    return int(getattr(index, "candidate_count", 0))
