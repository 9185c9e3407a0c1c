"""`bench ap-tree`: ap-tree.txt section 5.1, Figures 10 to 18, and the peers.

A variant is built from all subscriptions at once (of figure-16 and figure-17, from some; the others are
inserted as they would come, and what is being rebuilt then is rebuilt to the end), and new objects are
matched, one a call and in batches. Kernels are compiled before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from bench.ap_tree.building import build
from bench.ap_tree.rebuild import rebuild_rows
from bench.ap_tree.variants import VARIANTS, Make, why_not
from bench.ap_tree.workload import ApTreeAudit, ApTreeParameters, draw
from bench.datasets import SOURCES, Dataset
from bench.errors import BenchError
from bench.portions import object_part
from bench.reports import Progress, Row
from bench.variants import chosen
from index.batches import Matches, ObjectBatch
from index.contracts import ClauseIndex

_TRIAL = 2_000
"""Subscriptions of the run that compiles kernels and tells how long a large one would take."""
_BATCH = 1_000
"""Objects a call."""
_SINGLES = 2_000
_MATCHING_SHARE = 0.3
"""Of the time of a run, for each of the two ways of matching."""

_MAIN = ("ap-tree", "iq-tree-subscriptions", "rq-tree", "inverted-grid")
_OURS = tuple(name for name in VARIANTS if not name.startswith("ap-tree-"))


class Setting(NamedTuple):
    """One point of an experiment."""

    variant: str
    label: dict[str, object]
    parameters: ApTreeParameters


def _sweep(
    names: tuple[str, ...], base: ApTreeParameters, field: str, values: Sequence[object], **more: object
) -> list[Setting]:
    """Vary one field; more of them may follow it."""
    settings = []
    for value in values:
        fields = {field: value, **{name: value for name, follows in more.items() if follows == field}}
        fixed = {name: one for name, one in more.items() if one != field}
        parameters = replace(base, **cast("Any", {**fixed, **fields}))
        label: dict[str, object] = {field: value, "x": field, "y": "us_per_object_batch"}
        settings += [Setting(name, label, parameters) for name in names]
    return settings


def _figure_11(base: ApTreeParameters) -> list[Setting]:
    names = (
        *("ap-tree", "ap-tree-dp", "ap-tree-kpriority", "ap-tree-spriority", "ap-tree-trie-qd"),
        "ap-tree-rarest-first",
    )
    small = replace(base, area_min=0.00001, area_max=0.00001)
    return [Setting(name, {}, small) for name in names]


def _figure_13(base: ApTreeParameters) -> list[Setting]:
    return _sweep(_MAIN, base, "keywords_max", (1, 2, 3, 4, 5), keywords_min="keywords_max")


def _figure_14(base: ApTreeParameters) -> list[Setting]:
    areas = (1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 1e-1)
    return _sweep(_MAIN, base, "area_max", areas, area_min="area_max")


def _figure_15(base: ApTreeParameters) -> list[Setting]:
    sizes = [max(1, base.subscriptions * share // 20) for share in (1, 5, 10, 20)]
    return _sweep(_MAIN, base, "subscriptions", sizes)


def _figure_17(base: ApTreeParameters) -> list[Setting]:
    names = (*_MAIN, "ap-tree-nr")
    return _sweep(names, base, "first_share", (0.1, 0.3, 0.5, 0.7, 0.9))


def _figure_18(base: ApTreeParameters) -> list[Setting]:
    fields = {"keywords_min": "keywords_max", "is_general": True}
    return _sweep(_MAIN, base, "keywords_max", (3, 4, 5, 6, 7), **fields)


def _peers(base: ApTreeParameters) -> list[Setting]:
    return [
        Setting(name, {"side_max": side}, replace(base, side_max=side))
        for side in (0.01, 0.1)
        for name in _OURS
    ]


EXPERIMENTS: dict[str, Callable[[ApTreeParameters], list[Setting]]] = {
    "figure-10a": lambda base: _sweep(("ap-tree",), base, "fanout", (50, 100, 200, 400, 800)),
    "figure-10b": lambda base: _sweep(("ap-tree",), base, "leaf_max", (5, 20, 40, 100, 400)),
    "figure-11": _figure_11,
    "figure-12": lambda base: [Setting(name, {}, base) for name in _MAIN],
    "figure-13": _figure_13,
    "figure-14": _figure_14,
    "figure-15": _figure_15,
    "figure-16": lambda base: _sweep(
        ("ap-tree",), base, "theta_kl", (0.0001, 0.001, 0.01, 0.1, 0.5), first_share=0.2
    ),
    "figure-17": _figure_17,
    "figure-18": _figure_18,
    "peers": _peers,
}
"""By name. `rebuild` is the histogram of `bench.ap_tree.rebuild`."""


def measure(
    name: str,
    data: Dataset,
    parameters: ApTreeParameters,
    budget_s: float,
    progress: Progress,
    variants: Mapping[str, Make] = VARIANTS,
) -> Row:
    """Measure one of some variants on one workload.

    It is measured with fewer subscriptions, by halves, if building it would take longer than the time.
    """
    trial = draw(data, replace(parameters, subscriptions=min(_TRIAL, parameters.subscriptions)))
    for _ in range(2):  # twice, for the first compiles
        built = build(variants[name], name, data, trial, parameters, lambda *_: None)
        built.clause_index.match(object_part(trial.arrivals, 0, min(100, len(trial.arrivals))))
    count = parameters.subscriptions
    while count > _TRIAL and built.built_s / trial.subscriptions * count > budget_s:
        count //= 2
    parameters = replace(parameters, subscriptions=count)
    workload = draw(data, parameters)
    index, built_s, insertions = build(variants[name], name, data, workload, parameters, progress)
    objects = workload.arrivals
    before = index.candidate_count
    batch_us, batch = _timed(index, objects, _BATCH, budget_s, progress)
    candidates = index.candidate_count - before
    single_us, single = _timed(
        index, object_part(objects, 0, min(_SINGLES, len(objects))), 1, budget_s, progress
    )
    audit = ApTreeAudit(workload, parameters.audited)
    results = len(batch.ids)
    row: Row = {
        "subscriptions": count,
        "objects": len(objects),
        "us_per_object_median": round(float(np.median(single_us)), 3),
        "us_per_object_p99": round(float(np.quantile(single_us, 0.99)), 3),
        "us_per_object_mean": round(float(np.mean(single_us)), 3),
        "us_per_object_batch": round(float(np.mean(batch_us)), 3),
        "results_per_object": round(results / max(1, len(batch.offsets) - 1), 3),
        "candidates_per_result": round(candidates / max(1, results), 3),
        "bytes_per_subscription": round(index.memory_bytes() / count, 1),
        "build_s": round(built_s, 3),
        "clauses": len(workload.required),
        "lists_audited": 2 * len(audit.expected),
        "mismatches": audit.mismatches(batch) + audit.mismatches(single),
    }
    if insertions is not None:
        row |= insertions.figures()
    return row


def _timed(
    index: ClauseIndex,
    objects: ObjectBatch,
    batch: int,
    budget_s: float,
    progress: Progress,
) -> tuple[list[float], Matches]:
    """Match objects until all are or the time is up; return microseconds an object of each call."""
    times_us: list[float] = []
    counts = [np.zeros(1, dtype=np.int64)]
    ids = [np.empty(0, dtype=np.int64)]
    deadline = time.perf_counter() + budget_s * _MATCHING_SHARE
    for start in range(0, len(objects), batch):
        part = object_part(objects, start, min(start + batch, len(objects)))
        began = time.perf_counter()
        found = index.match(part)
        ended = time.perf_counter()
        times_us.append(1e6 * (ended - began) / len(part))
        counts.append(np.diff(found.offsets))
        ids.append(found.ids)
        if ended > deadline:
            break
    progress("matched", len(objects), len(objects))
    return times_us, Matches(np.cumsum(np.concatenate(counts)), np.concatenate(ids))


def run(
    progress: Progress,
    *,
    experiments: Sequence[str],
    variants: Sequence[str],
    data: Sequence[str],
    budget_s: float,
    **shape: Any,  # noqa: ANN401
) -> list[Row]:
    """Run experiments on data sets; `shape` are fields of ApTreeParameters.

    Raises
    ------
    BenchError
        If an experiment, a variant or a data set is not known, or a file is not there.
    """
    known = [*EXPERIMENTS, "rebuild"]
    for experiment in experiments:
        if experiment not in known:
            raise BenchError(f"experiment is {experiment!r}, must be one of {', '.join(known)}")
    wanted = chosen(variants, VARIANTS)
    base = ApTreeParameters(**shape)
    rows: list[Row] = []
    for name in data:
        source = SOURCES[name]()
        for experiment in experiments:
            if experiment == "rebuild":
                rows += rebuild_rows(source, base, progress)
                continue
            settings = [one for one in EXPERIMENTS[experiment](base) if one.variant in wanted]
            for number, setting in enumerate(settings):
                progress(experiment, number, len(settings))
                row: Row = {"skipped": why_not(setting.variant), "lists_audited": 0, "mismatches": 0}
                if row["skipped"] is None:
                    row = measure(setting.variant, source, setting.parameters, budget_s, progress)
                rows.append(
                    {
                        "experiment": experiment,
                        "variant": setting.variant,
                        "data": source.name,
                        **setting.label,
                        **row,
                    }
                )
            progress(experiment, len(settings), len(settings))
    return rows
