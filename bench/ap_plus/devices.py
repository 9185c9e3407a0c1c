"""Figures 26 and 27 of `bench ap-plus`: what devices say and are sent, and how long the server works.

Elaps, which the paper compares with, is left out: it is not described there. `ap-plus-safe` finds its
matches with IQF+ and does the move of the AP+-Tree besides, so the time of the server is that of both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bench.ap_plus.drives import Drives
from bench.ap_plus.workload import PERIOD_S, ApPlusParameters
from bench.datasets import Dataset
from bench.ranges.run import RangesRun
from bench.ranges.variants import VARIANTS
from bench.ranges.workload import draw
from bench.reports import Progress, Row
from bench.silence.wire_sizes import wire_sizes
from bench.silence.workload import SilenceParameters

DEVICE_VARIANTS = ("ap-plus-periodic-30", "ap-plus-safe", "anchored-cost-ahead")
"""A position at every timestamp; safe regions of footnote 17; anchored ranges, as the server has them."""

_RADIUS_M = 500.0
_SHARES = (0.01, 0.03, 0.1)
"""Devices, as shares of the subscriptions of the other figures: each looks at its region every second."""
_RATES = (1.0, 2.0, 3.0, 4.0, 5.0)
"""Objects that come, as multiples of those of the other figures."""


class DeviceSetting(NamedTuple):
    """One point of an experiment, for each variant."""

    label: dict[str, object]
    devices: int
    arrivals_per_s: float


def _figure_26(base: ApPlusParameters) -> list[DeviceSetting]:
    counts = [max(10, round(base.subscriptions * share)) for share in _SHARES]
    return [DeviceSetting({"x": "devices"}, count, base.arrivals / PERIOD_S) for count in counts]


def _figure_27(base: ApPlusParameters) -> list[DeviceSetting]:
    count = max(10, round(base.subscriptions * _SHARES[0]))
    rates = [rate * base.arrivals / PERIOD_S for rate in _RATES]
    return [DeviceSetting({"x": "arrivals_per_s"}, count, rate) for rate in rates]


DEVICE_EXPERIMENTS: dict[str, Callable[[ApPlusParameters], list[DeviceSetting]]] = {
    "figure-26": _figure_26,
    "figure-27": _figure_27,
}


def device_rows(
    experiment: str,
    data: Dataset,
    roads: Drives,
    parameters: ApPlusParameters,
    wanted: list[str],
    progress: Progress,
) -> list[Row]:
    """Run the variants that are wanted at each point of an experiment."""
    offsets_m = np.stack([roads.x_m - roads.x_m[:, :1], roads.y_m - roads.y_m[:, :1]], axis=2)
    seconds = parameters.timestamps * PERIOD_S
    rows: list[Row] = []
    for setting in DEVICE_EXPERIMENTS[experiment](parameters):
        happening = SilenceParameters(
            devices=setting.devices,
            objects=parameters.objects,
            seconds=seconds,
            arrivals_per_s=setting.arrivals_per_s,
            expiries_per_s=setting.arrivals_per_s,
            seed=parameters.seed,
        )
        workload = draw(data, offsets_m[:, : seconds + 1], happening, _RADIUS_M)
        sizes = wire_sizes(data, workload.happens.objects, parameters.seed)
        for name in (one for one in DEVICE_VARIANTS if one in wanted):
            run = RangesRun(name, VARIANTS[name], workload, happening)
            run.go(progress)
            figures = run.figures(sizes)
            rows.append(
                {
                    "experiment": experiment,
                    "variant": name,
                    "data": f"{data.name}-{roads.name}",
                    **setting.label,
                    "devices": setting.devices,
                    "objects": parameters.objects,
                    "arrivals_per_s": round(setting.arrivals_per_s, 2),
                    **figures,
                    "bytes_per_device_hour": round(figures["bytes_up"] + figures["bytes_down"], 1),
                }
            )
    return rows
