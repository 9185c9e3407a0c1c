"""Create engines of benchmarks, and measure their working time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

import numpy as np

from bench.datasets import Subscriptions
from engine import Engine, EngineOptions, Positions, Published
from engine.contracts import TOP_K, Rows
from engine.expiries import ALL
from engine.objects import Objects
from engine.polygons import Rings
from engine.top_k.matcher import TopKMatcher, TopKSpecs
from engine.windows import Lasts
from index.batches import Ints, ObjectBatch
from safe_region.regions.region import RegionMode

MakeMatcher = Callable[[Objects, EngineOptions], TopKMatcher]


class TimedEngine(Engine):
    """An engine that measures its time for objects, expiry and positions."""

    spent_s = 0.0

    def advance(
        self,
        now_ms: int,
        on_due: Callable[[Ints], None] = lambda _due: None,
        on_changes: Callable[[Rows], None] = lambda _changes: None,
        *,
        notify: bool = False,
        count_max: int = ALL,
    ) -> Ints:
        """See `Engine.advance`."""
        with self._timed():
            return super().advance(now_ms, on_due, on_changes, notify=notify, count_max=count_max)

    def publish(
        self,
        objects: ObjectBatch,
        expiry_ms: Ints,
        rings: Rings | None = None,
        created_ms: Ints | None = None,
    ) -> Published:
        """See `Engine.publish`."""
        with self._timed():
            return super().publish(objects, expiry_ms, rings, created_ms)

    def evaluate(self, positions: Positions) -> Rows:
        """See `Engine.evaluate`."""
        with self._timed():
            return super().evaluate(positions)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        began_s = time.perf_counter()
        yield
        self.spent_s += time.perf_counter() - began_s


def top_k_engine(options: EngineOptions, matcher: MakeMatcher = TopKMatcher) -> Engine:
    """Return an empty engine."""
    return Engine(options, {TOP_K: matcher})


def top_k_of(engine: Engine) -> TopKMatcher:
    """Return an engine's matcher of top-k subscriptions, whose arrays are read."""
    return cast("TopKMatcher", engine.matchers[TOP_K])


def subscribe(
    engine: Engine, drawn: Subscriptions, region: RegionMode, lasts: Lasts | None = None
) -> None:
    """Subscribe drawn subscriptions, all in one mode, with these windows."""
    modes = np.full(len(drawn.handles), region, dtype=np.int64)
    top_k_of(engine).subscribe(drawn.handles, TopKSpecs(drawn.interests, drawn.k, modes, lasts=lasts))
