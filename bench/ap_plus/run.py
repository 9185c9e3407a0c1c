"""Ranges that move, Figures 19 to 25 of ap-tree.txt; `bench.ap_plus.devices` has 26 and 27.

An index is given all subscriptions, then all objects; then, at each timestamp, objects expire, others
come, and some ranges move (`bench.ap_plus.moving_run`). Most come and move in batches, some one by one.
Kernels are compiled before. A run that is too slow, the building included, is tried at half the size.
"""

from __future__ import annotations

import time

import numpy as np

from bench.ap_plus.drives import drives
from bench.ap_plus.experiments import ApPlusParameters
from bench.ap_plus.moving_run import MovingRun, parts
from bench.ap_plus.workload import ApPlusWorkload
from bench.benchmark import Benchmark, Estimate, Row, silent
from bench.datasets import source
from index.catalogue import MOVING_INDEXES

_TRIAL = 2_000
"""Subscriptions and objects of the run that tells how long others would take."""


class MovingBenchmark(Benchmark[ApPlusParameters]):
    """Indexes of ranges that move."""

    VARIANTS = tuple(name for name in MOVING_INDEXES if name != "naive")

    def workload(self, parameters: ApPlusParameters) -> ApPlusWorkload:
        """Draw a workload; all points have the same drives."""
        seconds = max(point.seconds for point in self.points)
        roads = drives(parameters.roads, seconds, parameters.seed)
        return ApPlusWorkload(source(parameters.data), roads, parameters)

    def trial(self, variant: str, parameters: ApPlusParameters) -> Estimate:
        """Run some subscriptions and objects for two timestamps."""
        small = parameters.changed(
            subscriptions=min(_TRIAL, parameters.subscriptions),
            objects=min(_TRIAL, parameters.objects),
            timestamps=min(2, parameters.timestamps),
        )
        began_s = time.perf_counter()
        MovingRun(variant, self.workload(small), np.inf, silent).go()
        spent_s = time.perf_counter() - began_s
        each_s = spent_s / small.steps / (small.subscriptions + small.objects)
        return lambda other: float(each_s * (other.subscriptions + other.objects) * other.steps)

    def smaller(self, variant: str, parameters: ApPlusParameters) -> ApPlusParameters | None:
        """Return half as many subscriptions and objects."""
        del variant
        if parameters.subscriptions <= _TRIAL:
            return None
        return parameters.changed(
            subscriptions=parameters.subscriptions // 2, objects=max(1, parameters.objects // 2)
        )

    def measure(self, variant: str, parameters: ApPlusParameters) -> list[Row]:
        """Let all timestamps pass; a small point takes the time that it takes."""
        workload = self.workload(parameters)
        is_small = self.smaller(variant, parameters) is None
        deadline_s = np.inf if is_small else time.perf_counter() + parameters.budget_s
        run = MovingRun(variant, workload, deadline_s, self.progress)
        run.go()
        return [{"data": workload.name, **run.figures()}]


class PartsBenchmark(MovingBenchmark):
    """The same, and what an insertion and a move that finds nothing cost: Figure 19."""

    def measure(self, variant: str, parameters: ApPlusParameters) -> list[Row]:
        """Run, and then measure the parts."""
        (row,) = super().measure(variant, parameters)
        return [row | parts(variant, self.workload(parameters))]
