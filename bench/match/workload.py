"""Draw the workload of the suite match: subscriptions with their reaches, and new objects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench.benchmark import Progress
from bench.datasets import Dataset, Subscriptions, distinct_subscriptions
from bench.match.experiments import MatchParameters
from bench.parts import interest_part, object_part, reach_part
from index.batches import Floats, InterestBatch, Ints, ObjectBatch, Ranking, ReachBatch
from index.published.iqf import IqfObjectIndex

CHUNK = 20_000
"""Rows between two steps of a progress bar."""


@dataclass(frozen=True, slots=True)
class MatchWorkload:
    """Subscriptions 1, 2, ..., each with its reach at its device's place, and live and new objects."""

    data: Dataset
    reaches: ReachBatch
    interests: InterestBatch
    live: ObjectBatch
    arrivals: ObjectBatch

    def first(self, count: int) -> MatchWorkload:
        """Return the same workload with the first subscriptions only."""
        reaches, interests = reach_part(self.reaches, 0, count), interest_part(self.interests, 0, count)
        return MatchWorkload(self.data, reaches, interests, self.live, self.arrivals)

    def __len__(self) -> int:
        return len(self.reaches)


def prepare(data: Dataset, parameters: MatchParameters, progress: Progress) -> MatchWorkload:
    """Draw a workload and compute its reaches."""
    chance = np.random.default_rng([parameters.seed, 17])
    drawn = distinct_subscriptions(
        data, parameters.subscriptions, parameters.k_max, parameters.text_similarity, chance
    )
    every = data.objects(parameters.objects + parameters.arrivals, 1, chance)
    live = object_part(every, 0, parameters.objects)
    index = IqfObjectIndex()
    for first in range(0, len(live), CHUNK):
        index.insert(object_part(live, first, first + CHUNK))
        progress("objects", min(first + CHUNK, len(live)), len(live))
    reach_m, reach_id = _reaches(index, drawn, parameters.buffer_extra, progress)
    still = np.zeros(len(drawn.handles))
    reaches = ReachBatch(drawn.handles, drawn.x_m, drawn.y_m, still, reach_m, reach_id)
    arrivals = object_part(every, parameters.objects, len(every))
    return MatchWorkload(data, reaches, drawn.interests, live, arrivals)


def _reaches(
    index: IqfObjectIndex, drawn: Subscriptions, extra: int, progress: Progress
) -> tuple[Floats, Ints]:
    """Return the (k + b + 1)-th length and its id for each; an infinite one if there are fewer."""
    total = len(drawn.handles)
    reach_m, reach_id = np.full(total, np.inf), np.zeros(total, dtype=np.int64)
    for first in range(0, total, CHUNK):
        some = slice(first, min(first + CHUNK, total))
        wanted = drawn.k[some] + extra + 1
        found = index.best(
            interest_part(drawn.interests, some.start, some.stop),
            drawn.x_m[some],
            drawn.y_m[some],
            wanted,
            np.full(len(wanted), np.inf),
        )
        _take_last(found, wanted, reach_m[some], reach_id[some])
        progress("reaches", some.stop, total)
    return reach_m, reach_id


def _take_last(found: Ranking, wanted: Ints, reach_m: Floats, reach_id: Ints) -> None:
    is_full = np.diff(found.offsets) == wanted
    last = found.offsets[1:][is_full] - 1
    reach_m[is_full] = found.length_m[last]
    reach_id[is_full] = found.ids[last]
