"""Figures 26 and 27 of ap-tree.txt: the messages of devices, and the time that the server works.

Elaps, which the paper compares with, is left out: its own paper (Guo et al., SIGMOD 2015) was not at
hand. `ap-plus-safe` finds its matches with IQF+ and does the move of the AP+-Tree in addition, so the
time of the server is that of both.
"""

from __future__ import annotations

import numpy as np

from bench.ap_plus.drives import drives
from bench.ap_plus.experiments import PERIOD_S, ApPlusParameters
from bench.benchmark import Benchmark, Row
from bench.datasets import source
from bench.ranges.run import RangesRun
from bench.ranges.variants import VARIANTS
from bench.ranges.workload import RangesWorkload, draw
from bench.silence.experiments import SilenceParameters
from bench.silence.wire_sizes import WireSizes, wire_sizes

_RADIUS_M = 500.0


class DeviceBenchmark(Benchmark[ApPlusParameters]):
    """Positions at every timestamp; safe regions of footnote 17; the server's anchored ranges."""

    VARIANTS = ("ap-plus-periodic-30", "ap-plus-safe", "anchored-cost-ahead")

    def measure(self, variant: str, parameters: ApPlusParameters) -> list[Row]:
        """Let devices drive while objects are published and expire."""
        happening = SilenceParameters(
            devices=parameters.devices,
            objects=parameters.objects,
            seconds=parameters.timestamps * PERIOD_S,
            arrivals_per_s=parameters.arrivals_per_s,
            expiries_per_s=parameters.arrivals_per_s,
            seed=parameters.seed,
        )
        workload, sizes = self.kept("workload", parameters, lambda: self._workload(parameters, happening))
        run = RangesRun(variant, VARIANTS[variant], workload, happening)
        run.go(self.progress)
        figures = run.figures(sizes)
        return [
            {
                "data": f"{parameters.data}-{parameters.roads}",
                "devices": parameters.devices,
                "objects": parameters.objects,
                "arrivals_per_s": round(parameters.arrivals_per_s, 2),
                **figures,
                "bytes_per_device_hour": round(figures["bytes_up"] + figures["bytes_down"], 1),
            }
        ]

    def _workload(
        self, parameters: ApPlusParameters, happening: SilenceParameters
    ) -> tuple[RangesWorkload, WireSizes]:
        seconds = max(point.seconds for point in self.points)
        roads = drives(parameters.roads, seconds, parameters.seed)
        offsets_m = np.stack([roads.x_m - roads.x_m[:, :1], roads.y_m - roads.y_m[:, :1]], axis=2)
        data = source(parameters.data)
        workload = draw(data, offsets_m[:, : happening.seconds + 1], happening, _RADIUS_M)
        return workload, wire_sizes(data, workload.happens.objects, parameters.seed)
