"""The audit: what was published, as the replay has noted it, and every list against the oracle."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from nearcast import (
    Boolean,
    Bounds,
    Circle,
    Match,
    Polygon,
    Rectangle,
    Spec,
    Subscription,
    SubscriptionState,
)
from nearcast.expressions import clauses_of
from safe_region import oracle
from safe_region.frame import Frame
from safe_region.idf import IdfTable
from safe_region.keywords import normalised_keyword
from simulator.workload.rows import ObjectRow

SCORE_TOLERANCE = 1e-12
"""Scores are lengths times alpha / maxdist: the device may round that product once more."""


@dataclass(slots=True)
class PublishedObjects:
    """Every object the replay has published, as the oracle sees it."""

    frame: Frame
    objects: dict[int, oracle.OracleObject] = field(default_factory=dict)
    latest_id: int = 0
    tables: dict[int, IdfTable] = field(default_factory=lambda: {0: IdfTable({})})
    """Tables of weights of keywords by generation."""
    _id_of_key: dict[str, int] = field(default_factory=dict)
    _id_of_row: dict[tuple[str, int], int] = field(default_factory=dict)

    def published(self, rows: Sequence[ObjectRow], ids: Sequence[int], now_ms: int) -> None:
        """Note objects that the server has accepted, replacements included."""
        self.latest_id = max(self.latest_id, *ids) if ids else self.latest_id
        for row, object_id in zip(rows, ids, strict=True):
            replaced = self._id_of_key.get(row.object_key)
            if replaced is not None:
                self.objects.pop(replaced, None)
            self._id_of_key[row.object_key] = object_id
            self._id_of_row[row.object_key, row.publish_ms] = object_id
            x_m, y_m = self.frame.project(row.lon, row.lat)
            keywords = frozenset(normalised_keyword(keyword) for keyword in row.keywords)
            self.objects[object_id] = oracle.OracleObject(
                object_id, x_m, y_m, keywords, now_ms, now_ms + row.ttl_ms
            )

    def live_id(self, row: ObjectRow) -> int | None:
        """Return the id of what was published for a row, if it is still alive."""
        object_id = self._id_of_row.get((row.object_key, row.publish_ms))
        return object_id if object_id in self.objects else None

    def retracted(self, ids: Sequence[int]) -> None:
        """Note objects that were taken back."""
        for object_id in ids:
            del self.objects[object_id]

    def pass_time(self, now_ms: int) -> None:
        """Forget what has expired."""
        expired = [key for key, one in self.objects.items() if not oracle.is_alive(one, now_ms)]
        for object_id in expired:
            del self.objects[object_id]


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A list that is not what it should be."""

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


def audit_list(
    published: PublishedObjects,
    subscription: Subscription,
    device_id: str,
    lon: float,
    lat: float,
    tick: int,
    now_ms: int,
) -> Mismatch | None:
    """Compare one list with the oracle's at the device's true position: ids, order and scores."""
    x_m, y_m = published.frame.project(lon, lat)
    frame, objects, latest_id = published.frame, published.objects.values(), published.latest_id
    weigh = published.tables[subscription.idf_generation].weight
    expected = expected_list(subscription.spec, x_m, y_m, frame, objects, now_ms, latest_id, weigh)
    found = subscription.results()
    if subscription.state is SubscriptionState.TOO_MANY:
        if {match.object.id for match in found} <= {one.object_id for one, _ in expected}:
            return None
    elif _is_same(expected, found):
        return None
    return Mismatch(
        device_id,
        subscription.id,
        tick,
        tuple(one.object_id for one, _ in expected),
        tuple(match.object.id for match in found),
    )


def expected_list(
    spec: Spec,
    x_m: float,
    y_m: float,
    frame: Frame,
    objects: Iterable[oracle.OracleObject],
    now_ms: int,
    latest_id: int,
    weigh: Callable[[str], float] | None = None,
) -> list[tuple[oracle.OracleMatch, float]]:
    """Return what the oracle says that a device is to show, with scores."""
    window = oracle_window(spec, latest_id)
    if isinstance(spec, Boolean):
        wanted = oracle_range(spec, frame)._replace(window=window)
        return [(one, 0.0) for one in oracle.matching(wanted, x_m, y_m, objects, now_ms)]
    asked = oracle.OracleSubscription(
        _normalised(spec.keywords), spec.k, spec.alpha, spec.similarity.name.lower(), weigh, window
    )
    best = oracle.top_k(asked, x_m, y_m, frame.maxdist_m, objects, now_ms)
    return [(one, spec.alpha * one.length_m / frame.maxdist_m) for one in best]


def oracle_window(spec: Spec, latest_id: int) -> oracle.OracleWindow:
    """Return the window of a subscription as the oracle sees it."""
    last = spec.window
    if last is None:
        return oracle.OracleWindow()
    duration_ms = None if last.seconds is None else math.ceil(last.seconds * 1000.0)
    return oracle.OracleWindow(duration_ms, last.count, latest_id)


def oracle_range(spec: Boolean, frame: Frame) -> oracle.OracleRange:
    """Return a boolean subscription as the oracle sees it."""
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


def _is_same(expected: Sequence[tuple[oracle.OracleMatch, float]], found: Sequence[Match]) -> bool:
    if [one.object_id for one, _ in expected] != [match.object.id for match in found]:
        return False
    return all(
        abs(match.score - score) <= SCORE_TOLERANCE * max(1.0, score)
        for match, (_, score) in zip(found, expected, strict=True)
    )
