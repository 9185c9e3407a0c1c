"""`bench skype`: skype.txt section 8.1, Figures 10 to 20 and Table 4.

A system is a subscription index, a policy of buffers and a message index, in the engine of the server.
The window is filled, then all buffers through IQF+; from then on messages come, some at once, and as many
expire. Kernels are compiled before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from bench.datasets import SOURCES, Dataset
from bench.errors import BenchError
from bench.reports import Progress, Row
from bench.skype.workload import SkypeAudit, SkypeParameters, SkypeWorkload
from bench.variants import chosen
from engine import Engine, EngineOptions, Positions
from engine.contracts import STANDING
from engine.options import StandingPolicy
from engine.standing.matcher import StandingMatcher, StandingSpecs
from index.baselines.igpt import Igpt
from index.catalogue import OBJECT_INDEXES, SUBSCRIPTION_INDEXES
from index.contracts import SubscriptionIndex
from index.square import Square
from index.tables.growth import reserve

_FILL = 20_000
"""Messages that fill the window, and buffers that are filled, at once."""
_TRIAL = 1_000
"""Subscriptions and messages of the run that compiles kernels."""


class System(NamedTuple):
    """What is measured."""

    subscriptions: str
    policy: StandingPolicy
    messages: str
    share: float = 0.95
    factor: int = 3
    groups: int = 10


SYSTEMS = {
    "ours": System("sq-plus-tree", StandingPolicy.COST, "iqf-plus"),
    "igpt-cskyband": System("igpt", StandingPolicy.CSKYBAND, "iqf-plus"),
    "igpt-skyband": System("igpt", StandingPolicy.SKYBAND, "iqf-plus"),
    "igpt-kmax": System("igpt", StandingPolicy.KMAX, "iqf-plus"),
    "ipt-cskyband": System("ipt", StandingPolicy.CSKYBAND, "iqf-plus"),
    "ciq-cskyband": System("ciq", StandingPolicy.CSKYBAND, "iqf-plus"),
    "ciq-kmax": System("ciq", StandingPolicy.KMAX, "iqf-plus"),
    "igpt-cost": System("igpt", StandingPolicy.COST, "iqf-plus"),
    "sq-plus-tree-cskyband": System("sq-plus-tree", StandingPolicy.CSKYBAND, "iqf-plus"),
    "igpt-cskyband-iq-tree": System("igpt", StandingPolicy.CSKYBAND, "iq-tree"),
    "igpt-cskyband-ir-tree": System("igpt", StandingPolicy.CSKYBAND, "ir-tree"),
}
"""By name: what finds subscriptions, and how much is held."""

_PUBLISHED = "igpt-cskyband"
_MAIN = (_PUBLISHED, "ciq-kmax", "ours")


class Setting(NamedTuple):
    """One point of an experiment."""

    variant: str
    label: dict[str, object]
    parameters: SkypeParameters
    system: System


def _each(base: SkypeParameters, names: Sequence[str]) -> list[Setting]:
    return [Setting(name, {}, base, SYSTEMS[name]) for name in names]


def _tuned(base: SkypeParameters, name: str, field: str, values: Sequence[object]) -> list[Setting]:
    """Vary one field of a system."""
    return [
        Setting(
            name,
            {"x": field, "y": "us_per_message", field: value},
            base,
            SYSTEMS[name]._replace(**cast("Any", {field: value})),
        )
        for value in values
    ]


def _sweep(base: SkypeParameters, field: str, values: Sequence[object]) -> list[Setting]:
    """Vary one field of the workload."""
    return [
        Setting(
            name,
            {"x": field, "y": "us_per_message", field: value},
            replace(base, **cast("Any", {field: value})),
            SYSTEMS[name],
        )
        for value in values
        for name in _MAIN
    ]


def _figure_10(base: SkypeParameters) -> list[Setting]:
    factors = _tuned(base, "igpt-kmax", "factor", (1, 2, 3, 4, 5, 6))
    shares = _tuned(base, "igpt-skyband", "share", (1.0, 0.95, 0.9, 0.85, 0.8, 0.75))
    return factors + shares + _tuned(base, _PUBLISHED, "factor", (1, 6))


_SHARES = (0.2, 0.4, 0.6, 0.8, 1.0)

EXPERIMENTS: dict[str, Callable[[SkypeParameters], list[Setting]]] = {
    "figure-10": _figure_10,
    "figure-11": lambda base: _tuned(base, _PUBLISHED, "groups", (5, 10, 20, 40)),
    "figure-12": lambda base: _each(base, (_PUBLISHED, "ipt-cskyband")),
    "figure-13": lambda base: _each(base, (_PUBLISHED, "ciq-cskyband", "ours")),
    "figure-14": lambda base: _each(base, (_PUBLISHED, "igpt-kmax", "igpt-skyband", "ours")),
    "figure-15": lambda base: _sweep(base, "keywords", (1, 2, 3, 4, 5)),
    "figure-16": lambda base: _sweep(base, "k", (10, 20, 30, 40, 50)),
    "figure-17": lambda base: _sweep(
        base, "subscriptions", [round(base.subscriptions * share) for share in _SHARES]
    ),
    "figure-18": lambda base: _sweep(base, "window", [round(base.window * share) for share in _SHARES]),
    "figure-19": lambda base: _each(replace(base, zipf=True), _MAIN),
    "figure-20": lambda base: _sweep(
        replace(base, seconds=max(2, base.window // base.batch)), "k", (10, 30, 50)
    ),
    "line-up": lambda base: _each(base, tuple(SYSTEMS)),
}
"""By name. `figure-14` is Table 4 too."""


def subscription_index(system: System, square: Square) -> SubscriptionIndex:
    """Make the subscription index of a system."""
    if system.subscriptions == "igpt":
        return Igpt(square, groups=system.groups)
    return SUBSCRIPTION_INDEXES[system.subscriptions](square)


class SkypeRun:
    """One system on one workload.

    Parameters
    ----------
    system
        What is measured.
    workload
        What happens.
    progress
        Is told how far it is.
    """

    def __init__(self, system: System, workload: SkypeWorkload, progress: Progress) -> None:
        self.workload = workload
        self.audit = SkypeAudit(workload)
        self.arrived, self.expired, self.changes = 0, 0, 0
        self.arriving_s, self.expiring_s = 0.0, 0.0
        self._system = system
        self._progress = progress
        make = partial(subscription_index, system, workload.square)
        self.engine = Engine(
            EngineOptions(
                object_index=OBJECT_INDEXES["iqf-plus"],
                subscription_index=make,
                weighted_index=make,
                standing=system.policy,
                standing_share=system.share,
                standing_factor=system.factor,
                maxdist_m=workload.maxdist_m,
            ),
            {STANDING: StandingMatcher},
        )
        self.matcher = cast("StandingMatcher", self.engine.matchers[STANDING])
        began_s = time.perf_counter()
        self._fill()
        self.build_s = time.perf_counter() - began_s
        self.refills_begun = self.matcher.refills

    def _fill(self) -> None:
        workload, engine, parameters = self.workload, self.engine, self.workload.parameters
        engine.begin_weights(1, workload.weights * workload.weights)
        while engine.reweigh(_FILL) is not None:
            pass
        for start in range(0, parameters.window, _FILL):
            stop = min(start + _FILL, parameters.window)
            engine.publish(workload.part(start, stop), workload.expiry_ms[start:stop])
            self._progress("window filled", stop, parameters.window)
        count = len(workload.handles)
        k = np.full(count, parameters.k, dtype=np.int64)
        self.matcher.subscribe(workload.handles, StandingSpecs(workload.interests, k))
        for start in range(0, count, _FILL):
            part = slice(start, min(start + _FILL, count))
            positions = Positions(workload.handles[part], workload.x_m[part], workload.y_m[part])
            self.audit.tell(engine.evaluate(positions))
            self._progress("buffers filled", part.stop, count)
        if self._system.messages != "iqf-plus":
            self._take_other_message_index()

    def _take_other_message_index(self) -> None:
        """Let the message index of the system take the place of the one that filled buffers."""
        objects = self.engine.objects
        index = OBJECT_INDEXES[self._system.messages]()
        for start in range(0, self.workload.parameters.window, _FILL):
            stop = min(start + _FILL, self.workload.parameters.window)
            part = self.workload.part(start, stop)
            index.insert(
                replace(part, norm2=objects.weights.norms(part.keywords, objects.weights.current))
            )
            self._progress(f"{self._system.messages} filled", stop, self.workload.parameters.window)
        objects.index = index

    def go(self, budget_s: float) -> None:
        """Let messages come and expire until all have, or time is over."""
        workload = self.workload
        first = workload.parameters.window
        gone = 0
        for start, stop, now_ms in workload.portions():
            began_s = time.perf_counter()
            told = [
                self.engine.publish(workload.part(start, stop), workload.expiry_ms[start:stop]).changes
            ]
            published_s = time.perf_counter()
            due = self.engine.advance(now_ms, on_changes=told.append)
            expired_s = time.perf_counter()
            self.arriving_s += published_s - began_s
            self.expiring_s += expired_s - published_s
            self.arrived += stop - start
            self.expired += len(due)
            self.changes += sum(map(len, told))
            self.audit.tell(told[0])
            self.audit.forget(gone, gone + len(due))
            for changes in told[1:]:
                self.audit.tell(changes)
            gone += len(due)
            self._progress("messages", stop - first, workload.parameters.messages)
            if self.arriving_s + self.expiring_s > budget_s:
                break
        held = {
            handle: set(self.engine.held(handle)[0].tolist())
            for handle in workload.handles[self.audit.rows].tolist()
        }
        self.audit.compare(held, gone, first + self.arrived)

    def figures(self) -> Row:
        """Summarise."""
        parameters = self.workload.parameters
        arrived, expired = max(1, self.arrived), max(1, self.expired)
        amp_us, emp_us = 1e6 * self.arriving_s / arrived, 1e6 * self.expiring_s / expired
        rows = self.matcher.subscriptions.rows
        index_bytes = self.matcher.tables.indexes.memory_bytes()
        return {
            "subscriptions": parameters.subscriptions,
            "objects": parameters.window,
            "k_max": parameters.k,
            "messages": self.arrived,
            "resampled": self.workload.resampled,
            "amp_us": round(amp_us, 1),
            "emp_us": round(emp_us, 1),
            "us_per_message": round(amp_us + emp_us, 1),
            "messages_per_s": round(arrived / (self.arriving_s + self.expiring_s)),
            "changes_per_message": round(self.changes / arrived, 1),
            "refills_per_message": round((self.matcher.refills - self.refills_begun) / arrived, 3),
            "buffer_size": round(float(rows["entry_count"].sum()) / max(1, len(self.matcher)), 1),
            "bytes_per_subscription": round(index_bytes / parameters.subscriptions, 1),
            "memory_mb": round(self.engine.memory_bytes() / 1e6, 1),
            "build_s": round(self.build_s, 1),
            "lists_audited": self.audit.lists,
            "mismatches": self.audit.mismatches,
        }


def measure(
    system: System, data: Dataset, parameters: SkypeParameters, budget_s: float, progress: Progress
) -> Row:
    """Measure a system on a workload."""
    trial = replace(
        parameters,
        subscriptions=min(_TRIAL, parameters.subscriptions),
        window=min(_TRIAL, parameters.window),
        messages=min(_TRIAL, parameters.messages),
        seconds=parameters.seconds and 10,
    )
    SkypeRun(system, SkypeWorkload(data, trial), lambda *_: None).go(budget_s)
    run = SkypeRun(system, SkypeWorkload(data, parameters), progress)
    run.go(budget_s)
    return run.figures()


def run(
    progress: Progress,
    *,
    experiments: Sequence[str],
    variants: Sequence[str],
    data: Sequence[str],
    budget_s: float,
    **shape: Any,  # noqa: ANN401
) -> list[Row]:
    """Run experiments on data sets; `shape` are SkypeParameters.

    Raises
    ------
    BenchError
        If an experiment, a variant or a data set is not known, or a file is not there.
    """
    for experiment in experiments:
        if experiment not in EXPERIMENTS:
            raise BenchError(f"experiment is {experiment!r}, must be one of {', '.join(EXPERIMENTS)}")
    wanted = chosen(variants, SYSTEMS)
    reserve()  # as a server does
    base = SkypeParameters(**shape)
    rows: list[Row] = []
    for name in data:
        source = SOURCES[name]()
        for experiment in experiments:
            settings = [one for one in EXPERIMENTS[experiment](base) if one.variant in wanted]
            for number, setting in enumerate(settings):
                progress(experiment, number, len(settings))
                measured = measure(setting.system, source, setting.parameters, budget_s, progress)
                rows.append(
                    {
                        "experiment": experiment,
                        "variant": setting.variant,
                        "data": source.name,
                        **setting.label,
                        **measured,
                    }
                )
            progress(experiment, len(settings), len(settings))
    return rows
