"""`bench ap-plus`: ap-tree.txt section 5.2, Figures 19 to 25; `bench.ap_plus.devices` has 26 and 27.

An index is given all subscriptions, then all objects; then, at each timestamp, objects expire, others
come, and some ranges move (`bench.ap_plus.moving_run`). Most come and move in batches, some one by one.
Kernels are compiled before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from bench.ap_plus.devices import DEVICE_EXPERIMENTS, DEVICE_VARIANTS, device_rows
from bench.ap_plus.drives import Drives, drives
from bench.ap_plus.moving_run import MovingRun, TooSlowError, parts
from bench.ap_plus.workload import ApPlusParameters, ApPlusWorkload
from bench.datasets import SOURCES, Dataset
from bench.errors import BenchError
from bench.reports import Progress, Row
from bench.variants import chosen
from index.catalogue import MOVING_INDEXES

_TRIAL = 2_000
"""Subscriptions and objects of the run that compiles kernels and tells how long others would take."""

_tried: set[str] = set()
"""Variants of which kernels have been compiled in this process."""

_PUBLISHED = ("ap-plus-tree", "iq-plus-tree", "rq-plus-tree", "ss-index", "kk-index")
_MAIN = (*_PUBLISHED, "pairs")
VARIANTS = (*(name for name in MOVING_INDEXES if name != "naive"), *DEVICE_VARIANTS)


class Setting(NamedTuple):
    """One point of an experiment."""

    variant: str
    label: dict[str, object]
    parameters: ApPlusParameters


def _each(names: Sequence[str], base: ApPlusParameters) -> list[Setting]:
    return [Setting(name, {}, base) for name in names]


def _sweep(base: ApPlusParameters, field: str, values: Sequence[object], y: str) -> list[Setting]:
    """Vary one field."""
    return [
        Setting(name, {field: value, "x": field, "y": y}, replace(base, **cast("Any", {field: value})))
        for value in values
        for name in _MAIN
    ]


def _figure_25(base: ApPlusParameters) -> list[Setting]:
    sizes = [(base.subscriptions * share // 5, base.objects * share // 5) for share in (1, 2, 3, 4, 5)]
    return [
        Setting(
            name,
            {"x": "subscriptions", "y": _Y},
            replace(base, subscriptions=subscriptions, objects=objects),
        )
        for subscriptions, objects in sizes
        for name in _MAIN
    ]


_Y = "us_per_move_in_all"

EXPERIMENTS: dict[str, Callable[[ApPlusParameters], list[Setting]]] = {
    "figure-19": lambda base: _each(_PUBLISHED, base),
    "figure-20": lambda base: _each(("ap-plus-tree", "ap-plus-k", "ap-plus-s"), base),
    "figure-21": lambda base: _each(_MAIN, base),
    "figure-22": lambda base: _sweep(base, "mobility", (0.1, 0.2, 0.4, 0.6, 0.8), "move_s_per_timestamp"),
    "figure-23": lambda base: _sweep(base, "velocity", (0.5, 1.0, 2.0, 3.0, 4.0), _Y),
    "figure-24": lambda base: _sweep(base, "area", (1e-8, 1e-6, 1e-4, 1e-2, 1e-1), _Y),
    "figure-25": _figure_25,
}
"""By name, those without devices."""


def measure(
    name: str,
    data: Dataset,
    roads: Drives,
    parameters: ApPlusParameters,
    budget_s: float,
    progress: Progress,
) -> Row:
    """Measure an index on one workload; with half as many subscriptions and objects if it is too slow.

    It is if all of the run, the building included, takes longer than the time.
    """
    trial = replace(
        parameters,
        subscriptions=min(_TRIAL, parameters.subscriptions),
        objects=min(_TRIAL, parameters.objects),
        timestamps=min(2, parameters.timestamps),
    )
    per_row_s = 0.0
    if name not in _tried or parameters.subscriptions > _TRIAL:  # what is small is not too slow
        _tried.add(name)
        for _ in range(2):  # twice, for the first compiles
            began_s = time.perf_counter()
            MovingRun(name, ApPlusWorkload(data, roads, trial), np.inf, lambda *_: None).go()
            spent_s = time.perf_counter() - began_s
        per_row_s = spent_s / trial.steps / (trial.subscriptions + trial.objects)
    while True:
        rows = parameters.subscriptions + parameters.objects
        is_small = parameters.subscriptions <= _TRIAL
        if is_small or per_row_s * rows * parameters.steps <= budget_s:
            workload = ApPlusWorkload(data, roads, parameters)
            deadline_s = np.inf if is_small else time.perf_counter() + budget_s
            try:
                run = MovingRun(name, workload, deadline_s, progress)
                run.go()
            except TooSlowError:
                progress(f"{name}: too slow", 1, 1)
            else:
                return run.figures()
        parameters = replace(
            parameters, subscriptions=parameters.subscriptions // 2, objects=parameters.objects // 2
        )


def run(
    progress: Progress,
    *,
    experiments: Sequence[str],
    variants: Sequence[str],
    data: Sequence[str],
    roads: Sequence[str],
    budget_s: float,
    **shape: Any,  # noqa: ANN401
) -> list[Row]:
    """Run experiments on all pairs of a data set and a road network; `shape` are ApPlusParameters.

    Raises
    ------
    BenchError
        If an experiment, a variant or a data set is not known, or a file is not there.
    """
    known = (*EXPERIMENTS, *DEVICE_EXPERIMENTS)
    for experiment in experiments:
        if experiment not in known:
            raise BenchError(f"experiment is {experiment!r}, must be one of {', '.join(known)}")
    wanted = chosen(variants, VARIANTS)
    base = ApPlusParameters(**shape)
    rows: list[Row] = []
    for road in roads:
        settings = {
            experiment: [one for one in EXPERIMENTS[experiment](base) if one.variant in wanted]
            for experiment in experiments
            if experiment in EXPERIMENTS
        }
        seconds = [one.parameters.seconds for some in settings.values() for one in some]
        network = drives(road, max(seconds, default=base.seconds), base.seed, progress)
        for name in data:
            source = SOURCES[name]()
            for experiment in experiments:
                if experiment in DEVICE_EXPERIMENTS:
                    rows += device_rows(experiment, source, network, base, wanted, progress)
            for experiment, some in settings.items():
                for number, setting in enumerate(some):
                    progress(experiment, number, len(some))
                    measured = measure(
                        setting.variant, source, network, setting.parameters, budget_s, progress
                    )
                    if experiment == "figure-19":
                        sizes = {key: measured[key] for key in ("subscriptions", "objects")}
                        parameters = replace(setting.parameters, **sizes)
                        workload = ApPlusWorkload(source, network, parameters)
                        measured |= parts(setting.variant, workload)
                    rows.append(
                        {
                            "experiment": experiment,
                            "variant": setting.variant,
                            "data": f"{source.name}-{network.name}",
                            **setting.label,
                            **measured,
                        }
                    )
                progress(experiment, len(some), len(some))
    return rows
