"""Moving ranges, Figures 19 to 25 of ap-tree.txt; `bench.ap_plus.devices` has 26 and 27.

An index receives all subscriptions, then all objects. Then, at each timestamp, objects expire, new ones
are published, and some ranges move (`bench.ap_plus.moving_run`). Most objects and moves come in batches,
some one by one. Kernels are compiled before. A run that is too slow, including the building, is repeated
at half the size.
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
"""Subscriptions and objects of the run from which the time of larger ones is estimated."""


class MovingBenchmark(Benchmark[ApPlusParameters]):
    """Measure indexes of moving ranges."""

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
        """Return parameters with half as many subscriptions and objects; None if there are too few."""
        del variant
        if parameters.subscriptions <= _TRIAL:
            return None
        return parameters.changed(
            subscriptions=parameters.subscriptions // 2, objects=max(1, parameters.objects // 2)
        )

    def measure(self, variant: str, parameters: ApPlusParameters) -> list[Row]:
        """Let all timestamps pass; a small point has no deadline."""
        workload = self.workload(parameters)
        is_small = self.smaller(variant, parameters) is None
        deadline_s = np.inf if is_small else time.perf_counter() + parameters.budget_s
        run = MovingRun(variant, workload, deadline_s, self.progress)
        run.go()
        return [{"data": workload.name, **run.figures()}]


class PartsBenchmark(MovingBenchmark):
    """Measure the same, and the costs of an insertion and of a move that finds nothing: Figure 19."""

    def measure(self, variant: str, parameters: ApPlusParameters) -> list[Row]:
        """Run, and then measure the parts."""
        (row,) = super().measure(variant, parameters)
        return [row | parts(variant, self.workload(parameters))]
