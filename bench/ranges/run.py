"""Measure the report rates of devices with moving ranges, and the traffic to them.

Every second objects expire, objects are published, and every device moves and checks the objects that it
holds. There is no server process: the engine returns the changes that a server would send, and messages
are counted. Messages sent upon subscribing are not counted.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bench.audits import Audit, audit_seconds, sample
from bench.benchmark import Benchmark, Progress, Row
from bench.boolean_specs import boolean_of
from bench.datasets import source
from bench.ranges.devices import RangeDevices
from bench.ranges.experiments import RangesParameters
from bench.ranges.variants import VARIANTS, Variant
from bench.ranges.workload import RangesWorkload, draw
from bench.silence.experiments import DrivingParameters
from bench.silence.wire_sizes import WireSizes, wire_sizes
from bench.trajectories import offsets
from engine import Positions


class RangesRun:
    """Run one variant on one workload.

    Parameters
    ----------
    name, variant
        Name and parameters of the measured variant.
    workload, parameters
        The workload, and the size and shape of the run.
    """

    def __init__(
        self, name: str, variant: Variant, workload: RangesWorkload, parameters: DrivingParameters
    ) -> None:
        self._name = name
        self._workload = workload
        self._parameters = parameters
        self._chance = np.random.default_rng([parameters.seed, 43])
        data, drawn = workload.happens.data, workload.happens.drawn
        interests = replace(drawn.interests, keywords=workload.keywords)
        self.audit = Audit(replace(drawn, interests=interests), data.maxdist_m)
        self._engine = variant.make(data)
        objects, expiry_ms = workload.happens.arriving(0)
        self._engine.publish(objects, expiry_ms)
        self.audit.publish(objects)
        region = np.full(len(workload.handles), variant.region, dtype=np.int8)
        boolean_of(self._engine).subscribe(workload.handles, workload.specs._replace(region=region))
        self._engine.evaluate(Positions(workload.handles, *workload.positions(0)))
        self._engine.spent_s = 0.0
        self.devices: RangeDevices = variant.devices(self._engine, workload)

    def go(self, progress: Progress) -> None:
        """Let all seconds pass; audit at several of them."""
        seconds = self._parameters.seconds
        due = audit_seconds(seconds, self._parameters.audits)
        is_due = False
        for second in range(1, seconds + 1):
            self.audit.remove(self._engine.advance(1000 * second))
            objects, expiry_ms = self._workload.happens.arriving(second)
            if len(objects):
                self.audit.publish(objects)
                self.devices.learn(self._engine.publish(objects, expiry_ms))
            self.devices.move(second)
            is_due |= second in due
            if is_due and self.devices.is_sure(second):
                self._compare_sample(second)
                is_due = False
            progress(self._name, second, seconds)

    def _compare_sample(self, second: int) -> None:
        """Compare the results that some devices show with the oracle's, at their true positions."""
        x_m, y_m = self._workload.positions(second)
        radius_m, count = self._workload.radius_m, len(self._workload.handles)
        for handle in sample(count, self._parameters.audited, self._chance).tolist():
            row = handle - 1
            shown = self.devices.shown(row)
            if shown is not None:
                self.audit.compare_range(handle, shown, float(x_m[row]), float(y_m[row]), radius_m)

    def figures(self, sizes: WireSizes) -> Row:
        """Return the measurements, per device and hour."""
        device_seconds = len(self._workload.handles) * self._parameters.seconds
        return {
            **self.devices.traffic.figures(sizes, device_seconds),
            "server_us_per_device_s": round(1e6 * self._engine.spent_s / device_seconds, 3),
            "lists_audited": self.audit.lists,
            "mismatches": self.audit.mismatches,
        }


class RangesBenchmark(Benchmark[RangesParameters]):
    """Measure ways of keeping devices exact, for each radius."""

    VARIANTS = tuple(VARIANTS)

    def measure(self, variant: str, parameters: RangesParameters) -> list[Row]:
        """Run a variant on the workload of a radius."""

        def make() -> tuple[RangesWorkload, WireSizes]:
            data = source(parameters.data)
            offsets_m = offsets(parameters.trajectories, parameters.seconds, parameters.seed)
            drawn = draw(data, offsets_m, parameters, parameters.radius_m)
            return drawn, wire_sizes(data, drawn.happens.objects, parameters.seed)

        workload, sizes = self.kept("workload", parameters, make)
        run = RangesRun(variant, VARIANTS[variant], workload, parameters)
        run.go(self.progress)
        names = ("devices", "seconds", "objects", "arrivals_per_s", "expiries_per_s")
        return [{**{name: getattr(parameters, name) for name in names}, **run.figures(sizes)}]
