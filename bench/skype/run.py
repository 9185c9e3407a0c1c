"""Measure sliding windows.

A system is a subscription index, a policy of buffers and a message index, in the engine of the server.
The window is filled, then all buffers through IQF+; from then on messages arrive, several at once, and as
many expire. Kernels are compiled before.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, cast

import numpy as np

from bench.benchmark import Benchmark, Estimate, Progress, Row, silent
from bench.datasets import source
from bench.skype.experiments import SkypeParameters
from bench.skype.workload import SkypeAudit, SkypeWorkload
from engine import Engine, EngineOptions, Positions
from engine.contracts import STATIONARY
from engine.options import StationaryPolicy
from engine.stationary.matcher import StationaryMatcher, StationarySpecs
from index.catalogue import OBJECT_INDEXES, SUBSCRIPTION_INDEXES
from index.contracts import SubscriptionIndex
from index.published.igpt import Igpt
from index.square import Square
from index.tables.growth import reserved

_FILL = 20_000
"""Messages in a call that fills the window, and buffers in a call that fills them."""
_TRIAL = 1_000
"""Subscriptions and messages of the run that compiles kernels."""
_TRIAL_SECONDS = 10


class System(NamedTuple):
    """A measured system."""

    subscriptions: str
    policy: StationaryPolicy
    messages: str


SYSTEMS = {
    "ours": System("sq-plus-tree", StationaryPolicy.COST, "iqf-plus"),
    "igpt-cskyband": System("igpt", StationaryPolicy.CSKYBAND, "iqf-plus"),
    "igpt-skyband": System("igpt", StationaryPolicy.SKYBAND, "iqf-plus"),
    "igpt-kmax": System("igpt", StationaryPolicy.KMAX, "iqf-plus"),
    "ipt-cskyband": System("ipt", StationaryPolicy.CSKYBAND, "iqf-plus"),
    "ciq-cskyband": System("ciq", StationaryPolicy.CSKYBAND, "iqf-plus"),
    "ciq-kmax": System("ciq", StationaryPolicy.KMAX, "iqf-plus"),
    "igpt-cost": System("igpt", StationaryPolicy.COST, "iqf-plus"),
    "sq-plus-tree-cskyband": System("sq-plus-tree", StationaryPolicy.CSKYBAND, "iqf-plus"),
    "igpt-cskyband-iq-tree": System("igpt", StationaryPolicy.CSKYBAND, "iq-tree"),
    "igpt-cskyband-ir-tree": System("igpt", StationaryPolicy.CSKYBAND, "ir-tree"),
}
"""Systems by name: subscription index, buffer policy and message index."""


def subscription_index(system: System, parameters: SkypeParameters, square: Square) -> SubscriptionIndex:
    """Create the subscription index of a system."""
    if system.subscriptions == "igpt":
        return Igpt(square, groups=parameters.groups)
    return SUBSCRIPTION_INDEXES[system.subscriptions](square)


class SkypeRun:
    """Run one system on one workload.

    Parameters
    ----------
    system
        The measured system.
    workload
        Messages and subscriptions.
    progress
        Function that receives the progress.
    """

    def __init__(self, system: System, workload: SkypeWorkload, progress: Progress) -> None:
        self.workload = workload
        self.audit = SkypeAudit(workload)
        self.arrived, self.expired, self.changes = 0, 0, 0
        self.arriving_s, self.expiring_s = 0.0, 0.0
        self._system = system
        self._progress = progress
        make = partial(subscription_index, system, workload.parameters, workload.square)
        self.engine = Engine(
            EngineOptions(
                object_index=OBJECT_INDEXES["iqf-plus"],
                subscription_index=make,
                weighted_index=make,
                stationary=system.policy,
                stationary_share=workload.parameters.share,
                stationary_factor=workload.parameters.factor,
                maxdist_m=workload.maxdist_m,
            ),
            {STATIONARY: StationaryMatcher},
        )
        self.matcher = cast("StationaryMatcher", self.engine.matchers[STATIONARY])
        began_s = time.perf_counter()
        self._fill()
        self.build_s = time.perf_counter() - began_s
        self.refills_before = self.matcher.refills

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
        self.matcher.subscribe(workload.handles, StationarySpecs(workload.interests, k))
        for start in range(0, count, _FILL):
            part = slice(start, min(start + _FILL, count))
            positions = Positions(workload.handles[part], workload.x_m[part], workload.y_m[part])
            self.audit.record(engine.evaluate(positions))
            self._progress("buffers filled", part.stop, count)
        if self._system.messages != "iqf-plus":
            self._take_other_message_index()

    def _take_other_message_index(self) -> None:
        """Replace the message index that filled buffers by the one of the system."""
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
        """Let messages arrive and expire until all have, or the time is over."""
        workload = self.workload
        first = workload.parameters.window
        gone = 0
        for start, stop, now_ms in workload.chunks():
            began_s = time.perf_counter()
            emitted = [
                self.engine.publish(workload.part(start, stop), workload.expiry_ms[start:stop]).changes
            ]
            published_s = time.perf_counter()
            due = self.engine.advance(now_ms, on_changes=emitted.append)
            expired_s = time.perf_counter()
            self.arriving_s += published_s - began_s
            self.expiring_s += expired_s - published_s
            self.arrived += stop - start
            self.expired += len(due)
            self.changes += sum(map(len, emitted))
            self.audit.record(emitted[0])
            self.audit.forget(gone, gone + len(due))
            for changes in emitted[1:]:
                self.audit.record(changes)
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
        """Return the measurements as columns."""
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
            "refills_per_message": round((self.matcher.refills - self.refills_before) / arrived, 3),
            "buffer_size": round(float(rows["entry_count"].sum()) / max(1, len(self.matcher)), 1),
            "bytes_per_subscription": round(index_bytes / parameters.subscriptions, 1),
            "memory_mb": round(self.engine.memory_bytes() / 1e6, 1),
            "build_s": round(self.build_s, 1),
            "lists_audited": self.audit.lists,
            "mismatches": self.audit.mismatches,
        }


class SkypeBenchmark(Benchmark[SkypeParameters]):
    """Measure systems that maintain the results of stationary subscriptions."""

    VARIANTS = tuple(SYSTEMS)

    def __init__(self, points: Sequence[SkypeParameters], progress: Progress) -> None:
        super().__init__(points, progress)
        self.resources.enter_context(reserved())  # as in a server

    def trial(self, variant: str, parameters: SkypeParameters) -> Estimate:
        """Run a small workload. Large ones end when their time is over."""
        small = parameters.changed(
            subscriptions=min(_TRIAL, parameters.subscriptions),
            window=min(_TRIAL, parameters.window),
            messages=min(_TRIAL, parameters.messages),
            seconds=parameters.seconds and _TRIAL_SECONDS,
        )
        workload = SkypeWorkload(source(parameters.data), small)
        SkypeRun(SYSTEMS[variant], workload, silent).go(parameters.budget_s)
        return lambda _other: 0.0

    def measure(self, variant: str, parameters: SkypeParameters) -> list[Row]:
        """Fill the window and the buffers, then let messages arrive."""
        workload = SkypeWorkload(source(parameters.data), parameters)
        run = SkypeRun(SYSTEMS[variant], workload, self.progress)
        run.go(parameters.budget_s)
        return [run.figures()]
