"""`bench match`: who is affected by a new object, in microseconds.

A variant is built, some of its subscriptions are moved there and back, and new objects are matched, one
a call and all in one. Kernels are compiled before. Slow variants match fewer objects, or are run with
fewer subscriptions, and their rows say so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from bench.datasets import SOURCES, Dataset
from bench.match.audits import MatchAudit
from bench.match.dict_index import DictIndex
from bench.match.strtree_index import StrtreeIndex
from bench.match.workload import CHUNK, MatchParameters, MatchWorkload, prepare
from bench.portions import interest_part, object_part, reach_part
from bench.reports import Progress, Row
from bench.variants import chosen
from index.batches import Matches, ObjectBatch, ReachBatch
from index.catalogue import SUBSCRIPTION_INDEXES
from index.contracts import SubscriptionIndex
from index.square import Square
from safe_region.scoring import Similarity

VARIANTS: dict[str, Callable[[Square | None], SubscriptionIndex]] = {
    **{name: SUBSCRIPTION_INDEXES[name] for name in ("sq-tree", "sq-plus-tree", "naive")},
    "dict": lambda _square: DictIndex(),
    "strtree": lambda _square: StrtreeIndex(),
}

_TRIAL = 4_000
"""Subscriptions of the run that compiles kernels and tells how long a large one would take."""
_STEP_M = 300.0
"""Standard deviation of a move, in each direction."""
_MEASURED_MIN = 10
_MATCHING_SHARE = 0.3
"""Of the time of a run, for each of the two ways of matching."""
_NOTHING = np.zeros(1, dtype=np.int64)


class Costs(NamedTuple):
    """What building and moving cost."""

    us_per_insert: float
    us_per_move: float


def measure(
    name: str,
    workload: MatchWorkload,
    audit: MatchAudit,
    moved: int,
    budget_s: float,
    progress: Progress,
) -> Row:
    """Measure a variant.

    Parameters
    ----------
    name
        One of VARIANTS.
    workload
        What it is measured on; on its first subscriptions only, by halves, if the time does not do.
    audit
        The true matches of the workload.
    moved
        How many subscriptions are moved.
    budget_s
        How long the run may take.
    progress
        Is told how far it is.
    """
    trial = workload.first(min(_TRIAL, len(workload)))
    costs, index = _built(name, trial, moved, lambda _stage, _done, _total: None)
    index.match(object_part(trial.arrivals, 0, 1))
    costs, _ = _built(name, trial, moved, lambda _stage, _done, _total: None)
    count = _affordable(costs, len(workload), budget_s)
    workload = workload.first(count)
    costs, index = _built(name, workload, moved, progress)
    index.match(object_part(workload.live, 0, 1))  # a tree that cannot be changed is built here
    before = _candidates(index)
    times_us, single = _one_by_one(index, workload.arrivals, budget_s * _MATCHING_SHARE, progress)
    candidates = _candidates(index) - before
    measured = len(times_us)
    batch, batch_s = _all_in_one(index, object_part(workload.arrivals, 0, measured), budget_s)
    results = len(single.ids)
    row: Row = {
        "subscriptions": count,
        "objects": len(workload.live),
        "us_per_object_median": round(float(np.median(times_us)), 2),
        "us_per_object_p99": round(float(np.quantile(times_us, 0.99)), 2),
        "us_per_object_mean": round(float(np.mean(times_us)), 2),
        "us_per_object_batch": round(1e6 * batch_s / measured, 2),
        "results_per_object": round(results / measured, 3),
        "objects_measured": measured,
        "bytes_per_subscription": round(index.memory_bytes() / count, 1),
        "us_per_insert": round(costs.us_per_insert, 3),
        "us_per_move": round(costs.us_per_move, 3),
        "infinite_reaches": int(np.isinf(workload.reaches.reach_m).sum()),
        "lists_audited": 2 * min(measured, len(audit.expected)),
        "mismatches": audit.mismatches(single, count) + audit.mismatches(batch, count),
    }
    if candidates:
        row["candidates_per_result"] = round(candidates / max(1, results), 3)
    return row


def _built(
    name: str, workload: MatchWorkload, moved: int, progress: Progress
) -> tuple[Costs, SubscriptionIndex]:
    """Build a variant and move some subscriptions there and back."""
    index = VARIANTS[name](workload.data.square())
    count = len(workload)
    nothing = object_part(workload.live, 0, 0)
    index.match(workload.live)  # as a server would have: some indexes learn how frequent keywords are
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
        index.match(nothing)  # which is when a tree that cannot be changed is built anew
    moving = time.perf_counter() - began
    return Costs(1e6 * spent / count, 1e6 * moving / (2 * len(there))), index


def _moves(workload: MatchWorkload, moved: int) -> tuple[ReachBatch, ReachBatch]:
    """Move a sample by a random step, and back."""
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


def _affordable(costs: Costs, count: int, budget_s: float) -> int:
    """Halve the number of subscriptions until building the index fits its share of the time.

    What a move costs may grow with their number: a tree that cannot be changed is built anew.
    """
    left_us = 1e6 * budget_s * (1.0 - 2.0 * _MATCHING_SHARE)
    while count > _TRIAL and count * (costs.us_per_insert + 2.0 * costs.us_per_move) > left_us:
        count //= 2
    return count


def _one_by_one(
    index: SubscriptionIndex, objects: ObjectBatch, until_s: float, progress: Progress
) -> tuple[list[float], Matches]:
    """Match objects in a call each until the time is up; return how long each took."""
    times_us: list[float] = []
    found = []
    deadline = time.perf_counter() + until_s
    for number in range(len(objects)):
        one = object_part(objects, number, number + 1)
        began = time.perf_counter()
        matches = index.match(one)
        ended = time.perf_counter()
        times_us.append(1e6 * (ended - began))
        found.append(matches.ids)
        if ended > deadline and len(times_us) >= _MEASURED_MIN:
            break
    progress("matched", len(times_us), len(times_us))
    offsets = np.concatenate([_NOTHING, np.cumsum([len(ids) for ids in found])])
    return times_us, Matches(offsets, np.concatenate(found))


def _all_in_one(index: SubscriptionIndex, objects: ObjectBatch, budget_s: float) -> tuple[Matches, float]:
    """Match objects in one call; return how long it took.

    Once more if there is time: an index that had too little room for what it found begins again.
    """
    spent: list[float] = []
    while True:
        began = time.perf_counter()
        found = index.match(objects)
        spent.append(time.perf_counter() - began)
        if len(spent) > 1 or spent[0] > budget_s * _MATCHING_SHARE:
            return found, min(spent)


def _candidates(index: SubscriptionIndex) -> int:
    """How many subscriptions were verified so far, of an index that can tell."""
    return int(getattr(index, "candidate_count", 0))


def run(
    progress: Progress,
    *,
    variants: Sequence[str],
    subscriptions: Sequence[int],
    constant_results: bool,
    data: str,
    similarity: str,
    budget_s: float,
    **shape: Any,  # noqa: ANN401
) -> list[Row]:
    """Measure variants at each number of subscriptions; `shape` are fields of MatchParameters.

    Raises
    ------
    BenchError
        If a variant is not known, or a file is not there.
    """
    wanted = chosen(variants, VARIANTS)
    source = SOURCES[data]()
    base = MatchParameters(
        subscriptions=max(subscriptions), similarity=Similarity[similarity.upper()], **shape
    )
    whole: MatchWorkload | None = None
    rows: list[Row] = []
    for number, size in enumerate(sorted(subscriptions)):
        progress("sizes", number, len(subscriptions))
        if constant_results:
            workload = _proportionate(source, base, size, progress)
        else:
            whole = whole or prepare(source, base, progress)
            workload = whole.first(size)
        audit = MatchAudit(workload, base.audited)
        for name in wanted:
            row = measure(name, workload, audit, base.moved, budget_s, progress)
            rows.append(
                {
                    "experiment": "constant-results" if constant_results else "fixed-objects",
                    "variant": name,
                    "data": source.name,
                    "k_max": base.k_max,
                    "buffer_extra": base.buffer_extra,
                    "is_distinct": True,
                    **row,
                }
            )
    progress("sizes", len(subscriptions), len(subscriptions))
    return rows


def _proportionate(data: Dataset, base: MatchParameters, size: int, progress: Progress) -> MatchWorkload:
    """Take as many objects a subscription as the largest size has."""
    objects = max(1, base.objects * size // base.subscriptions)
    return prepare(data, replace(base, subscriptions=size, objects=objects), progress)
