"""Draw the workload of the suite ranges: circles around moving devices, and changing objects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench.boolean_specs import circles, requiring
from bench.datasets import Dataset, keyword_sets
from bench.silence.experiments import DrivingParameters, SilenceParameters
from bench.silence.workload import SilenceWorkload, prepare
from engine.boolean.layout import BooleanSpecs
from engine.contracts import BOOLEAN, handle_of
from index.batches import Floats, Ints, KeywordLists

KEYWORDS_MAX = 2
"""Maximum number of keywords of an expression; an object must have all of them."""


@dataclass(frozen=True, slots=True)
class RangesWorkload:
    """The workload of all variants of one radius.

    Parameters
    ----------
    radius_m
        Radius of all ranges.
    happens
        Objects and trajectories.
    handles
        Handles of subscriptions, one a device.
    specs
        Specs of subscriptions.
    keywords
        Keywords of each expression.
    """

    radius_m: float
    happens: SilenceWorkload
    handles: Ints
    specs: BooleanSpecs
    keywords: KeywordLists

    def positions(self, second: int) -> tuple[Floats, Floats]:
        """Return the positions of devices at a second."""
        return self.happens.trajectories.at(second)


def draw(
    data: Dataset, offsets_m: Floats, parameters: DrivingParameters, radius_m: float
) -> RangesWorkload:
    """Draw a workload; except for the radius it is the same for all radii."""
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
    nowhere = np.zeros(len(rows))
    ranges = circles(nowhere, nowhere, radius_m, are_moving=True)
    return RangesWorkload(radius_m, happens, handles, requiring(keywords, ranges), keywords)
