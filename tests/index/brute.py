"""What indexes should say, from the definition, and random batches to ask them with.

Coordinates are small integers, weights are few, so that lengths tie often.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

import numpy as np

from index.batches import InterestBatch, KeywordLists, ObjectBatch, ReachBatch
from safe_region import oracle

SIMILARITIES = {1: "jaccard", 2: "dice", 3: "cosine"}
TFIDF = 4
SIDE = 6
VOCABULARY = 9
WEIGHTS = {keyword: (3 * keyword % 7 + 1) * 0.75 for keyword in range(-9, 8_000)}
"""Of keywords, for TFIDF: few, so that lengths tie."""


@dataclass(frozen=True)
class Object:
    object_id: int
    x_m: float
    y_m: float
    keywords: frozenset[int]


@dataclass(frozen=True)
class Interest:
    weight_m: float
    similarity: int
    keywords: frozenset[int]

    def share(self, one: Object) -> float | None:
        """Text share of an object; None if it does not qualify."""
        if not self.keywords & one.keywords:
            return None
        if self.similarity == TFIDF:
            return self.weight_m * oracle.tfidf_distance(WEIGHTS, self.keywords, one.keywords)
        return self.weight_m * oracle.text_distance(
            SIMILARITIES[self.similarity], self.keywords, one.keywords
        )

    def length(self, x_m: float, y_m: float, one: Object) -> float | None:
        """Length of an object seen from a point; None if it does not qualify."""
        share = self.share(one)
        if share is None:
            return None
        dx, dy = x_m - one.x_m, y_m - one.y_m
        return math.sqrt(dx * dx + dy * dy) + share


@dataclass(frozen=True)
class Anchored:
    subscription_id: int
    x_m: float
    y_m: float
    radius_m: float
    reach_m: float
    reach_id: int
    interest: Interest

    def is_matched_by(self, one: Object) -> bool:
        share = self.interest.share(one)
        if share is None:
            return False
        nearest = max(0.0, math.dist((self.x_m, self.y_m), (one.x_m, one.y_m)) - self.radius_m)
        return (nearest + share, one.object_id) < (self.reach_m, self.reach_id)


class Dice:
    """Random things from one seed; interests of some similarities only."""

    def __init__(self, seed: int, similarities: tuple[int, ...] = tuple(SIMILARITIES)) -> None:
        self.random = random.Random(seed)
        self.similarities = similarities

    def words(self, most: int, vocabulary: int = VOCABULARY) -> frozenset[int]:
        return frozenset(self.random.sample(range(vocabulary), self.random.randint(1, most)))

    def coordinate(self) -> float:
        return float(self.random.randint(-SIDE, SIDE))

    def object(self, object_id: int) -> Object:
        return Object(object_id, self.coordinate(), self.coordinate(), self.words(6))

    def interest(self) -> Interest:
        weight_m = self.random.choice((0.0, 1.0, 6.0, 60.0))
        most = self.random.choice((3, 4, 4, 7))
        return Interest(weight_m, self.random.choice(self.similarities), self.words(most))

    def anchored(self, subscription_id: int, interest: Interest | None = None) -> Anchored:
        reach_m = self.random.choice((0.0, 2.0, 5.0, 13.0, 50.0, float("inf")))
        return Anchored(
            subscription_id,
            self.coordinate(),
            self.coordinate(),
            self.random.choice((0.0, 0.0, 0.0, 1.0, 4.0)),
            reach_m,
            self.random.randint(0, 60),
            interest or self.interest(),
        )


def keyword_lists(rows: list[frozenset[int]]) -> KeywordLists:
    return KeywordLists.of([sorted(row) for row in rows])


def object_batch(objects: list[Object]) -> ObjectBatch:
    return ObjectBatch(
        np.array([one.object_id for one in objects], dtype=np.int64),
        np.array([one.x_m for one in objects], dtype=np.float64),
        np.array([one.y_m for one in objects], dtype=np.float64),
        keyword_lists([one.keywords for one in objects]),
        norm2=np.array(
            [sum(WEIGHTS[word] ** 2 for word in one.keywords) for one in objects], dtype=np.float64
        ),
    )


def interest_batch(interests: list[Interest]) -> InterestBatch:
    squares = [
        WEIGHTS[word] ** 2 if one.similarity == TFIDF else 1.0
        for one in interests
        for word in sorted(one.keywords)
    ]
    return InterestBatch(
        np.array([one.weight_m for one in interests], dtype=np.float64),
        np.array([one.similarity for one in interests], dtype=np.int8),
        keyword_lists([one.keywords for one in interests]),
        np.array(squares, dtype=np.float64),
    )


def reach_batch(subscriptions: list[Anchored]) -> ReachBatch:
    return ReachBatch(
        np.array([one.subscription_id for one in subscriptions], dtype=np.int64),
        np.array([one.x_m for one in subscriptions], dtype=np.float64),
        np.array([one.y_m for one in subscriptions], dtype=np.float64),
        np.array([one.radius_m for one in subscriptions], dtype=np.float64),
        np.array([one.reach_m for one in subscriptions], dtype=np.float64),
        np.array([one.reach_id for one in subscriptions], dtype=np.int64),
    )


def ids(values) -> np.ndarray:
    return np.array(list(values), dtype=np.int64)
