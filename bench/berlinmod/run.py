"""Match events of vehicles with stationary ranges, through the engine.

An event is an object that lives until the next batch; a range is a stationary boolean subscription. The
time includes all work of a server's engine on a batch: the objects of the previous batch expire, the
events are stored and matched, changes are returned, and the query selects answers from them. Kernels are
compiled before.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bench.benchmark import Benchmark, Estimate, Row
from bench.berlinmod.audit import mismatches, sample
from bench.berlinmod.experiments import BerlinModParameters
from bench.berlinmod.queries import PUBLISHED_PER_S, Answering, Answers
from bench.berlinmod.workload import Scene, StationaryRanges, scene, stationary_ranges
from engine import Engine, EngineOptions, Positions
from engine.boolean.matcher import BooleanMatcher
from engine.contracts import BOOLEAN
from index.catalogue import (
    CLAUSE_INDEXES,
    DEFAULT_CLAUSE_INDEX,
    DEFAULT_OBJECT_INDEX,
    OBJECT_INDEXES,
)

_TRIAL_EVENTS = 2_000
_TRIAL_RANGES = 200
_CHUNK = 100_000
"""Ranges that are subscribed in one call."""


class Run(NamedTuple):
    """Measurements of a run."""

    built_s: float
    spent_s: float
    events: int
    """Number of events that were processed in the time."""
    answer_count: int
    answers: Answers
    """Answers of the audited ranges."""
    memory_bytes: int


def measure(
    happens: Scene, ranges: StationaryRanges, parameters: BerlinModParameters, audited: Sequence[int] = ()
) -> Run:
    """Process all events, or as many as the time allows; keep the answers of some ranges."""
    began_s = time.perf_counter()
    engine = _engine(happens, parameters)
    for start in range(0, len(ranges), _CHUNK):
        _subscribe(engine, ranges, slice(start, min(start + _CHUNK, len(ranges))))
    built_s = time.perf_counter() - began_s
    answering = Answering(parameters.query, happens.events, parameters.vehicles, len(ranges))
    is_audited = np.zeros(len(ranges), dtype=np.bool_)
    is_audited[list(audited)] = True
    kept: list[Answers] = []
    done, count, spent_s = 0, 0, 0.0
    while done < parameters.events and spent_s < parameters.budget_s:
        stop = min(done + parameters.batch, parameters.events)
        batch = happens.events.objects(done, stop)
        began_s = time.perf_counter()
        now_ms = stop  # only the order of time matters
        engine.advance(now_ms)
        expiry_ms = np.full(len(batch), now_ms + 1, dtype=np.int64)
        found = answering.answers(engine.publish(batch, expiry_ms).changes)
        spent_s += time.perf_counter() - began_s
        kept.append(found.of(is_audited))
        count += len(found.events)
        done = stop
    memory_bytes = engine.matchers[BOOLEAN].memory_bytes()
    return Run(built_s, spent_s, done, count, Answers.joined(kept), memory_bytes)


def _engine(happens: Scene, parameters: BerlinModParameters) -> Engine:
    """Return an empty engine with the indexes that the server has by default."""
    options = EngineOptions(
        object_index=OBJECT_INDEXES[DEFAULT_OBJECT_INDEX],
        clause_index=lambda: CLAUSE_INDEXES[DEFAULT_CLAUSE_INDEX](happens.square),
        matches_max=parameters.batch,
    )
    return Engine(options, {BOOLEAN: BooleanMatcher})


def _subscribe(engine: Engine, ranges: StationaryRanges, part: slice) -> None:
    """Subscribe and evaluate some ranges; no objects exist yet that they could match."""
    handles = ranges.handles[part]
    engine.matchers[BOOLEAN].subscribe(handles, ranges.part(part))
    nowhere = np.zeros(len(handles))
    engine.evaluate(Positions(handles, nowhere, nowhere))


class BerlinModBenchmark(Benchmark[BerlinModParameters]):
    """Measure a query, in an engine as the server has it."""

    VARIANTS = ("nearcast",)

    def _scene(self, parameters: BerlinModParameters) -> Scene:
        drives = parameters.changed(ranges=1, batch=1)
        return self.kept("scene", drives, lambda: scene(drives))

    def trial(self, variant: str, parameters: BerlinModParameters) -> Estimate:
        """Run some events. Long runs end when their time is over."""
        del variant
        events = min(parameters.events, _TRIAL_EVENTS)
        small = parameters.changed(ranges=_TRIAL_RANGES, events=events, batch=500)
        happens = self._scene(parameters)
        measure(happens, stationary_ranges(happens.corners, small), small)
        return lambda _other: 0.0

    def measure(self, variant: str, parameters: BerlinModParameters) -> list[Row]:
        """Subscribe all ranges and process the events."""
        del variant
        happens = self._scene(parameters)
        ranges = stationary_ranges(happens.corners, parameters)
        rng = np.random.default_rng([parameters.seed, 59])
        audited = sample(happens.events, ranges, parameters.audited, rng)
        done = measure(happens, ranges, parameters, audited)
        events = happens.events.first(done.events)
        wrong = mismatches(parameters.query, events, ranges, done.answers, audited)
        return [_row(parameters, done) | {"lists_audited": len(audited), "mismatches": wrong}]


def _row(parameters: BerlinModParameters, done: Run) -> Row:
    per_s = done.events / done.spent_s
    row: Row = {
        "vehicles": parameters.vehicles,
        "events": done.events,
        "events_per_s": round(per_s),
        "us_per_event": round(1e6 / per_s, 3),
        "answers_per_event": round(done.answer_count / done.events, 4),
        "build_s": round(done.built_s, 3),
        "memory_mb": round(done.memory_bytes / 2**20, 1),
    }
    if parameters.ranges == 1:
        row["events_per_s_published"] = PUBLISHED_PER_S[parameters.query]
    return row
