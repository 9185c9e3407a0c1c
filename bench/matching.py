"""Match new objects with an index and measure the time: one a call, or in batches."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from bench.parts import object_part
from index.batches import Matches, ObjectBatch


class Matching(Protocol):
    """An index that matches objects."""

    def match(self, objects: ObjectBatch) -> Matches:
        """Find the matches of each object."""


class Timed(NamedTuple):
    """Matches, and the microseconds an object of each call."""

    us: list[float]
    matches: Matches

    @property
    def objects(self) -> int:
        """Return the number of matched objects."""
        return len(self.matches.offsets) - 1

    def quantile(self, share: float) -> float:
        """Return the quantile of the calls' microseconds an object."""
        return float(np.quantile(self.us, share)) if self.us else 0.0

    def mean(self) -> float:
        """Return the mean of the calls' microseconds an object."""
        return float(np.mean(self.us)) if self.us else 0.0


def timed(
    index: Matching, objects: ObjectBatch, batch: int, until_s: float = math.inf, least: int = 1
) -> Timed:
    """Match objects, `batch` a call, until all are or the time is up, but at least `least` calls."""
    times_us: list[float] = []
    counts = [np.zeros(1, dtype=np.int64)]
    ids = [np.empty(0, dtype=np.int64)]
    deadline = time.perf_counter() + until_s
    for start in range(0, len(objects), batch):
        part = object_part(objects, start, min(start + batch, len(objects)))
        began = time.perf_counter()
        found = index.match(part)
        ended = time.perf_counter()
        times_us.append(1e6 * (ended - began) / len(part))
        counts.append(np.diff(found.offsets))
        ids.append(found.ids)
        if ended > deadline and len(times_us) >= least:
            break
    return Timed(times_us, Matches(np.cumsum(np.concatenate(counts)), np.concatenate(ids)))


def wrong_rows(found: Matches, expected: Sequence[Sequence[int]]) -> int:
    """Count the objects whose matches differ from the expected ones, among those in both."""
    return sum(
        sorted(found.row(number).tolist()) != one
        for number, one in enumerate(expected[: len(found.offsets) - 1])
    )
