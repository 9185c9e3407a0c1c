"""The workload of the suite ranges: circles about devices on trajectories, objects that come and go."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench.datasets import Dataset, keyword_sets
from bench.silence.experiments import DrivingParameters, SilenceParameters
from bench.silence.workload import SilenceWorkload, prepare
from engine.boolean.layout import CIRCLE, BooleanSpecs, Ranges
from engine.contracts import BOOLEAN, handle_of
from engine.polygons import Rings
from index.batches import Boxes, Floats, Ints, KeywordLists
from safe_region.region import RegionMode

KEYWORDS_MAX = 2
"""Keywords of an expression, all of which an object must have: 1 to this."""


@dataclass(frozen=True, slots=True)
class RangesWorkload:
    """What happens, the same for all variants of one radius.

    Parameters
    ----------
    radius_m
        Of all ranges.
    happens
        Objects and trajectories.
    handles
        Of subscriptions, one a device.
    specs
        What they ask for.
    keywords
        Of each expression.
    """

    radius_m: float
    happens: SilenceWorkload
    handles: Ints
    specs: BooleanSpecs
    keywords: KeywordLists

    def positions(self, second: int) -> tuple[Floats, Floats]:
        """Return where devices are."""
        return self.happens.trajectories.at(second)


def draw(
    data: Dataset, offsets_m: Floats, parameters: DrivingParameters, radius_m: float
) -> RangesWorkload:
    """Draw a workload; for another radius the same one."""
    common = {name: getattr(parameters, name) for name in DrivingParameters.model_fields}
    happens = prepare(data, offsets_m, SilenceParameters(**common))
    chance = np.random.default_rng([parameters.seed, 41])
    rows = keyword_sets(happens.drawn.interests.keywords)
    counts = chance.integers(1, KEYWORDS_MAX + 1, len(rows)).tolist()
    keywords = KeywordLists.of(
        [
            np.sort(chance.choice(row, min(count, len(row)), replace=False)).astype(np.int32)
            for row, count in zip(rows, counts, strict=True)
        ]
    )
    handles = np.arange(1, len(rows) + 1, dtype=np.int64) + handle_of(BOOLEAN, 0)
    return RangesWorkload(radius_m, happens, handles, _specs(keywords, radius_m), keywords)


def _specs(keywords: KeywordLists, radius_m: float) -> BooleanSpecs:
    """Return circles that move, each with one clause."""
    count = len(keywords)
    nothing = np.zeros(count)
    ranges = Ranges(
        np.full(count, CIRCLE, dtype=np.int8),
        np.ones(count, dtype=np.bool_),
        nothing,
        nothing,
        np.full(count, radius_m),
        Boxes(nothing, nothing, nothing, nothing),
        Rings(np.zeros(count + 1, np.int64), np.zeros(1, np.int64), np.zeros(0), np.zeros(0)),
    )
    excluded = KeywordLists(np.zeros(count + 1, np.int64), np.zeros(0, np.int32))
    region = np.full(count, RegionMode.ANCHORED, dtype=np.int8)
    return BooleanSpecs(np.arange(count + 1, dtype=np.int64), keywords, excluded, ranges, region)
