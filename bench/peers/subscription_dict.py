"""A naive subscription index: keyword to subscriptions, verified one by one.

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
from bench.peers.dict_lists import DictLists
from index.batches import InterestBatch, Ints, KeywordIds, Matches, ObjectBatch, ReachBatch
from index.contracts import InconsistentIndexError
from safe_region.scoring.formulas import text_distance

Place = tuple[float, float, float, float, int]
"""x_m, y_m, radius_m, reach_m, reach_id."""


class Interest(NamedTuple):
    """Keywords and scoring of a subscription."""

    weight_m: float
    similarity: int
    keywords: frozenset[int]


class SubscriptionDict(DictLists[Interest, int]):
    """See `index.contracts.SubscriptionIndex`."""

    def __init__(self) -> None:
        super().__init__()
        self._places: dict[int, Place] = {}

    def keys_of(self, one: int) -> frozenset[int]:
        """Return the keywords of a subscription."""
        return self._entries[one].keywords

    def item_of(self, one: int) -> int:
        """Return the id of a subscription: its place is looked up, so that a move changes no list."""
        return one

    def insert(self, reaches: ReachBatch, interests: InterestBatch) -> None:
        """Add subscriptions."""
        self.require_new(reaches.ids)
        columns = (
            interests.weight_m.tolist(),
            interests.similarity.tolist(),
            keyword_sets(interests.keywords),
        )
        for one, place, weight_m, similarity, words in zip(
            reaches.ids.tolist(), _places(reaches), *columns, strict=True
        ):
            self._places[one] = place
            self.enter(one, Interest(weight_m, similarity, frozenset(words.tolist())))

    def move(self, reaches: ReachBatch) -> None:
        """Replace the places and reaches of subscriptions."""
        for one in reaches.ids.tolist():
            if one not in self._places:
                raise KeyError(f"id {one} is not in the index")
        self._places.update(zip(reaches.ids.tolist(), _places(reaches), strict=True))

    def remove(self, ids: Ints) -> None:
        """Remove subscriptions."""
        self.require_known(ids)
        for one in ids.tolist():
            self.leave(one)
            del self._places[one]

    def match(self, objects: ObjectBatch) -> Matches:
        """Find the subscriptions that each object affects."""
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
        """Do nothing: this index does not learn."""

    def _affected(self, object_id: int, x_m: float, y_m: float, words: KeywordIds) -> Iterator[int]:
        wanted = frozenset(words.tolist())
        candidates: set[int] = set()
        for word in wanted:
            candidates.update(self._lists.get(word, ()))
        self.candidate_count += len(candidates)
        for one in candidates:
            weight_m, similarity, keywords = self._entries[one]
            here_x, here_y, radius_m, reach_m, reach_id = self._places[one]
            common = len(keywords & wanted)
            share = weight_m * text_distance(similarity, common, len(keywords), len(wanted))
            dx, dy = here_x - x_m, here_y - y_m
            nearest = max(0.0, math.sqrt(dx * dx + dy * dy) - radius_m) + share
            if (nearest, object_id) < (reach_m, reach_id):
                yield one

    def memory_bytes(self) -> int:
        """Return the size of the dictionaries, of the lists, and of their contents."""
        size = super().memory_bytes() + sys.getsizeof(self._places)
        number = sys.getsizeof(1.0)
        for one, place in self._places.items():
            interest = self._entries[one]
            size += sys.getsizeof(one) + sys.getsizeof(place) + sys.getsizeof(interest)
            size += sys.getsizeof(interest.keywords) + number * (len(place) + 1)
        return size

    def check(self) -> None:
        """Verify that the lists agree with the subscriptions, and that each has a place."""
        super().check()
        if self._places.keys() != self._entries.keys():
            raise InconsistentIndexError("the positions do not match the subscriptions")


def _places(reaches: ReachBatch) -> Iterator[Place]:
    columns = (reaches.x_m, reaches.y_m, reaches.radius_m, reaches.reach_m, reaches.reach_id)
    return zip(*(column.tolist() for column in columns), strict=True)
