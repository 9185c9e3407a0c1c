"""The audit: compares results with the oracle."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from nearcast import (
    Boolean,
    Bounds,
    Circle,
    Polygon,
    Rectangle,
    Spec,
    SubscriptionState,
)
from nearcast.expressions import clauses_of
from nearcast.limits import DEFAULT_LIMITS
from safe_region import oracle
from safe_region.earth.frame import Frame, Point
from safe_region.regions.ranges import CAPPED_SHARE
from safe_region.scoring.keywords import normalised_keyword
from simulator.replay.published_objects import Liveness, PublishedObjects

_Matches = Sequence[tuple[oracle.OracleMatch, float]]
"""Objects with scores, best first."""

_PART_MAX = DEFAULT_LIMITS.matches_max
_PART_MIN = CAPPED_SHARE * _PART_MAX
"""The most and the fewest objects that a device holds of a result that is too large."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A result that differs from the oracle's."""

    device_id: str
    subscription_id: int
    tick: int
    expected: tuple[int, ...]
    found: tuple[int, ...]

    def __str__(self) -> str:
        return (
            f"tick {self.tick}, {self.device_id}, subscription {self.subscription_id}: "
            f"expected {list(self.expected)}, found {list(self.found)}"
        )


class Place(NamedTuple):
    """The position of a device."""

    device_id: str
    lon: float
    lat: float


class Result(Protocol):
    """The result of a subscription on a device."""

    @property
    def id(self) -> int:
        """Number of the subscription."""

    @property
    def spec(self) -> Spec:
        """The spec of the subscription."""

    @property
    def state(self) -> SubscriptionState:
        """How exact the result is."""

    @property
    def idf_generation(self) -> int:
        """The generation of the weights by which the result is exact."""

    @property
    def scored(self) -> Sequence[tuple[int, float]]:
        """Ids and scores of the objects, best first."""

    @property
    def region(self) -> Any:  # noqa: ANN401 - as that of a subscription
        """The objects that the device holds; None if they are in another program."""


class Audit:
    """Compares results with the oracle's, at one tick.

    Parameters
    ----------
    published
        The published objects.
    tick
        The tick of the replay.
    moments
        The live objects at one instant of virtual time. In real time, where the instant is not known as
        exactly, the objects that are certainly alive, and those that may be: a result is decided if the
        oracle gives the same for both.
    """

    def __init__(self, published: PublishedObjects, tick: int, moments: Sequence[Liveness]) -> None:
        self._published = published
        self._tick = tick
        self._moments = moments

    def compare(self, result: Result, place: Place) -> Mismatch | None:
        """Compare one result with the oracle's at the device's true position: ids, order and scores.

        Returns
        -------
        Mismatch or None
            None if the result is correct.

        Raises
        ------
        UndecidedError
            If it depends on an instant that is not known well enough.
        """
        here = self._published.frame.project(place.lon, place.lat)
        candidates = [self._expected(result, here, moment) for moment in self._moments]
        expected = candidates[-1]
        found = result.scored
        if result.state is SubscriptionState.TOO_MANY:
            if self._is_part(result, expected, found):
                return None
        elif any(_is_same(one, found) for one in candidates):
            return None
        if any(_ids(one) != _ids(expected) for one in candidates):
            raise UndecidedError
        ids = tuple(object_id for object_id, _ in found)
        return Mismatch(place.device_id, result.id, self._tick, _ids(expected), ids)

    def _is_part(self, result: Result, expected: _Matches, found: Sequence[tuple[int, float]]) -> bool:
        """Return whether a result has what its device holds of one that is too large.

        A device holds matches at the place where the server evaluated its range, and nearly as many as
        the server sends. Of moving ranges in another program neither is known.
        """
        held, there = {object_id for object_id, _ in found}, expected
        if isinstance(result.spec, Boolean) and result.spec.moving:
            region, moment = result.region, self._moments[-1]
            if region is None:
                return held <= set(_ids(expected))
            held = {object_id for _, object_id in region.live(*region.anchor, moment.now_ms)}
            there = self._expected(result, region.anchor, moment)
        part = [one for one in expected if one[0].object_id in held]
        return _is_same(part, found) and held <= set(_ids(there)) and _PART_MIN <= len(held) <= _PART_MAX

    def _expected(self, result: Result, here: Point, moment: Liveness) -> _Matches:
        published = self._published
        return expected_list(
            result.spec,
            here,
            published.frame,
            moment.objects,
            moment.now_ms,
            published.latest_id,
            published.tables[result.idf_generation].weight,
        )


class UndecidedError(Exception):
    """The correctness of a result depends on an instant that is not known well enough."""


def expected_list(
    spec: Spec,
    here: Point,
    frame: Frame,
    objects: Iterable[oracle.OracleObject],
    now_ms: int,
    latest_id: int,
    weigh: Callable[[str], float] | None = None,
) -> list[tuple[oracle.OracleMatch, float]]:
    """Return the result that the oracle expects of a device at a position, with scores."""
    window = oracle_window(spec, latest_id)
    if isinstance(spec, Boolean):
        wanted = oracle_range(spec, frame)._replace(window=window)
        return [(one, 0.0) for one in oracle.matching(wanted, *here, objects, now_ms)]
    query = oracle.OracleSubscription(
        _normalised(spec.keywords),
        spec.k,
        spec.alpha,
        spec.similarity.name.lower(),
        weigh,
        window,
        spec.distance_scale_m,
    )
    best = oracle.top_k(query, *here, frame.maxdist_m, objects, now_ms)
    return [(one, oracle.score(query, one.length_m, frame.maxdist_m)) for one in best]


def oracle_window(spec: Spec, latest_id: int) -> oracle.OracleWindow:
    """Return the window of a subscription in the form of the oracle."""
    last = spec.window
    if last is None:
        return oracle.OracleWindow()
    duration_ms = None if last.seconds is None else math.ceil(last.seconds * 1000.0)
    return oracle.OracleWindow(duration_ms, last.count, latest_id)


def oracle_range(spec: Boolean, frame: Frame) -> oracle.OracleRange:
    """Return a boolean subscription in the form of the oracle."""
    clauses = tuple(
        oracle.OracleClause(_normalised(one.required), _normalised(one.excluded))
        for one in clauses_of(spec.expression)
    )
    where: oracle.OracleCircle | oracle.OracleRectangle | oracle.OracleExtent | oracle.OraclePolygon
    match spec.range:
        case Circle(radius_m, center):
            where = oracle.OracleCircle(radius_m, None if center is None else frame.project(*center))
        case Bounds(lon_min, lat_min, lon_max, lat_max):
            low, high = frame.project(lon_min, lat_min), frame.project(lon_max, lat_max)
            where = oracle.OracleRectangle(*low, *high)
        case Rectangle(width_m, height_m):
            where = oracle.OracleExtent(width_m, height_m)
        case Polygon(outer, holes):
            rings = [tuple(frame.project(*vertex) for vertex in ring) for ring in (outer, *holes)]
            where = oracle.OraclePolygon(tuple(rings))
    return oracle.OracleRange(clauses, where)


def _normalised(keywords: Iterable[str]) -> frozenset[str]:
    return frozenset(map(normalised_keyword, keywords))


def _ids(matches: _Matches) -> tuple[int, ...]:
    return tuple(one.object_id for one, _ in matches)


def _is_same(expected: _Matches, found: Sequence[tuple[int, float]]) -> bool:
    return [(one.object_id, score) for one, score in expected] == list(found)
