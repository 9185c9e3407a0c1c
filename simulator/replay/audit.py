"""The audit: compares results with the oracle."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

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
from safe_region import oracle
from safe_region.earth.frame import Frame, Point
from safe_region.scoring.keywords import normalised_keyword
from simulator.replay.published_objects import Liveness, PublishedObjects


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
        candidates = [self._expected(result, place, moment) for moment in self._moments]
        expected = candidates[-1]
        found = result.scored
        ids = tuple(object_id for object_id, _ in found)
        if result.state is SubscriptionState.TOO_MANY:
            if set(ids) <= set(_ids(expected)):
                return None
        elif any(_is_same(one, found) for one in candidates):
            return None
        if any(_ids(one) != _ids(expected) for one in candidates):
            raise UndecidedError
        return Mismatch(place.device_id, result.id, self._tick, _ids(expected), ids)

    def _expected(
        self, result: Result, place: Place, moment: Liveness
    ) -> list[tuple[oracle.OracleMatch, float]]:
        published = self._published
        return expected_list(
            result.spec,
            published.frame.project(place.lon, place.lat),
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


def _ids(matches: Sequence[tuple[oracle.OracleMatch, float]]) -> tuple[int, ...]:
    return tuple(one.object_id for one, _ in matches)


def _is_same(
    expected: Sequence[tuple[oracle.OracleMatch, float]], found: Sequence[tuple[int, float]]
) -> bool:
    return [(one.object_id, score) for one, score in expected] == list(found)
