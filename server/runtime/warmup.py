"""Warm-up: every kernel that the engine needs is compiled, or loaded, before the first command.

Compiled kernels are kept on disk (`safe_region/jit`): compiling takes a while once per machine, and
loading half a second later. Without the warm-up the first device of each kind would wait for it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from engine import EngineOptions
from index.catalogue import (
    CLAUSE_INDEXES,
    MOVING_INDEXES,
    OBJECT_INDEXES,
    SUBSCRIPTION_INDEXES,
    weighted_index,
)
from safe_region.earth.frame import Area, Frame
from safe_region.earth.shapes import Bounds, Circle, Polygon, Range, Rectangle
from safe_region.geometry import polygon_checks
from safe_region.jit.ahead import Report, compile_ahead
from safe_region.regions.region import RegionMode
from safe_region.scoring.formulas import Similarity
from safe_region.scoring.idf import IdfTable
from server.core.evaluation_batch import EvaluationBatch
from server.core.matching_service import MatchingService, SearchRequest
from server.model import Boolean, Cause, Clause, LiveObject, Place, Spec, TopK, Window

_OBJECTS = 200
_WORDS = tuple(f"word{number}" for number in range(6))
_UNSHARED = ("alone",)
"""Words of one object at first: its subscription has no reach, and prunes objects that it dominates."""
_STEP_DEG = 1e-6
_LATER_MS = 1_000

_SOMEWHERE = Area(0.0, 0.0, 1.0, 1.0)
"""Any area: no kernel is compiled for a certain one."""

_LOG_S = 5.0
"""Interval between two log lines about the progress of compiling."""

_log = logging.getLogger(__name__)


def ready_kernels(
    frame: Frame, options: EngineOptions, report: Report, others: Callable[[], object]
) -> int:
    """Load all kernels that an engine needs, and those that `others` calls.

    Returns the number of kernels that had to be compiled.
    """

    def run() -> None:
        others()
        warm_up(frame, options)

    return compile_ahead(run, report)


class IndexNames(NamedTuple):
    """Names in the catalogue, at least one of each kind."""

    objects: Sequence[str]
    subscriptions: Sequence[str]
    clauses: Sequence[str]
    moving: Sequence[str]


def compile_kernels(names: IndexNames, report: Report, others: Callable[[], object]) -> int:
    """Compile all kernels that servers with these indexes need; return how many were missing on disk.

    Parameters
    ----------
    names
        The names of the indexes.
    report
        Called with the progress, if anything has to be compiled.
    others
        Calls kernels that belong to no index.

    Raises
    ------
    NotKeptError
        If kernels cannot be compiled into the cache.
    """

    def run() -> None:
        others()
        for number in range(max(map(len, names))):
            warm_up(Frame.of(_SOMEWHERE), _options(*(some[number % len(some)] for some in names)))

    return compile_ahead(run, report, must_keep=True)


def _check_a_polygon() -> None:
    """Run the checks of polygons that specs and objects run."""
    ring = ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0))
    polygon_checks.polygon_flaw([ring])
    columns = polygon_checks.columns_of(ring)
    polygon_checks.contains(*columns, polygon_checks.inner_point(*columns))


def _options(objects: str, subscriptions: str, clauses: str, moving: str) -> EngineOptions:
    return EngineOptions(
        None,
        OBJECT_INDEXES[objects],
        SUBSCRIPTION_INDEXES[subscriptions],
        clause_index=CLAUSE_INDEXES[clauses],
        weighted_index=weighted_index(subscriptions),
        moving_index=MOVING_INDEXES.get(moving),
    )


def logged() -> Report:
    """Return a report that logs the progress: at the start, now and then, and at the end."""
    next_s = 0.0

    def report(done: int, total: int) -> None:
        nonlocal next_s
        now_s = time.monotonic()
        if done == total or now_s >= next_s:
            next_s = now_s + _LOG_S
            _log.info("compiling kernels, %d of %d, once on this machine", done, total)

    return report


def warm_up(frame: Frame, options: EngineOptions) -> None:
    """Run a small matching service through all code paths of a large one."""
    _check_a_polygon()
    matching = MatchingService(frame, options)
    lon = (frame.area.lon_min + frame.area.lon_max) / 2
    lat = (frame.area.lat_min + frame.area.lat_max) / 2

    def place(number: int) -> Place:
        return Place(lon + number * _STEP_DEG, lat)

    def item(number: int) -> LiveObject:
        words = tuple(sorted({_WORDS[number % 6], _WORDS[number // 6 % 6]}))
        here = place(number)
        point = frame.project(here.lon, here.lat)
        expiry_ms = _LATER_MS if number % 2 else 2 * _LATER_MS
        return LiveObject(number, here.lon, here.lat, point, words, 0, expiry_ms, b"", "")

    last = item(2 * _OBJECTS)
    dominated = last._replace(object_id=last.object_id + 1, keywords=(*_UNSHARED, *last.keywords))

    def batch(places: dict[int, Place]) -> EvaluationBatch:
        found = EvaluationBatch()
        found.places.update(places)
        return found

    specs: tuple[Spec, ...] = (
        TopK(_WORDS[:2], 2, 0.5),
        TopK(_WORDS[:2], 2, 0.5, region=RegionMode.ELLIPSE),
        TopK(_WORDS[:2], 2, 0.5, window=Window(duration_ms=_LATER_MS)),
        TopK(_WORDS[:2], 2, 0.5, window=Window(count=20)),
        TopK(_WORDS[:2], 2, 0.5, Similarity.TFIDF),
        TopK(_WORDS[:2], 2, 0.5, region=RegionMode.STATIONARY, window=Window(duration_ms=_LATER_MS)),
        TopK(_UNSHARED, 1, 0.5),
        *_boolean_specs(lon, lat),
    )
    first, second, *others = (matching.subscribe(spec) for spec in specs)
    matching.publish(
        [*(item(number) for number in range(1, _OBJECTS)), last._replace(keywords=_UNSHARED)]
    )
    matching.evaluate(batch(dict.fromkeys((first, second, *others), place(1))))
    matching.begin_weights(1, IdfTable({_WORDS[0]: 2.0}))
    while matching.is_reweighing:
        matching.reweigh(_OBJECTS)
    moved = batch({first: _uncertain(place(50)), second: place(50)})
    matching.evaluate(moved, matching.retrieve(moved))
    matching.publish([item(50 + number)._replace(object_id=_OBJECTS + number) for number in range(40)])
    matching.evaluate(batch(dict.fromkeys((first, second, *others), place(51))))
    matching.publish([dominated])
    matching.retract([*range(_OBJECTS, _OBJECTS + 40), last.object_id])
    matching.search([SearchRequest(spec, lon, lat) for spec in specs])
    for handle in (first, *others):
        matching.snapshot(handle, Cause.RESUMED)
    matching.advance(_LATER_MS)
    matching.advance(2 * _LATER_MS)
    for handle in (first, second, *others):
        matching.park([handle])
        matching.unsubscribe(handle)


def _boolean_specs(lon: float, lat: float) -> tuple[Boolean, ...]:
    """Return boolean subscriptions about a place, with a range of each shape."""
    size = _OBJECTS * _STEP_DEG
    corners = ((lon - size, lat - size), (lon + size, lat - size), (lon, lat + size))
    clauses = (Clause(_WORDS[:1], _WORDS[1:2]), Clause(_WORDS[2:3]))
    ranges: tuple[Range, ...] = (
        Circle(20.0),
        Rectangle(40.0, 30.0),
        Circle(20.0, (lon, lat)),
        Bounds(lon - size, lat - size, lon + size, lat + size),
        Polygon(corners),
    )
    return tuple(Boolean(clauses, where, where in ranges[:2]) for where in ranges)


def _uncertain(place: Place) -> Place:
    """Return a place that is not known exactly, of a moving device."""
    return place._replace(margin_m=5.0, heading_deg=90.0, speed_mps=10.0)
