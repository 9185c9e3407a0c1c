"""Measure the update time of a tick, as in lamps.txt section 7.

A tick is a second: some objects are generated, some expire, every device moves. The work of the server is
timed, in three parts: generated (find candidates, request positions, decide results), expired (find the
results again that contained an expired object) and moved (evaluate the devices again that left their
regions). The work of devices, which test their own regions, is not timed.

The three parts of a tick are each one batch. The paper processes objects one by one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from bench.audits import Audit, sample
from bench.benchmark import Progress
from bench.datasets import Dataset, subscriptions
from bench.devices import leaving
from bench.engines import MakeMatcher, subscribe, top_k_engine, top_k_of
from bench.lamps.experiments import LampsParameters
from bench.local_matcher import LocalMatcher
from bench.parts import object_part
from bench.trajectories import Trajectories
from engine import CostModel, EngineOptions, Positions
from engine.top_k.matcher import TopKMatcher
from index.batches import Floats, Ints
from index.contracts import ObjectIndex, SubscriptionIndex
from index.naive import NaiveObjectIndex
from index.square import Square
from safe_region.regions.region import RegionMode

_FOREVER = 2**62
_MS_PER_S = 1000
WARM_UP_STEP_S = 5
"""Seconds between moves during the warm-up."""
_TICKS_MIN = 2
"""Ticks that run regardless of the time: the first tick loads caches and is left out."""
_INSERT_CHUNK = 50_000
_REGIONS = 10_000


class Variant(NamedTuple):
    """A system to be measured."""

    name: str
    region: RegionMode
    object_index: Callable[[], ObjectIndex]
    subscription_index: Callable[[Square | None], SubscriptionIndex]
    buffer_extra: int | None = 0
    has_regions: bool = True
    """Whether devices send nothing within regions; if not, each reports its position at every tick."""
    matcher: MakeMatcher = TopKMatcher
    costs: CostModel = CostModel()

    @property
    def is_scan(self) -> bool:
        """Return whether an evaluation scans every object."""
        return isinstance(self.object_index(), NaiveObjectIndex)


@dataclass(slots=True)
class Ticks:
    """Milliseconds of each part of the ticks, and the number of subscriptions evaluated in it."""

    generated_ms: list[float] = field(default_factory=list)
    expired_ms: list[float] = field(default_factory=list)
    moved_ms: list[float] = field(default_factory=list)
    generated_count: list[int] = field(default_factory=list)
    expired_count: list[int] = field(default_factory=list)
    moved_count: list[int] = field(default_factory=list)

    def parts_ms(self) -> tuple[list[float], list[float], list[float]]:
        """Return the milliseconds of the three parts of every tick."""
        return self.generated_ms, self.expired_ms, self.moved_ms


class Lamps:
    """Run one variant on one workload.

    Parameters
    ----------
    variant
        The measured system.
    data, offsets_m
        Places, and offsets of trajectories of at least as many seconds as there are ticks.
    parameters
        Size and shape.
    """

    def __init__(
        self, variant: Variant, data: Dataset, offsets_m: Floats, parameters: LampsParameters
    ) -> None:
        self._parameters = parameters
        self._variant = variant
        self._chance = np.random.default_rng([parameters.seed, 7])
        self.subscriptions = subscriptions(
            data,
            parameters.subscriptions,
            parameters.k_max,
            parameters.text_similarity,
            self._chance,
            parameters.alpha,
        )
        start = self.subscriptions
        self._trajectories = Trajectories(offsets_m, start.x_m, start.y_m, self._chance)
        generated = round(parameters.updates * (1.0 - parameters.expired_share)) * parameters.ticks
        every = data.objects(parameters.objects + generated, 1, self._chance)
        self._initial = object_part(every, 0, parameters.objects)
        self._generated = object_part(every, parameters.objects, parameters.objects + generated)
        self._alive = self._initial.ids.copy()
        square = data.square()
        self.engine = top_k_engine(
            EngineOptions(
                variant.buffer_extra,
                variant.object_index,
                lambda: variant.subscription_index(square),
                variant.costs,
            ),
            variant.matcher,
        )
        self.audit = Audit(start, data.maxdist_m)
        self.ticks = Ticks()
        self.build_s = 0.0
        self.build_subscriptions_s = 0.0
        self.warm_up_s = 0.0

    def build(self, progress: Progress) -> None:
        """Publish the initial objects and evaluate all subscriptions."""
        began = time.perf_counter()
        count = len(self._initial)
        for first in range(0, count, _INSERT_CHUNK):
            part = object_part(self._initial, first, min(first + _INSERT_CHUNK, count))
            self.engine.publish(part, np.full(len(part), _FOREVER, dtype=np.int64))
            progress("objects", min(first + _INSERT_CHUNK, count), count)
        objects_s = time.perf_counter() - began
        all_of_them = self.subscriptions
        count = len(all_of_them.handles)
        subscribe(self.engine, all_of_them, self._variant.region)
        for first in range(0, count, _INSERT_CHUNK):
            some = slice(first, min(first + _INSERT_CHUNK, count))
            self.engine.evaluate(
                Positions(all_of_them.handles[some], all_of_them.x_m[some], all_of_them.y_m[some])
            )
            progress("subscriptions", some.stop, count)
        self.build_s = time.perf_counter() - began
        self.build_subscriptions_s = self.build_s - objects_s
        self.audit.publish(self._initial)

    def warm_up(self, progress: Progress) -> None:
        """Let devices move, and report when they leave their regions, without new objects."""
        if not self._variant.has_regions:
            return
        began = time.perf_counter()
        seconds = self._parameters.warm_up_s
        for second in range(WARM_UP_STEP_S, seconds + 1, WARM_UP_STEP_S):
            self.engine.advance(_MS_PER_S * second)
            self._move(second)
            progress("warm-up", second, seconds)
        self.ticks = Ticks()
        self.warm_up_s = time.perf_counter() - began

    def run(self, progress: Progress, until_s: float) -> None:
        """Run ticks until all are done or the time is up; audit half-way and at the end."""
        ticks = self._parameters.ticks
        deadline = time.perf_counter() + until_s
        for tick in range(1, ticks + 1):
            second = self._parameters.warm_up_s + tick
            self.engine.advance(_MS_PER_S * second)
            self._generate(tick, second - 1)
            self._expire(second - 1)
            self._move(second)
            late = time.perf_counter() > deadline and tick >= _TICKS_MIN
            if tick == ticks // 2 or tick == ticks or late:
                self.compare_sample(second)
            progress("ticks", tick, ticks)
            if late:
                return

    def compare_sample(self, second: int) -> None:
        """Audit some results at the positions of a second."""
        x_m, y_m = self._trajectories.at(second)
        handles = sample(len(x_m), self._parameters.audited // 2, self._chance)
        self.audit.compare(self.engine, handles, x_m[handles - 1], y_m[handles - 1])

    def _generate(self, tick: int, second: int) -> None:
        x_m, y_m = self._trajectories.at(second)
        per_tick = len(self._generated) // self._parameters.ticks
        objects = object_part(self._generated, (tick - 1) * per_tick, tick * per_tick)
        self.audit.publish(objects)
        self._alive = np.concatenate([self._alive, objects.ids])
        began = time.perf_counter()
        published = self.engine.publish(objects, np.full(len(objects), _FOREVER, dtype=np.int64))
        handles = published.pending
        if len(handles):
            self.engine.evaluate(Positions(handles, x_m[handles - 1], y_m[handles - 1]))
        self.ticks.generated_ms.append(1000.0 * (time.perf_counter() - began))
        self.ticks.generated_count.append(len(handles))

    def _expire(self, second: int) -> None:
        x_m, y_m = self._trajectories.at(second)
        count = round(self._parameters.updates * self._parameters.expired_share)
        rows = self._chance.choice(len(self._alive), count, replace=False)
        gone = self._alive[rows]
        self._alive = np.delete(self._alive, rows)
        self.audit.remove(gone)
        began = time.perf_counter()
        touched = np.unique(self.engine.remove(gone)["handle"])
        spent = time.perf_counter() - began
        left = self._leaving(touched, x_m[touched - 1], y_m[touched - 1])
        where = self._trajectories.positions(left, second)
        began = time.perf_counter()
        self.engine.evaluate(where)
        self.ticks.expired_ms.append(1000.0 * (spent + time.perf_counter() - began))
        self.ticks.expired_count.append(len(left))

    def _move(self, second: int) -> None:
        x_m, y_m = self._trajectories.at(second)
        left = self.subscriptions.handles
        if self._variant.has_regions:
            left = self._leaving(left, x_m, y_m)
        where = self._trajectories.positions(left, second)
        began = time.perf_counter()
        self.engine.evaluate(where)
        self.ticks.moved_ms.append(1000.0 * (time.perf_counter() - began))
        self.ticks.moved_count.append(len(left))

    def memory_bytes(self) -> int:
        """Return the size of the indexes and of the engine's own tables."""
        objects = self.engine.objects
        parts = (objects.table, objects.index, top_k_of(self.engine))
        return sum(part.memory_bytes() for part in parts)

    def region_us(self) -> float:
        """Return the time to create one safe region, over a sample of subscriptions."""
        handles = sample(self._parameters.subscriptions, _REGIONS, self._chance)
        matcher = top_k_of(self.engine)
        if isinstance(matcher, LocalMatcher):
            return 1e6 * matcher.local.region_s / max(1, matcher.local.region_count)
        began = time.perf_counter()
        matcher.tables.reaches(matcher.subscriptions.slots(handles))
        return 1e6 * (time.perf_counter() - began) / len(handles)

    def _leaving(self, handles: Ints, x_m: Floats, y_m: Floats) -> Ints:
        """Return the devices that have left their regions. The server's time does not include this."""
        return leaving(self.engine, handles, x_m, y_m, self._parameters.k_max)
