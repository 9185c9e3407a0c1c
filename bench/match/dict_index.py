"""A subscription index as one would write it at first: keyword to subscriptions, verified one by one.

Operations: insert O(keywords) and move O(1) a subscription; remove O(subscriptions that share a keyword);
match O(subscriptions that share a keyword) an object, in plain Python.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bench.datasets import keyword_sets
from index.batches import InterestBatch, Ints, KeywordIds, Matches, ObjectBatch, ReachBatch
from index.contracts import InconsistentIndexError
from safe_region.scoring import text_distance

Place = tuple[float, float, float, float, int]
"""x_m, y_m, radius_m, reach_m, reach_id."""


class Interest(NamedTuple):
    """What a subscription looks for."""

    weight_m: float
    similarity: int
    keywords: frozenset[int]


class DictIndex:
    """See `index.contracts.SubscriptionIndex`."""

    def __init__(self) -> None:
        self.candidate_count = 0
        """How many subscriptions were verified so far."""
        self._places: dict[int, Place] = {}
        self._interests: dict[int, Interest] = {}
        self._having: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def insert(self, reaches: ReachBatch, interests: InterestBatch) -> None:
        """Add subscriptions."""
        _require_different(reaches.ids)
        for one in reaches.ids.tolist():
            if one in self._places:
                raise KeyError(f"id {one} is already in the index")
        columns = (
            interests.weight_m.tolist(),
            interests.similarity.tolist(),
            keyword_sets(interests.keywords),
        )
        for one, place, weight_m, similarity, words in zip(
            reaches.ids.tolist(), _places(reaches), *columns, strict=True
        ):
            self._places[one] = place
            self._interests[one] = Interest(weight_m, similarity, frozenset(words.tolist()))
            for word in words.tolist():
                self._having.setdefault(word, []).append(one)

    def move(self, reaches: ReachBatch) -> None:
        """Give subscriptions a new place and reach."""
        self._require(reaches.ids)
        self._places.update(zip(reaches.ids.tolist(), _places(reaches), strict=True))

    def remove(self, ids: Ints) -> None:
        """Remove subscriptions."""
        self._require(ids)
        _require_different(ids)
        for one in ids.tolist():
            del self._places[one]
            for word in self._interests.pop(one).keywords:
                self._having[word].remove(one)

    def match(self, objects: ObjectBatch) -> Matches:
        """Find who is affected."""
        columns = (objects.ids.tolist(), objects.x_m.tolist(), objects.y_m.tolist())
        offsets = [0]
        found: list[int] = []
        if not self._places:
            return Matches(np.zeros(len(objects) + 1, dtype=np.int64), np.empty(0, dtype=np.int64))
        for object_id, x_m, y_m, words in zip(*columns, keyword_sets(objects.keywords), strict=True):
            found.extend(self._affected(object_id, x_m, y_m, words))
            offsets.append(len(found))
        return Matches(np.array(offsets, dtype=np.int64), np.array(found, dtype=np.int64))

    def observe(self, objects: ObjectBatch) -> None:
        """Do nothing: there is nothing to learn."""

    def _affected(self, object_id: int, x_m: float, y_m: float, words: KeywordIds) -> Iterator[int]:
        wanted = frozenset(words.tolist())
        candidates: set[int] = set()
        for word in wanted:
            candidates.update(self._having.get(word, ()))
        self.candidate_count += len(candidates)
        for one in candidates:
            weight_m, similarity, keywords = self._interests[one]
            here_x, here_y, radius_m, reach_m, reach_id = self._places[one]
            common = len(keywords & wanted)
            share = weight_m * text_distance(similarity, common, len(keywords), len(wanted))
            dx, dy = here_x - x_m, here_y - y_m
            nearest = max(0.0, math.sqrt(dx * dx + dy * dy) - radius_m) + share
            if (nearest, object_id) < (reach_m, reach_id):
                yield one

    def memory_bytes(self) -> int:
        """Size of the dictionaries, of the lists, and of what they hold."""
        size = sum(sys.getsizeof(one) for one in (self._places, self._interests, self._having))
        size += sum(sys.getsizeof(numbers) for numbers in self._having.values())
        numbers = sys.getsizeof(1.0)
        for one, place in self._places.items():
            interest = self._interests[one]
            size += sys.getsizeof(one) + sys.getsizeof(place) + sys.getsizeof(interest)
            size += sys.getsizeof(interest.keywords) + numbers * (len(place) + 1)
        return size

    def check(self) -> None:
        """Verify that the lists have what the subscriptions have."""
        pairs = {(word, one) for word, numbers in self._having.items() for one in numbers}
        wanted = {(word, one) for one, interest in self._interests.items() for word in interest.keywords}
        if pairs != wanted or self._places.keys() != self._interests.keys():
            raise InconsistentIndexError("the lists are not those of the subscriptions")
        if sum(map(len, self._having.values())) != len(pairs):
            raise InconsistentIndexError("a subscription is in a list twice")

    def _require(self, ids: Ints) -> None:
        for one in ids.tolist():
            if one not in self._places:
                raise KeyError(f"id {one} is not in the index")


def _places(reaches: ReachBatch) -> Iterator[Place]:
    columns = (reaches.x_m, reaches.y_m, reaches.radius_m, reaches.reach_m, reaches.reach_id)
    return zip(*(column.tolist() for column in columns), strict=True)


def _require_different(ids: Ints) -> None:
    values, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        raise KeyError(f"id {values[counts > 1][0]} is twice in the batch")
