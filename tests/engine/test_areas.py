"""How far searches for areas reach beyond their points."""

from __future__ import annotations

import numpy as np
import pytest

from engine.objects import Objects
from index.batches import Boxes, KeywordLists, ObjectBatch
from index.naive import NaiveObjectIndex

FOREVER = 2**62


def ids(values):
    return np.array(list(values), dtype=np.int64)


def publish(objects, numbers, half_m):
    """Squares about the origin."""
    numbers = ids(numbers)
    zeros, halves = np.zeros(len(numbers)), np.full(len(numbers), half_m)
    boxes = Boxes(-halves, -halves, halves, halves)
    batch = ObjectBatch(numbers, zeros, zeros, KeywordLists.of([[1]] * len(numbers)), boxes)
    objects.insert(batch, np.full(len(numbers), FOREVER, dtype=np.int64))


def grown_by_m(objects):
    zero = np.zeros(1)
    return float(objects.areas.grown(Boxes(zero, zero, zero, zero)).x2_m[0])


@pytest.fixture
def objects():
    return Objects(NaiveObjectIndex, NaiveObjectIndex())


def test_a_large_area_makes_searches_larger_while_it_is_there_and_not_for_ever(objects):
    publish(objects, range(100), 2.0)
    assert grown_by_m(objects) == pytest.approx(2.0)
    publish(objects, [1_000], 5_000.0)
    assert grown_by_m(objects) == pytest.approx(5_000.0)
    for first in range(0, 300, 10):  # others come and go
        objects.remove(ids(range(first, first + 10)))
        publish(objects, range(first + 100, first + 110), 2.0)
        objects.check()
    assert grown_by_m(objects) == pytest.approx(5_000.0)
    objects.remove(ids([1_000]))
    for first in range(300, 420, 10):
        objects.remove(ids(range(first, first + 10)))
        publish(objects, range(first + 100, first + 110), 2.0)
        objects.check()
    assert grown_by_m(objects) == pytest.approx(2.0)


def test_without_areas_searches_are_not_larger(objects):
    publish(objects, range(3), 2.0)
    publish(objects, [7], 0.0)
    objects.remove(ids(range(3)))
    assert grown_by_m(objects) < 1e-300
    objects.check()
