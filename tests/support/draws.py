"""What a random world draws: places, words, objects, subscriptions.

Positions are small integers on a plane of one metre per degree, so that distances tie often.
"""

from __future__ import annotations

import random

from nearcast.model import Boolean, Clause, Last, Spec, TopK
from safe_region.earth.frame import Area, Frame
from safe_region.earth.shapes import Bounds, Circle, ObjectArea, Polygon, Range, Rectangle
from safe_region.geometry.shapes import inner_point
from safe_region.regions.region import RegionMode
from safe_region.scoring.formulas import SET_SIMILARITIES, Similarity
from safe_region.scoring.idf import IdfTable
from server.model import NewObject

SIDE = 12
PLANE = Frame(Area(-SIDE, -SIDE, SIDE, SIDE), 0.0, 0.0, 1.0, 1.0, 34.0)
WORDS = tuple("abcdefgh")


class Draws:
    """Draws from one seed.

    Parameters
    ----------
    chance
        Where they come from.
    is_line
        Whether everything lies on one line and there are two words: sums of distances tie as well.
    """

    def __init__(self, chance: random.Random, *, is_line: bool) -> None:
        self._chance = chance
        self._is_line = is_line

    def position(self) -> tuple[float, float]:
        lat = 0 if self._is_line else self._chance.randint(-SIDE, SIDE)
        return float(self._chance.randint(-SIDE, SIDE)), float(lat)

    def step(self) -> tuple[int, int]:
        lat = 0 if self._is_line else self._chance.randint(-1, 1)
        return self._chance.randint(-1, 1), lat

    def words(self, count_max: int) -> tuple[str, ...]:
        words = WORDS[:2] if self._is_line else WORDS
        count = self._chance.randint(1, min(count_max, len(words)))
        return tuple(sorted(self._chance.sample(words, count)))

    def new_object(self, key: str = "", ttl_ms: int = 0) -> NewObject:
        lon, lat = self.position()
        ttl_ms = ttl_ms or self._chance.choice((2, 5, 20, 1000))
        area = self._area(lon, lat)
        if area is not None:
            lon, lat = point_of(area)
        return NewObject(lon, lat, self.words(4), ttl_ms, self._chance.randbytes(8), key, area)

    def _area(self, lon: float, lat: float) -> ObjectArea | None:
        """Return an area near a place, for some objects; the service area has all of it."""
        kind = self._chance.choice(("point", "point", "point", "rectangle", "L"))
        if kind == "rectangle":
            width, height = (self._chance.choice((0.0, 1.0, 2.5, 8.0)) for _ in range(2))
            height = 0.0 if self._is_line else height
            return Bounds(lon, lat, min(lon + width, SIDE), min(lat + height, SIDE))
        size = self._chance.choice((0.25, 0.5, 1.0))
        if kind == "point" or self._is_line or max(abs(lon), abs(lat)) + 3.0 * size > SIDE:
            return None
        return _polygon(lon, lat, size, has_hole=False)

    def spec(self, *, is_anchored: bool) -> Spec:
        """Return what a device asks for, of any kind; in either mode unless it must be ANCHORED."""
        if self._chance.random() < 0.25:
            where, is_moving = self._range()
            is_nearest = is_moving and not is_anchored and self._chance.random() < 0.3
            region = RegionMode.NEAREST if is_nearest else RegionMode.ANCHORED
            window = None if is_nearest else self.window()
            return Boolean(self._clauses(), where, is_moving, region, window=window)
        return self.top_k(is_anchored=is_anchored)

    def _clauses(self) -> tuple[Clause, ...]:
        """Return an expression, sometimes with several clauses, or with excluded keywords."""
        clauses = []
        for _ in range(self._chance.choice((1, 1, 1, 2, 3))):
            required = frozenset(self.words(2))
            excluded = frozenset(self.words(1)) - required if self._chance.random() < 0.3 else ()
            clauses.append(Clause(required, frozenset(excluded)))
        return tuple(clauses)

    def _range(self) -> tuple[Range, bool]:
        """Return a range, and whether it moves. What is fixed may lie across the border."""
        radius_m = self._chance.choice((0.5, 1.0, 3.0, 5.0, 5.0, 30.0))
        lon, lat = self.position()
        kind = self._chance.choice(("moving", "moving", "extent", "circle", "rectangle", "polygon"))
        if kind == "moving":
            return Circle(radius_m), True
        if kind == "extent":
            return Rectangle(*(self._chance.choice((1.0, 2.0, 8.0, 40.0)) for _ in range(2))), True
        if kind == "circle":
            return Circle(radius_m, (lon, lat)), False
        if kind == "rectangle":
            width, height = (self._chance.choice((1.0, 2.0, 6.0, 25.0)) for _ in range(2))
            return Bounds(lon, lat, lon + width, lat + height), False
        size = self._chance.choice((1.0, 2.0, 4.0))
        return _polygon(lon, lat, size, has_hole=self._chance.random() < 0.5), False

    def idf_table(self) -> IdfTable:
        """Return a table of weights, of some words."""
        weights = {word: self._chance.choice((0.25, 1.0, 1.5, 3.0, 2.0**-16, 32.0)) for word in WORDS[:6]}
        return IdfTable(weights, self._chance.choice((0.5, 2.0)))

    def window(self) -> Last | None:
        """Return which objects count, for half of the subscriptions not all that live."""
        kind = self._chance.choice(("none", "none", "seconds", "count"))
        if kind == "seconds":
            return Last(seconds=self._chance.choice((0.001, 0.004, 0.02, 5.0)))
        return Last(count=self._chance.choice((1, 4, 15, 1000))) if kind == "count" else None

    def top_k(self, *, is_anchored: bool) -> TopK:
        """Return what a device asks for, in either mode unless it must be ANCHORED."""
        modes = (RegionMode.ANCHORED, RegionMode.ANCHORED, RegionMode.ELLIPSE, RegionMode.STATIONARY)
        region = self._chance.choice(modes[: 1 if is_anchored else 4])
        is_weighed = region is not RegionMode.ELLIPSE and self._chance.random() < 0.3
        similarity = Similarity.TFIDF if is_weighed else self._chance.choice(SET_SIMILARITIES)
        return TopK(
            frozenset(self.words(4)),
            self._chance.choice((1, 2, 3, self._chance.randint(1, 20))),
            self._chance.choice((0.001, 0.5, 0.5, 0.999, self._chance.uniform(0.001, 0.999))),
            similarity,
            region,
            None if region is RegionMode.ELLIPSE else self.window(),
            self.distance_scale_m(),
        )

    def distance_scale_m(self) -> float | None:
        """Return what distances are divided by, for half of the subscriptions not the diagonal."""
        return self._chance.choice((None, None, None, 1.0, 4.0, self._chance.uniform(1.0, 2_000.0)))


def point_of(area: ObjectArea) -> tuple[float, float]:
    """Return the point that stands for an area, on a plane of one metre per degree."""
    if isinstance(area, Bounds):
        return (area.lon_min + area.lon_max) / 2.0, (area.lat_min + area.lat_max) / 2.0
    point = inner_point(area.outer)
    return point.x_m, point.y_m


def _polygon(lon: float, lat: float, size: float, *, has_hole: bool) -> Polygon:
    """Return an L about a place, six times its size, whose lower left half may have a hole."""
    corners = ((-3, -3), (3, -3), (3, 0), (0, 0), (0, 3), (-3, 3))
    hole = ((-2, -2), (-1, -2), (-1, -1), (-2, -1))
    rings = [
        tuple((lon + x * size, lat + y * size) for x, y in ring)
        for ring in ((corners, hole) if has_hole else (corners,))
    ]
    return Polygon(rings[0], tuple(rings[1:]))
