"""`bench ap-plus`: ap-tree.txt section 5.2, Figures 19 to 25; `bench.ap_plus.devices` has 26 and 27.

An index is given all subscriptions, then all objects; then, at each timestamp, objects expire, others
come, and some ranges move. Most come and move in batches, some one by one. Kernels are compiled before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from bench.ap_plus.devices import DEVICE_EXPERIMENTS, DEVICE_VARIANTS, device_rows
from bench.ap_plus.drives import Drives, drives
from bench.ap_plus.workload import PERIOD_S, ApPlusAudit, ApPlusParameters, ApPlusWorkload
from bench.datasets import SOURCES, Dataset
from bench.errors import BenchError
from bench.portions import object_part
from bench.reports import Progress, Row
from bench.variants import chosen
from index.baselines.ap_plus_tree import ApPlusTree
from index.catalogue import MOVING_INDEXES
from index.contracts import MovingIndex

_TRIAL = 2_000
"""Subscriptions and objects of the run that compiles kernels and tells how long others would take."""
_FILL = 10_000
"""Objects that are published at once at the beginning."""

_PUBLISHED = ("ap-plus-tree", "iq-plus-tree", "rq-plus-tree", "ss-index", "kk-index")
_MAIN = (*_PUBLISHED, "pairs")
VARIANTS = (*(name for name in MOVING_INDEXES if name != "naive"), *DEVICE_VARIANTS)


class TooSlowError(Exception):
    """A run would take longer than it may."""


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
            {"x": "subscriptions", "y": "us_per_move_batch"},
            replace(base, subscriptions=subscriptions, objects=objects),
        )
        for subscriptions, objects in sizes
        for name in _MAIN
    ]


_Y = "us_per_move_batch"

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


def index_of(name: str, workload: ApPlusWorkload) -> MovingIndex:
    """Make an empty index."""
    if name == "ap-plus-tree":
        return ApPlusTree(workload.square, copies_max=workload.parameters.copies_max)
    return MOVING_INDEXES[name](workload.square)


class Times:
    """How long calls took: of batches together, of single rows one by one."""

    def __init__(self) -> None:
        self.spent_s = 0.0
        self.count = 0
        self._singles_s: list[float] = []
        self._batches_s = 0.0
        self._batched = 0

    def add(self, size: int, spent_s: float, count: int) -> None:
        """Note a call with so many rows; with single ones, `size` is 1."""
        self.spent_s += spent_s
        self.count += count
        if size == 1:
            self._singles_s.append(spent_s)
        else:
            self._batches_s += spent_s
            self._batched += count

    def single_us(self) -> float:
        """Return the median of single calls: arrays that grow would spoil a mean."""
        return round(1e6 * float(np.median(self._singles_s or [0.0])), 3)

    def batch_us(self) -> float:
        """Return the mean of a row in a batch."""
        return round(1e6 * self._batches_s / max(1, self._batched), 3)


class MovingRun:
    """One index on one workload.

    Parameters
    ----------
    name
        Of the index.
    workload
        What happens.
    deadline_s
        When it has to be ready, on the clock that `time.perf_counter` reads.
    progress
        Is told how far it is.
    """

    def __init__(
        self, name: str, workload: ApPlusWorkload, deadline_s: float, progress: Progress
    ) -> None:
        self.index = index_of(name, workload)
        self.audit = ApPlusAudit(workload)
        self.published = Times()
        self.moved = Times()
        self.changes = 0
        self.move_candidates = 0
        self.timestamps = 0
        self._name = name
        self._workload = workload
        self._deadline_s = deadline_s
        self._progress = progress
        self.build_s = self._build()

    def _build(self) -> float:
        workload, rows = self._workload, self._workload.ids - 1
        boxes = workload.boxes(rows, 0)
        self.audit.place(rows, boxes)
        began_s = time.perf_counter()
        self.index.pass_time(0)
        self.index.insert(workload.ids, boxes, workload.required)
        built_s = time.perf_counter() - began_s
        self._publish(0, _FILL)
        built_s += self.published.spent_s
        self.published = Times()
        return built_s

    def go(self) -> None:
        """Let all timestamps pass."""
        parameters = self._workload.parameters
        for timestamp in range(1, parameters.timestamps + 1):
            self.index.pass_time(1000 * PERIOD_S * timestamp)
            self._publish(timestamp, parameters.batch, parameters.singles)
            self._move(timestamp)
            self.timestamps = timestamp
            self._progress(f"{self._name}: timestamps", timestamp, parameters.timestamps)
            if timestamp in (1, parameters.timestamps // 2, parameters.timestamps):
                self.audit.compare(timestamp)

    def _portions(self, count: int, batch: int, singles: int) -> list[tuple[int, int, int]]:
        """Divide so many rows: some one by one, others in batches; each with the size of its batch."""
        first = min(count // 2, singles)
        found = [(row, row + 1, 1) for row in range(first)]
        return found + [(start, min(start + batch, count), batch) for start in range(first, count, batch)]

    def _publish(self, timestamp: int, batch: int, singles: int = 0) -> None:
        workload = self._workload
        arriving = workload.arriving(timestamp)
        count = arriving.stop - arriving.start
        for start, stop, size in self._portions(count, batch, singles):
            part = slice(arriving.start + start, arriving.start + stop)
            objects = object_part(workload.objects, part.start, part.stop)
            began_s = time.perf_counter()
            found = self.index.publish(objects, workload.expiry_ms[part])
            self.published.add(size, time.perf_counter() - began_s, len(objects))
            self.audit.matched(found.offsets, found.ids, objects.ids)
            self._look_at_the_clock()
            if timestamp == 0:
                self._progress(f"{self._name}: built", stop, count)

    def _move(self, timestamp: int) -> None:
        workload = self._workload
        rows = workload.moving(timestamp)
        boxes = workload.boxes(rows, timestamp)
        self.audit.place(rows, boxes)
        parameters = workload.parameters
        for start, stop, size in self._portions(len(rows), parameters.batch, parameters.singles):
            some, places = rows[start:stop], boxes.part(np.arange(start, stop))
            before = self.index.candidate_count
            began_s = time.perf_counter()
            entered, left = self.index.move(some + 1, places)
            self.moved.add(size, time.perf_counter() - began_s, len(some))
            self.move_candidates += self.index.candidate_count - before
            self.changes += len(entered.ids) + len(left.ids)
            self.audit.moved(some, left.offsets, left.ids, is_left=True)
            self.audit.moved(some, entered.offsets, entered.ids, is_left=False)
            self._look_at_the_clock()

    def _look_at_the_clock(self) -> None:
        if time.perf_counter() > self._deadline_s:
            raise TooSlowError

    def figures(self) -> Row:
        """Summarise."""
        parameters = self._workload.parameters
        moves = max(1, self.moved.count)
        memory = self.index.memory_bytes()
        return {
            "subscriptions": parameters.subscriptions,
            "objects": parameters.objects,
            "timestamps": self.timestamps,
            "us_per_message": self.published.single_us(),
            "us_per_message_batch": self.published.batch_us(),
            "us_per_move": self.moved.single_us(),
            "us_per_move_batch": self.moved.batch_us(),
            "move_s_per_timestamp": round(self.moved.spent_s / max(1, self.timestamps), 3),
            "changes_per_move": round(self.changes / moves, 3),
            "candidates_per_move": round(self.move_candidates / moves, 3),
            "bytes_per_pair": round(2 * memory / (parameters.subscriptions + parameters.objects), 1),
            "memory_mb": round(memory / 1e6, 1),
            "build_s": round(self.build_s, 3),
            "lists_audited": self.audit.lists,
            "mismatches": self.audit.mismatches,
        }


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
    for _ in range(2):  # twice, for the first compiles
        began_s = time.perf_counter()
        MovingRun(name, ApPlusWorkload(data, roads, trial), np.inf, lambda *_: None).go()
        spent_s = time.perf_counter() - began_s
    per_row_s = spent_s / trial.timestamps / (trial.subscriptions + trial.objects)
    while True:
        rows = parameters.subscriptions + parameters.objects
        is_small = parameters.subscriptions <= _TRIAL
        if is_small or per_row_s * rows * parameters.timestamps <= budget_s:
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


def parts(name: str, data: Dataset, roads: Drives, parameters: ApPlusParameters) -> Row:
    """Tell what the insertion of an object costs beside its matching, and a move that finds nothing."""
    workload = ApPlusWorkload(data, roads, parameters)
    rows = workload.ids - 1
    index = index_of(name, workload)
    index.pass_time(0)
    index.insert(workload.ids, workload.boxes(rows, 0), workload.required)
    moving = workload.moving(1)
    boxes = workload.boxes(moving, 1)
    began_s = time.perf_counter()
    for start in range(0, len(moving), parameters.batch):
        stop = min(start + parameters.batch, len(moving))
        index.move(moving[start:stop] + 1, boxes.part(np.arange(start, stop)))
    moved_s = time.perf_counter() - began_s
    matched_s, published_s = 0.0, 0.0
    for start in range(0, parameters.objects, parameters.batch):
        stop = min(start + parameters.batch, parameters.objects)
        objects = object_part(workload.objects, start, stop)
        began_s = time.perf_counter()
        index.match(objects)
        matched_s += time.perf_counter() - began_s
        began_s = time.perf_counter()
        index.publish(objects, workload.expiry_ms[start:stop])
        published_s += time.perf_counter() - began_s
    return {
        "us_per_insertion": round(1e6 * (published_s - matched_s) / parameters.objects, 3),
        "us_per_location_update": round(1e6 * moved_s / max(1, len(moving)), 3),
    }


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
                        measured |= parts(setting.variant, source, network, parameters)
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
