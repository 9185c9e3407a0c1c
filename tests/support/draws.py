"""What a random world draws: places, words, objects, subscriptions.

Positions are small integers on a plane of one metre per degree, so that distances tie often.
"""

from __future__ import annotations

import random

from nearcast.model import Boolean, Circle, Spec, TopK
from safe_region.frame import Area, Frame
from safe_region.region import RegionMode
from safe_region.scoring import Similarity
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
        return NewObject(lon, lat, self.words(4), ttl_ms, self._chance.randbytes(8), key)

    def spec(self, *, is_anchored: bool) -> Spec:
        """Return what a device asks for, of any kind; in either mode unless it must be ANCHORED."""
        if self._chance.random() < 0.25:
            radius_m = self._chance.choice((0.5, 1.0, 3.0, 5.0, 5.0, 30.0))
            return Boolean(frozenset(self.words(2)), Circle(radius_m))
        return self.top_k(is_anchored=is_anchored)

    def top_k(self, *, is_anchored: bool) -> TopK:
        """Return what a device asks for, in either mode unless it must be ANCHORED."""
        return TopK(
            frozenset(self.words(4)),
            self._chance.choice((1, 2, 3, self._chance.randint(1, 20))),
            self._chance.choice((0.001, 0.5, 0.5, 0.999, self._chance.uniform(0.001, 0.999))),
            self._chance.choice(list(Similarity)),
            RegionMode.ANCHORED if is_anchored else self._chance.choice(list(RegionMode)),
        )
