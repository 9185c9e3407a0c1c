"""Kinds of subscriptions as tests of all matchers see them: one joins by a class and a line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from engine.boolean.layout import CIRCLE, RECTANGLE, BooleanSpecs, Ranges
from engine.contracts import BOOLEAN, TOP_K
from engine.polygons import Rings
from engine.top_k.layout import BY_COST
from engine.top_k.matcher import TopKSpecs
from safe_region.region import RegionMode
from tests.index.boxes import Box, BoxDice, boxes_of
from tests.index.brute import Interest, Object, ids, interest_batch, keyword_lists

MATCHES_MAX = 5


class Kind(Protocol):
    """What one kind of subscription asks for."""

    def draw(self, dice: BoxDice) -> Any:
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
    clauses: tuple[tuple[frozenset[int], frozenset[int]], ...]
    """Required and excluded keywords of each."""
    box: Box | None = None
    """A fixed rectangle; else a circle."""
    center: tuple[float, float] | None = None
    """Of a fixed circle; else it moves."""
    radius_m: float = 0.0

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
        kind = dice.random.choice(("moving", "moving", "circle", "rectangle"))
        if kind == "rectangle":
            return BooleanAsk(tuple(clauses), box=dice.box())
        radius_m = dice.random.choice((0.5, 1.0, 3.0, 5.0, 40.0))
        center = None if kind == "moving" else (dice.coordinate(), dice.coordinate())
        return BooleanAsk(tuple(clauses), center=center, radius_m=radius_m)

    def specs(self, asked):
        clauses = [clause for one in asked for clause in one.clauses]
        nothing = np.zeros(len(asked))
        centers = np.array([self._center(one) for one in asked], dtype=np.float64).reshape(-1, 2)
        ranges = Ranges(
            np.array([CIRCLE if one.box is None else RECTANGLE for one in asked], dtype=np.int8),
            np.array([one.box is None and one.center is None for one in asked], dtype=np.bool_),
            centers[:, 0],
            centers[:, 1],
            np.array([one.radius_m for one in asked], dtype=np.float64),
            boxes_of([one.box or Box(0.0, 0.0, 0.0, 0.0) for one in asked]),
            Rings(np.zeros(len(asked) + 1, dtype=np.int64), ids([0]), nothing[:0], nothing[:0]),
        )
        return BooleanSpecs(
            np.cumsum([0, *(len(one.clauses) for one in asked)], dtype=np.int64),
            keyword_lists([required for required, _ in clauses]),
            keyword_lists([excluded for _, excluded in clauses]),
            ranges,
        )

    def keywords(self, asked):
        return frozenset().union(*(words for clause in asked.clauses for words in clause))

    def needs_exact_position(self, asked):  # noqa: ARG002
        return False

    def _center(self, asked, x_m=0.0, y_m=0.0):
        if asked.box is not None:
            return (asked.box.x1_m + asked.box.x2_m) / 2.0, (asked.box.y1_m + asked.box.y2_m) / 2.0
        return asked.center or (x_m, y_m)

    def result(self, asked, x_m, y_m, objects):
        found = []
        x_m, y_m = self._center(asked, x_m, y_m)
        for one in objects:
            distance_m = math.sqrt((x_m - one.x_m) ** 2 + (y_m - one.y_m) ** 2)
            if asked.box is None:
                is_in_range = distance_m <= asked.radius_m
            else:
                is_in_range = asked.box.meets(Box(one.x_m, one.y_m, one.x_m, one.y_m))
            if is_in_range and asked.is_asked_for(one):
                found.append((distance_m, one.object_id))
        return [number for _, number in sorted(found)[:MATCHES_MAX]]


KINDS: dict[int, Kind] = {TOP_K: TopK(), BOOLEAN: Boolean()}
