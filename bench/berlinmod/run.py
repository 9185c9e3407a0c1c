"""`bench berlinmod`: events of vehicles against standing ranges, through the engine.

An event is an object that lives until the next batch; a range is a boolean subscription that stays. What
is timed is all that a server's engine does with a batch: what was there expires, the events are stored,
matched and told, and the query makes answers of it. Kernels are compiled before.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from bench.berlinmod.audit import mismatches, sample
from bench.berlinmod.queries import PUBLISHED_PER_S, QUERIES, Answering, Answers
from bench.berlinmod.workload import (
    BerlinModParameters,
    Query,
    Scene,
    Standing,
    require_room,
    scene,
    standing,
)
from bench.errors import BenchError
from bench.reports import Progress, Row
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
"""Ranges that subscribe together."""


class Run(NamedTuple):
    """What was measured."""

    built_s: float
    spent_s: float
    events: int
    """So many were done in the time."""
    answer_count: int
    answers: Answers
    """Those of the ranges that are audited."""
    memory_bytes: int


def measure(
    query: Query,
    happens: Scene,
    ranges: Standing,
    parameters: BerlinModParameters,
    budget_s: float,
    audited: Sequence[int] = (),
) -> Run:
    """Let events pass, all or as many as the time allows; keep the answers of some ranges."""
    began_s = time.perf_counter()
    engine = _engine(happens, parameters)
    for start in range(0, len(ranges), _CHUNK):
        _subscribe(engine, ranges, slice(start, min(start + _CHUNK, len(ranges))))
    built_s = time.perf_counter() - began_s
    answering = Answering(query, happens.events, parameters.vehicles, len(ranges))
    is_audited = np.zeros(len(ranges), dtype=np.bool_)
    is_audited[list(audited)] = True
    kept: list[Answers] = []
    done, count, spent_s = 0, 0, 0.0
    while done < parameters.events and spent_s < budget_s:
        stop = min(done + parameters.batch, parameters.events)
        batch = happens.events.objects(done, stop)
        began_s = time.perf_counter()
        now_ms = stop  # the order of time is enough
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


def _subscribe(engine: Engine, ranges: Standing, part: slice) -> None:
    """Make some ranges known; nothing is there yet that they could match."""
    handles = ranges.handles[part]
    engine.matchers[BOOLEAN].subscribe(handles, ranges.part(part))
    nowhere = np.zeros(len(handles))
    engine.evaluate(Positions(handles, nowhere, nowhere))


def _row(query: Query, parameters: BerlinModParameters, done: Run, wrong: int, lists: int) -> Row:
    per_s = done.events / done.spent_s
    row: Row = {
        "experiment": query,
        "variant": "nearcast",
        "standing_ranges": parameters.ranges,
        "batch": parameters.batch,
        "vehicles": parameters.vehicles,
        "events": done.events,
        "events_per_s": round(per_s),
        "us_per_event": round(1e6 / per_s, 3),
        "answers_per_event": round(done.answer_count / done.events, 4),
        "build_s": round(done.built_s, 3),
        "memory_mb": round(done.memory_bytes / 2**20, 1),
        "lists_audited": lists,
        "mismatches": wrong,
    }
    if parameters.ranges == 1:
        row["events_per_s_published"] = PUBLISHED_PER_S[query]
    return row


def run(
    progress: Progress,
    *,
    queries: Sequence[str],
    ranges: Sequence[int],
    batches: Sequence[int],
    budget_s: float,
    **shape: Any,  # noqa: ANN401
) -> list[Row]:
    """Measure queries with numbers of standing ranges and sizes of batches.

    `shape` are fields of BerlinModParameters.

    Raises
    ------
    BenchError
        If a query is not known, or there would be too much of something.
    """
    for name in queries:
        if name not in QUERIES:
            raise BenchError(f"query is {name!r}, must be one of {', '.join(QUERIES)}")
    wanted = [one for one in QUERIES if one in queries] or list(QUERIES)
    base = BerlinModParameters(**shape)
    for count in ranges:
        require_room(replace(base, ranges=count))
    progress("drive", 0, 1)
    happens = scene(base)
    progress("drive", 1, 1)
    settings = [
        (query, replace(base, ranges=count, batch=batch))
        for query in wanted
        for count in ranges
        for batch in batches
    ]
    for query in wanted:  # twice, for the first compiles
        small = replace(base, ranges=_TRIAL_RANGES, events=min(base.events, _TRIAL_EVENTS), batch=500)
        for _ in range(2):
            measure(query, happens, standing(query, happens.corners, small), small, budget_s)
    rows = []
    for number, (query, parameters) in enumerate(settings):
        progress("berlinmod", number, len(settings))
        stand = standing(query, happens.corners, parameters)
        chance = np.random.default_rng([parameters.seed, 59])
        audited = sample(happens.events, stand, parameters.audited, chance)
        done = measure(query, happens, stand, parameters, budget_s, audited)
        wrong = mismatches(query, happens.events.first(done.events), stand, done.answers, audited)
        rows.append(_row(query, parameters, done, wrong, len(audited)))
    progress("berlinmod", len(settings), len(settings))
    return rows
