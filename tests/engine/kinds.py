"""Kinds of subscriptions as tests of all matchers see them: one joins by a class and a line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from engine.boolean.layout import CIRCLE, POLYGON, RECTANGLE, BooleanSpecs, Ranges
from engine.contracts import BOOLEAN, STATIONARY, TOP_K
from engine.polygons import Rings
from engine.stationary.matcher import StationarySpecs
from engine.top_k.layout import BY_COST
from engine.top_k.matcher import TopKSpecs
from index.batches import ObjectBatch
from safe_region.oracle.plane import (
    Area,
    OracleCircle,
    OracleExtent,
    OraclePolygon,
    OracleRectangle,
    Ring,
    is_within,
)
from safe_region.regions.region import RegionMode
from tests.index.boxes import Box, BoxDice, area_batch, boxes_of
from tests.index.brute import Interest, Object, ids, interest_batch, keyword_lists

MATCHES_MAX = 5


class Kind(Protocol):
    """What one kind of subscription asks for."""

    def draw(self, dice: AreaDice) -> Any:
        """Draw what a subscription asks for."""

    def specs(self, query: Sequence[Any]) -> Any:
        """Return what subscriptions ask for, as their matcher takes it."""

    def keywords(self, query: Any) -> frozenset[int]:
        """Return all keywords of a subscription."""

    def needs_exact_position(self, query: Any) -> bool:
        """Whether positions of the device must not have a margin."""

    def result(self, query: Any, x_m: float, y_m: float, objects: Iterable[Object]) -> list[int]:
        """Return what should be found at a place, best first, from the definition."""

    def grown(self, query: Any, bound_id: int, margin_m: float) -> Any:
        """Return what a device must hold all of, if it is more than what should be found.

        `bound_id` is what the engine says of it, the margin that of its position.
        """


@dataclass(frozen=True)
class TopKAsk:
    interest: Interest
    k: int
    region: RegionMode
    extra: int


class TopK:
    def draw(self, dice):
        region = dice.random.choice((RegionMode.ANCHORED, RegionMode.ANCHORED, RegionMode.ELLIPSE))
        extra = dice.random.choice((BY_COST, BY_COST, 0, 1, 5))
        return TopKAsk(dice.interest(), dice.random.randint(1, 4), region, extra)

    def specs(self, query):
        return TopKSpecs(
            interest_batch([one.interest for one in query]),
            ids(one.k for one in query),
            ids(int(one.region) for one in query),
            ids(one.extra for one in query),
        )

    def keywords(self, query):
        return query.interest.keywords

    def needs_exact_position(self, query):
        return query.region is RegionMode.ELLIPSE

    def result(self, query, x_m, y_m, objects):
        lengths = [(query.interest.length(x_m, y_m, one), one.object_id) for one in objects]
        return [number for _, number in sorted(one for one in lengths if one[0] is not None)[: query.k]]

    def grown(self, query, bound_id, margin_m):  # noqa: ARG002
        return query


@dataclass(frozen=True)
class BooleanAsk:
    clauses: tuple[tuple[frozenset[int], frozenset[int]], ...]
    """Required and excluded keywords of each."""
    box: Box | None = None
    """A fixed rectangle; else a polygon or a circle."""
    polygon: tuple[Ring, ...] = ()
    """A fixed polygon: its outer ring, then holes."""
    center: tuple[float, float] | None = None
    """Of a fixed circle; else it moves."""
    radius_m: float = 0.0
    extent: tuple[float, float] | None = None
    """Width and height of a rectangle that moves."""
    region: RegionMode = RegionMode.ANCHORED

    def is_asked_for(self, one):
        return any(
            required <= one.keywords and not excluded & one.keywords
            for required, excluded in self.clauses
        )


class Boolean:
    def draw(self, dice):
        clauses = []
        for _ in range(dice.random.choice((1, 1, 1, 2, 3))):
            required = dice.words(2, 4)
            excluded = dice.words(1, 6) - required if dice.random.random() < 0.3 else frozenset()
            clauses.append((required, excluded))
        kind = dice.random.choice(("moving", "moving", "extent", "circle", "rectangle"))
        if kind == "rectangle":
            box = dice.box()
            polygon = dice.polygon()
            return BooleanAsk(tuple(clauses), None if polygon else box, polygon)
        is_nearest = kind in ("moving", "extent") and dice.random.random() < 0.25
        region = RegionMode.NEAREST if is_nearest else RegionMode.ANCHORED
        if kind == "extent":
            extent = tuple(dice.random.choice((1.0, 2.0, 5.0, 30.0)) for _ in range(2))
            return BooleanAsk(tuple(clauses), extent=extent, region=region)
        radius_m = dice.random.choice((0.5, 1.0, 3.0, 5.0, 40.0))
        center = None if kind == "moving" else (dice.coordinate(), dice.coordinate())
        return BooleanAsk(tuple(clauses), center=center, radius_m=radius_m, region=region)

    def specs(self, query):
        clauses = [clause for one in query for clause in one.clauses]
        centers = np.array([self._center(one) for one in query], dtype=np.float64).reshape(-1, 2)
        ranges = Ranges(
            np.array([_shape(one) for one in query], dtype=np.int8),
            np.array([_is_moving(one) for one in query], dtype=np.bool_),
            centers[:, 0],
            centers[:, 1],
            np.array([one.radius_m for one in query], dtype=np.float64),
            boxes_of([_box(one) or _about_origin(one.extent or (0.0, 0.0)) for one in query]),
            rings_of([one.polygon for one in query]),
        )
        return BooleanSpecs(
            np.cumsum([0, *(len(one.clauses) for one in query)], dtype=np.int64),
            keyword_lists([required for required, _ in clauses]),
            keyword_lists([excluded for _, excluded in clauses]),
            ranges,
            np.array([one.region for one in query], dtype=np.int8),
        )

    def keywords(self, query):
        return frozenset().union(*(words for clause in query.clauses for words in clause))

    def needs_exact_position(self, query):
        return query.region is RegionMode.NEAREST

    def _center(self, query, x_m=0.0, y_m=0.0):
        box = _box(query)
        if box is not None:
            return (box.x1_m + box.x2_m) / 2.0, (box.y1_m + box.y2_m) / 2.0
        return query.center or (x_m, y_m)

    def result(self, query, x_m, y_m, objects):
        x_m, y_m = self._center(query, x_m, y_m)
        if query.polygon:
            wanted = OraclePolygon(query.polygon)
        elif query.box is not None:
            wanted = _rectangle(query.box)
        elif query.extent is not None:
            wanted = OracleExtent(*query.extent, (x_m, y_m))
        else:
            wanted = OracleCircle(query.radius_m, (x_m, y_m))
        found = [
            (math.sqrt((x_m - one.x_m) ** 2 + (y_m - one.y_m) ** 2), one.object_id)
            for one in objects
            if query.is_asked_for(one) and is_within(wanted, (one.x_m, one.y_m), one.area)
        ]
        return [number for _, number in sorted(found)[:MATCHES_MAX]]

    def grown(self, query, bound_id, margin_m):
        """Of too many, those nearest in the circle grown by the margin are held: areas may be others."""
        if not (bound_id and _is_moving(query)):
            return query
        if query.extent is None:
            return replace(query, radius_m=query.radius_m + margin_m)
        return replace(query, extent=tuple(side_m + 2.0 * margin_m for side_m in query.extent))


class AreaDice(BoxDice):
    """Draws objects that are points, rectangles, or L-shaped."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._areas = BoxDice(seed)

    def polygon(self) -> tuple[Ring, ...]:
        """Return an L, one with a hole, or nothing."""
        kind = self._areas.random.choice(("L", "hole", "nothing"))
        if kind == "nothing":
            return ()
        size = self._areas.random.choice((1.0, 2.0))
        place = (self._areas.coordinate(), self._areas.coordinate(), size)
        return (l_shape(*place), hole(*place)) if kind == "hole" else (l_shape(*place),)

    def placed(self, object_id: int) -> PlacedObject:
        one, area = self.object(object_id), self._areas.area_object(object_id)
        place = (object_id, one.x_m, one.y_m, one.keywords)
        if self._areas.random.random() < 0.2:
            ring = l_shape(one.x_m, one.y_m, self._areas.random.choice((0.25, 1.0, 3.0)))
            return PlacedObject(*place, _about(ring), ring)
        x_m, y_m, box = one.x_m - area.x_m, one.y_m - area.y_m, area.box
        return PlacedObject(*place, Box(box.x1_m + x_m, box.y1_m + y_m, box.x2_m + x_m, box.y2_m + y_m))


@dataclass(frozen=True)
class PlacedObject:
    """An object with a box about it, or with a ring."""

    object_id: int
    x_m: float
    y_m: float
    keywords: frozenset[int]
    box: Box
    ring: Ring = ()

    @property
    def area(self) -> Area | None:
        if self.ring:
            return OraclePolygon((self.ring,))
        is_point = self.box == Box(self.x_m, self.y_m, self.x_m, self.y_m)
        return None if is_point else _rectangle(self.box)


def placed_batch(objects: list[PlacedObject]) -> tuple[ObjectBatch, Rings]:
    """Pack objects; a batch of points alone has no boxes."""
    return area_batch(objects), rings_of([(one.ring,) if one.ring else () for one in objects])


def l_shape(x_m: float, y_m: float, size: float) -> Ring:
    """Return an L with this point in it."""
    corners = ((-1, -2), (3, -2), (3, -1), (1, -1), (1, 4), (-1, 4))
    return tuple((x_m + size * x, y_m + size * y) for x, y in corners)


def hole(x_m: float, y_m: float, size: float) -> Ring:
    """Return a hole of the L about a place."""
    corners = ((-0.5, 0.0), (0.5, 0.0), (0.5, 3.0), (-0.5, 3.0))
    return tuple((x_m + size * x, y_m + size * y) for x, y in corners)


def rings_of(rows: Sequence[tuple[Ring, ...]]) -> Rings:
    flat = [ring for row in rows for ring in row]
    points = np.array([vertex for ring in flat for vertex in ring], dtype=np.float64).reshape(-1, 2)
    return Rings(
        np.cumsum([0, *map(len, rows)], dtype=np.int64),
        np.cumsum([0, *map(len, flat)], dtype=np.int64),
        points[:, 0].copy(),
        points[:, 1].copy(),
    )


def _shape(query):
    if query.polygon:
        return POLYGON
    return CIRCLE if query.box is None and query.extent is None else RECTANGLE


def _is_moving(query):
    return not query.polygon and query.box is None and query.center is None


def _about_origin(extent):
    width_m, height_m = extent
    return Box(-width_m / 2.0, -height_m / 2.0, width_m / 2.0, height_m / 2.0)


def _about(ring):
    xs, ys = zip(*ring, strict=True)
    return Box(min(xs), min(ys), max(xs), max(ys))


def _box(query):
    return _about(query.polygon[0]) if query.polygon else query.box


def _rectangle(box):
    return OracleRectangle(box.x1_m, box.y1_m, box.x2_m, box.y2_m)


class Stationary(TopK):
    """The k best where the device is, kept right by the server."""

    def draw(self, dice):
        return TopKAsk(dice.interest(), dice.random.randint(1, 4), RegionMode.STATIONARY, 0)

    def specs(self, query):
        return StationarySpecs(
            interest_batch([one.interest for one in query]), ids(one.k for one in query)
        )

    def needs_exact_position(self, query):  # noqa: ARG002
        return True


KINDS: dict[int, Kind] = {TOP_K: TopK(), BOOLEAN: Boolean(), STATIONARY: Stationary()}
