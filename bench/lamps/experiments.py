"""The tables and figures of lamps.txt section 7, each a list of runs.

Every run is one variant at one setting; its row names both. A variant that would not finish in its time
runs smaller, by halves, and its row says at which size; its audit and its figures are those of that size.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from bench.datasets import SOURCES, Dataset
from bench.errors import BenchError
from bench.lamps.run import WARM_UP_STEP_S, Lamps, LampsParameters, Variant
from bench.lamps.structures import STRUCTURES
from bench.local_matcher import LocalMatcher
from bench.reports import Progress, Row
from bench.trajectories import offsets
from bench.variants import chosen
from engine import CostModel
from index.batches import Floats
from index.catalogue import (
    DEFAULT_OBJECT_INDEX,
    DEFAULT_SUBSCRIPTION_INDEX,
    OBJECT_INDEXES,
    SUBSCRIPTION_INDEXES,
)
from safe_region.region import RegionMode
from safe_region.scoring import SET_SIMILARITIES, Similarity

TRIAL = 1_000
"""Subscriptions of the run that tells how long a large one would take."""
_TRIAL_WARM_UP_S = 4 * WARM_UP_STEP_S
"""Of that run; all of a long warm-up would take minutes where regions are polygons."""

_NOT_AHEAD = CostModel(ahead=0.0)


def variants(data: Dataset) -> dict[str, Variant]:
    """Return the systems of table 3, and ours with anchored regions, by name."""
    square = data.square()

    def make(
        name: str, subscription_index: str = "sq-tree", object_index: str = "iqf", **others: object
    ) -> Variant:
        return Variant(
            name,
            RegionMode.ELLIPSE,
            OBJECT_INDEXES[object_index],
            lambda: SUBSCRIPTION_INDEXES[subscription_index](square),
            **others,  # type: ignore[arg-type]
        )

    def anchored(name: str, extra: int | None, costs: CostModel = _NOT_AHEAD) -> Variant:
        index = SUBSCRIPTION_INDEXES[DEFAULT_SUBSCRIPTION_INDEX]
        objects = OBJECT_INDEXES[DEFAULT_OBJECT_INDEX]
        mode = RegionMode.ANCHORED
        return Variant(name, mode, objects, lambda: index(square), extra, costs=costs)

    found = [
        make("naive", "naive", "naive", has_regions=False),
        make("lamps-without-asr", matcher=LocalMatcher),
        make("lamps-without-sq-tree", "naive"),
        make("lamps-without-iqf", object_index="iq-tree"),
        make("lamps"),
        *(anchored(f"anchored-{extra}", extra) for extra in (0, 5, 10)),
        anchored("anchored-cost", None),
        anchored("anchored-cost-ahead", None, CostModel()),
    ]
    return {variant.name: variant for variant in found}


class Setting(NamedTuple):
    """One point of an experiment."""

    variant: str
    label: dict[str, object]
    parameters: LampsParameters


def table_3(base: LampsParameters) -> list[Setting]:
    """Average update time of each method, when regions are of all ages (`LampsParameters.warm_up_s`)."""
    names = ("naive", "lamps-without-asr", "lamps-without-sq-tree", "lamps-without-iqf", "lamps")
    return [Setting(name, {}, base) for name in names]


def figure_10(base: LampsParameters) -> list[Setting]:
    """Time to make a region: LSR and ASR."""
    label: dict[str, object] = {"x": "variant", "y": "region_us"}
    return [Setting(name, label, base) for name in ("lamps-without-asr", "lamps")]


def _shown(value: object) -> object:
    return value.name.lower() if isinstance(value, Similarity) else value


def _sweep(
    names: tuple[str, ...], base: LampsParameters, field: str, values: tuple[object, ...]
) -> list[Setting]:
    return [
        Setting(
            name,
            {field: _shown(value), "x": field, "y": "update_ms_median"},
            replace(base, **{field: cast("Any", value)}),
        )
        for value in values
        for name in names
    ]


_TWO = ("lamps-without-sq-tree", "lamps")
_THREE = ("lamps-without-sq-tree", "lamps-without-iqf", "lamps")


def _shares(whole: int) -> tuple[int, ...]:
    return tuple(max(1, whole * share // 10) for share in (2, 4, 6, 8, 10))


def anchored(base: LampsParameters) -> list[Setting]:
    """Beyond the paper: the same ticks with anchored regions and the SQ+-tree."""
    names = ("lamps", "anchored-0", "anchored-5", "anchored-10", "anchored-cost", "anchored-cost-ahead")
    return [Setting(name, {}, base) for name in names]


EXPERIMENTS: dict[str, Callable[[LampsParameters], list[Setting]]] = {
    "table-3": table_3,
    "anchored": anchored,
    "figure-10": figure_10,
    "figure-12": lambda base: _sweep(_TWO, base, "k_max", (5, 10, 15, 20)),
    "figure-13": lambda base: _sweep(_TWO, base, "subscriptions", _shares(base.subscriptions)),
    "figure-14": lambda base: _sweep(_TWO, base, "objects", _shares(base.objects)),
    "figure-15": lambda base: _sweep(_THREE, base, "updates", (50, 100, 150, 200)),
    "figure-16": lambda base: _sweep(_THREE, base, "expired_share", (0.0, 0.1, 0.2, 0.3)),
    "figure-17": lambda base: _sweep(_THREE, base, "alpha", (0.1, 0.3, 0.5, 0.7, 0.9)),
    "figure-18": lambda base: _sweep(("lamps",), base, "similarity", SET_SIMILARITIES),
}
"""By name. Table 4 is `memory_bytes` of table 3; figures 9 and 11 are in `bench.lamps.structures`."""


class Bench:
    """Runs settings on one data set with one kind of trajectories.

    Parameters
    ----------
    data
        One of `datasets.SOURCES`.
    trajectories
        "roads" or "gps".
    seconds
        The longest run, warm-up included.
    seed
        Of the roads.
    budget_s
        How long one run may take, building included.
    """

    def __init__(self, data: str, trajectories: str, seconds: int, seed: int, budget_s: float) -> None:
        self.data = SOURCES[data]()
        self._offsets_m: Floats = offsets(trajectories, seconds, seed)
        self._variants = variants(self.data)
        self._common = {"data": data, "trajectories": trajectories}
        self._budget_s = budget_s

    def require_variants(self, names: Sequence[str]) -> None:
        """Raise BenchError if a variant is not known."""
        chosen(names, self._variants)

    def rows(self, experiment: str, settings: list[Setting], progress: Progress) -> Iterator[Row]:
        """Run settings; yield a row for each as it is done."""
        for number, setting in enumerate(settings):
            progress(experiment, number, len(settings))
            yield {
                "experiment": experiment,
                "variant": setting.variant,
                **self._common,
                **setting.label,
                **self._run(setting, progress),
            }
        progress(experiment, len(settings), len(settings))

    def _run(self, setting: Setting, progress: Progress) -> Row:
        variant = self._variants[setting.variant]
        parameters = self._affordable(variant, setting.parameters)
        lamps = Lamps(variant, self.data, self._offsets_m, parameters)
        lamps.build(progress)
        lamps.warm_up(progress)
        lamps.run(progress, max(1.0, self._budget_s - lamps.build_s - lamps.warm_up_s))
        return _figures(lamps, parameters)

    def _affordable(self, variant: Variant, parameters: LampsParameters) -> LampsParameters:
        """Halve the size until what a trial run extrapolates to fits the time.

        The cost of most variants grows with subscriptions; that of the naive indexes with objects, too.
        """
        if parameters.subscriptions <= TRIAL:
            return parameters
        # Twice, for the first run compiles.
        warm_up_s = min(parameters.warm_up_s, _TRIAL_WARM_UP_S)
        trial = replace(parameters, subscriptions=TRIAL, ticks=2, audited=2, warm_up_s=warm_up_s)
        for _ in range(2):
            lamps = Lamps(variant, self.data, self._offsets_m, trial)
            lamps.build(lambda _stage, _done, _total: None)
            lamps.warm_up(lambda _stage, _done, _total: None)
            lamps.run(lambda _stage, _done, _total: None, self._budget_s)
        warmed_up_s = lamps.warm_up_s * parameters.warm_up_s / max(1, warm_up_s)
        per_subscription_s = (lamps.build_subscriptions_s + warmed_up_s) / TRIAL
        per_tick_s = sum(part[-1] for part in lamps.ticks.parts_ms()) / 1000.0 / TRIAL
        size = parameters.subscriptions
        factor = 1
        while size > 2 * TRIAL:
            shrink = parameters.objects // factor / parameters.objects if variant.is_scan else 1.0
            needed = size * shrink * (per_subscription_s + parameters.ticks * per_tick_s)
            if needed <= self._budget_s:
                break
            size //= 2
            factor *= 2
        return replace(parameters, subscriptions=size, objects=parameters.objects // factor)


def _figures(lamps: Lamps, parameters: LampsParameters) -> Row:
    """Summarise a run. The first tick loads caches and is left out."""
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


def run(
    progress: Progress,
    *,
    experiments: Sequence[str],
    variants: Sequence[str],
    data: str,
    trajectories: str,
    similarity: str,
    budget_s: float,
    **shape: Any,  # noqa: ANN401
) -> list[Row]:
    """Run experiments; `shape` are fields of LampsParameters.

    Raises
    ------
    BenchError
        If an experiment or a variant is not known, or a file is not there.
    """
    known = [*EXPERIMENTS, *STRUCTURES]
    for experiment in experiments:
        if experiment not in known:
            raise BenchError(f"experiment is {experiment!r}, must be one of {', '.join(sorted(known))}")
    base = LampsParameters(similarity=Similarity[similarity.upper()], **shape)
    bench = Bench(data, trajectories, base.warm_up_s + base.ticks, base.seed, budget_s)
    bench.require_variants(variants)
    rows: list[Row] = []
    for experiment in experiments:
        if experiment in STRUCTURES:
            rows += STRUCTURES[experiment](bench.data, base, progress)
            continue
        settings = EXPERIMENTS[experiment](base)
        wanted = [one for one in settings if not variants or one.variant in variants]
        rows += bench.rows(experiment, wanted, progress)
    return rows
