"""Measure Lamps: the systems of Table 3, those with anchored regions, and the figures of a run."""

from __future__ import annotations

import statistics
from functools import partial

import numpy as np

from bench.benchmark import Benchmark, Estimate, Progress, Row, silent
from bench.datasets import source
from bench.lamps.experiments import LampsParameters
from bench.lamps.run import WARM_UP_STEP_S, Lamps, Variant
from bench.local_matcher import LocalMatcher
from bench.trajectories import offsets
from engine import CostModel
from index.catalogue import (
    DEFAULT_OBJECT_INDEX,
    DEFAULT_SUBSCRIPTION_INDEX,
    OBJECT_INDEXES,
    SUBSCRIPTION_INDEXES,
)
from safe_region.regions.region import RegionMode

TRIAL = 1_000
"""Subscriptions of the run from which the time of a large one is estimated."""
_TRIAL_WARM_UP_S = 4 * WARM_UP_STEP_S
"""Warm-up of that run; a full warm-up would take minutes where regions are polygons."""
_NOT_AHEAD = CostModel(ahead=0.0)


def _lamps(
    name: str, subscription_index: str = "sq-tree", object_index: str = "iqf", **others: object
) -> Variant:
    return Variant(
        name,
        RegionMode.ELLIPSE,
        OBJECT_INDEXES[object_index],
        SUBSCRIPTION_INDEXES[subscription_index],
        **others,  # type: ignore[arg-type]
    )


def _anchored(name: str, extra: int | None, costs: CostModel = _NOT_AHEAD) -> Variant:
    index = SUBSCRIPTION_INDEXES[DEFAULT_SUBSCRIPTION_INDEX]
    objects = OBJECT_INDEXES[DEFAULT_OBJECT_INDEX]
    return Variant(name, RegionMode.ANCHORED, objects, index, extra, costs=costs)


VARIANTS: dict[str, Variant] = {
    variant.name: variant
    for variant in (
        _lamps("naive", "naive", "naive", has_regions=False),
        _lamps("lamps-without-asr", matcher=LocalMatcher),
        _lamps("lamps-without-sq-tree", "naive"),
        _lamps("lamps-without-iqf", object_index="iq-tree"),
        _lamps("lamps"),
        *(_anchored(f"anchored-{extra}", extra) for extra in (0, 5, 10)),
        _anchored("anchored-cost", None),
        _anchored("anchored-cost-ahead", None, CostModel()),
    )
}
"""The systems of Table 3, and those with anchored regions, by name."""


class LampsBenchmark(Benchmark[LampsParameters]):
    """Measure the ticks of one variant on one workload."""

    VARIANTS = tuple(VARIANTS)

    def trial(self, variant: str, parameters: LampsParameters) -> Estimate:
        """Run a thousand subscriptions for two ticks."""
        warm_up_s = min(parameters.warm_up_s, _TRIAL_WARM_UP_S)
        small = parameters.changed(
            subscriptions=min(TRIAL, parameters.subscriptions), ticks=2, audited=2, warm_up_s=warm_up_s
        )
        lamps = self._run(variant, small, silent)
        return partial(_seconds, VARIANTS[variant], lamps, small, parameters.objects)

    def smaller(self, variant: str, parameters: LampsParameters) -> LampsParameters | None:
        """Return parameters with half as many subscriptions and objects; None if there are too few."""
        del variant
        if parameters.subscriptions <= 2 * TRIAL:
            return None
        return parameters.changed(
            subscriptions=parameters.subscriptions // 2, objects=max(1, parameters.objects // 2)
        )

    def measure(self, variant: str, parameters: LampsParameters) -> list[Row]:
        """Build, warm up, run."""
        return [figures(self._run(variant, parameters, self.progress), parameters)]

    def _run(self, variant: str, parameters: LampsParameters, progress: Progress) -> Lamps:
        seconds = max(one.warm_up_s + one.ticks for one in self.points)
        offsets_m = offsets(parameters.trajectories, seconds, parameters.seed)
        lamps = Lamps(VARIANTS[variant], source(parameters.data), offsets_m, parameters)
        lamps.build(progress)
        lamps.warm_up(progress)
        lamps.run(progress, max(1.0, parameters.budget_s - lamps.build_s - lamps.warm_up_s))
        return lamps


def _seconds(
    variant: Variant, lamps: Lamps, small: LampsParameters, objects: int, parameters: LampsParameters
) -> float:
    """Estimate the seconds of a run from a small one among `objects` objects.

    The cost of most variants grows with subscriptions; that of the naive indexes with objects, too.
    """
    warmed_up_s = lamps.warm_up_s * parameters.warm_up_s / max(1, small.warm_up_s)
    per_tick_s = sum(part[-1] for part in lamps.ticks.parts_ms()) / 1000.0
    shrink = parameters.objects / objects if variant.is_scan else 1.0
    spent_s = lamps.build_subscriptions_s + warmed_up_s + parameters.ticks * per_tick_s
    return parameters.subscriptions / small.subscriptions * shrink * spent_s


def figures(lamps: Lamps, parameters: LampsParameters) -> Row:
    """Return the measurements of a run. The first tick loads caches and is left out."""
    ticks = lamps.ticks
    row: Row = {"subscriptions": parameters.subscriptions, "objects": parameters.objects}
    total = [sum(parts) for parts in zip(*ticks.parts_ms(), strict=True)][1:]
    row["update_ms_mean"] = round(statistics.fmean(total), 3)
    row["update_ms_median"] = round(statistics.median(total), 3)
    row["update_ms_p95"] = round(float(np.quantile(total, 0.95)), 3)
    for name in ("generated", "expired", "moved"):
        times = getattr(ticks, f"{name}_ms")[1:]
        counts = getattr(ticks, f"{name}_count")[1:]
        row[f"{name}_ms_median"] = round(statistics.median(times), 3)
        row[f"{name}_ms_p95"] = round(float(np.quantile(times, 0.95)), 3)
        row[f"{name}_anchored_per_tick"] = round(statistics.fmean(counts), 1)
        row[f"{name}_us_per_anchored"] = round(1000.0 * sum(times) / max(1, sum(counts)), 2)
    row["build_s"] = round(lamps.build_s, 2)
    row["region_us"] = round(lamps.region_us(), 2)
    row["memory_bytes"] = lamps.memory_bytes()
    row["ticks"] = len(total)
    row["warm_up_s"] = parameters.warm_up_s
    row["lists_audited"] = lamps.audit.lists
    row["mismatches"] = lamps.audit.mismatches
    return row
