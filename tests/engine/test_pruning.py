"""What k others beat everywhere and outlive is neither held nor told, and comes back if they go early."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Engine, EngineOptions, Positions
from engine.contracts import TOP_K, handle_of
from engine.top_k.matcher import TopKMatcher, TopKSpecs
from engine.windows import Lasts
from index.batches import InterestBatch, KeywordLists, ObjectBatch
from safe_region.scoring.formulas import Similarity

WEIGHT_M = 100.0
HANDLE = handle_of(TOP_K, 1)
ALIKE = [1]
"""Keywords of an object of text share 0; those of UNLIKE make it 75 metres."""
UNLIKE = [1, 2, 3, 4]


class One:
    """One subscription at the origin, of the keyword 1, for the best object; b is 8."""

    def __init__(self, k=1, window=(0, 0), **options):
        self.engine = Engine(EngineOptions(buffer_extra=8, **options), {TOP_K: TopKMatcher})
        interests = InterestBatch(
            np.array([WEIGHT_M]), np.array([Similarity.JACCARD], dtype=np.int8), KeywordLists.of([[1]])
        )
        lasts = Lasts(*(np.array([one], dtype=np.int64) for one in window))
        specs = TopKSpecs(interests, np.array([k]), np.array([1], dtype=np.int8), None, lasts)
        self.engine.matchers[TOP_K].subscribe(np.array([HANDLE]), specs)
        self.next_id = 1
        self.evaluate()

    def evaluate(self):
        self.engine.evaluate(Positions(np.array([HANDLE]), np.zeros(1), np.zeros(1)))

    def publish(self, words, x_m, expiry_ms):
        """Publish an object; return what was told."""
        batch = ObjectBatch(
            np.array([self.next_id]), np.array([x_m]), np.zeros(1), KeywordLists.of([words])
        )
        self.next_id += 1
        changes = self.engine.publish(batch, np.array([expiry_ms])).changes
        self.engine.check()
        return changes["object_id"].tolist()

    def remove(self, number):
        """Remove an object; return what enters and what leaves."""
        changes = self.engine.remove(np.array([number]))
        self.engine.check()
        dropped = changes["is_drop"] == 1
        return changes["object_id"][~dropped].tolist(), changes["object_id"][dropped].tolist()

    def held(self):
        return sorted(self.engine.held(HANDLE)[0].tolist())


def test_a_dominated_object_is_not_sent():
    one = One()
    assert one.publish(ALIKE, 3.0, 100) == [1]
    assert one.publish(UNLIKE, 9.0, 100) == []
    assert one.held() == [1]


def test_an_object_that_lives_longer_is_sent():
    one = One()
    one.publish(ALIKE, 3.0, 100)
    assert one.publish(UNLIKE, 9.0, 101) == [2]


@pytest.mark.parametrize("x_m", [-72.0, 78.0])
def test_an_object_that_is_nearer_somewhere_is_sent(x_m):
    """It is 75 metres off in text, so more than that in space is needed."""
    one = One()
    one.publish(ALIKE, 3.0, 100)
    assert one.publish(UNLIKE, x_m + 0.01 if x_m > 0 else x_m - 0.01, 100) == [2]
    assert one.publish(UNLIKE, x_m - 0.01 if x_m > 0 else x_m + 0.01, 100) == []


def test_as_many_as_k_have_to_beat_it():
    one = One(k=2)
    one.publish(ALIKE, 3.0, 100)
    assert one.publish(UNLIKE, 4.0, 100) == [2]
    assert one.publish(ALIKE, 5.0, 90) == [3]
    assert one.publish(UNLIKE, 6.0, 95) == [4], "only one lives as long"
    assert one.publish(UNLIKE, 6.0, 90) == []


def test_in_a_window_a_newer_object_is_sent():
    one = One(window=(0, 10))
    one.publish(ALIKE, 3.0, 100)
    assert one.publish(UNLIKE, 9.0, 100) == [2], "it counts when the first does not any more"
    assert one.publish(ALIKE, 4.0, 100) == [3]
    one.evaluate()
    assert one.held() == [1, 3], "the last one is newer than the second"


def test_a_dominated_object_returns_when_its_dominator_is_retracted():
    one = One()
    one.publish(ALIKE, 3.0, 100)
    one.publish(UNLIKE, 9.0, 100)
    one.publish(UNLIKE, 11.0, 60)
    assert one.remove(1) == ([2, 3], [1])
    one.publish(ALIKE, 2.0, 100)
    one.evaluate()
    assert one.held() == [4]
    assert one.remove(4) == ([2, 3], [4])


def test_a_dominated_object_does_not_return_when_its_dominator_expires():
    one = One()
    one.publish(ALIKE, 3.0, 100)
    one.publish(UNLIKE, 9.0, 100)
    sent = []
    one.engine.advance(100, on_changes=sent.append)
    one.engine.check()
    assert sum(map(len, sent)) == 0
    assert one.held() == []


def test_more_come_back_than_there_was_room_for():
    one = One()
    one.publish(ALIKE, 3.0, 100)
    for _ in range(200):
        assert one.publish(UNLIKE, 9.0, 100) == []
    added, dropped = one.remove(1)
    assert dropped == [1]
    assert added == one.held() == list(range(2, 202))


def test_without_pruning_all_objects_are_sent():
    one = One(prunes=False)
    one.publish(ALIKE, 3.0, 100)
    assert one.publish(UNLIKE, 9.0, 100) == [2]
    assert one.remove(1) == ([], [1])


def test_nothing_may_be_left_at_all():
    one = One()
    one.publish(ALIKE, 3.0, 100)
    assert one.publish(UNLIKE, 9.0, 10) == []
    one.engine.advance(10)
    assert one.remove(1) == ([], [1])
    one.engine.park(np.array([HANDLE]))
    one.engine.check()
    assert one.publish(ALIKE, 3.0, 100) == []
