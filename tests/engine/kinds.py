"""Kinds of subscriptions as tests of all matchers see them: one joins by a class and a line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from engine.boolean.matcher import BooleanSpecs
from engine.contracts import BOOLEAN, TOP_K
from engine.top_k.layout import BY_COST
from engine.top_k.matcher import TopKSpecs
from safe_region.region import RegionMode
from tests.index.brute import Dice, Interest, Object, ids, interest_batch, keyword_lists

MATCHES_MAX = 5


class Kind(Protocol):
    """What one kind of subscription asks for."""

    def draw(self, dice: Dice) -> Any:
        """Draw what a subscription asks for."""

    def specs(self, asked: Sequence[Any]) -> Any:
        """Return what subscriptions ask for, as their matcher takes it."""

    def keywords(self, asked: Any) -> frozenset[int]:
        """Return all keywords of a subscription."""

    def needs_exact_position(self, asked: Any) -> bool:
        """Whether positions of the device must not have a margin."""

    def result(self, asked: Any, x_m: float, y_m: float, objects: Iterable[Object]) -> list[int]:
        """Return what should be found at a place, best first, from the definition."""


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

    def specs(self, asked):
        return TopKSpecs(
            interest_batch([one.interest for one in asked]),
            ids(one.k for one in asked),
            ids(int(one.region) for one in asked),
            ids(one.extra for one in asked),
        )

    def keywords(self, asked):
        return asked.interest.keywords

    def needs_exact_position(self, asked):
        return asked.region is RegionMode.ELLIPSE

    def result(self, asked, x_m, y_m, objects):
        lengths = [(asked.interest.length(x_m, y_m, one), one.object_id) for one in objects]
        return [number for _, number in sorted(one for one in lengths if one[0] is not None)[: asked.k]]


@dataclass(frozen=True)
class BooleanAsk:
    keywords: frozenset[int]
    radius_m: float


class Boolean:
    def draw(self, dice):
        return BooleanAsk(dice.words(2, 4), dice.random.choice((0.5, 1.0, 3.0, 5.0, 40.0)))

    def specs(self, asked):
        radii = np.array([one.radius_m for one in asked], dtype=np.float64)
        return BooleanSpecs(keyword_lists([one.keywords for one in asked]), radii)

    def keywords(self, asked):
        return asked.keywords

    def needs_exact_position(self, asked):  # noqa: ARG002
        return False

    def result(self, asked, x_m, y_m, objects):
        found = []
        for one in objects:
            distance_m = math.sqrt((x_m - one.x_m) ** 2 + (y_m - one.y_m) ** 2)
            if asked.keywords <= one.keywords and distance_m <= asked.radius_m:
                found.append((distance_m, one.object_id))
        return [number for _, number in sorted(found)[:MATCHES_MAX]]


KINDS: dict[int, Kind] = {TOP_K: TopK(), BOOLEAN: Boolean()}
