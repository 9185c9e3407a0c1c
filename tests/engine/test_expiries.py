"""The queue of expiries: what is due, and how much it keeps."""

from __future__ import annotations

import random

import numpy as np
import pytest

from engine.expiries import Expiries
from index.tables.id_map import IdMap
from tests.engine.test_engine import Line
from tests.support.amounts import named, seeds


def ids(values):
    return np.array(list(values), dtype=np.int64)


@pytest.mark.parametrize("seed", seeds(10), ids=named)
def test_what_is_due_is_due_whatever_was_removed(seed):
    dice = random.Random(seed.start)
    queue, there, expiries = Expiries(), IdMap(), {}
    next_id = most = 0
    for now_ms in range(60):
        count = dice.choice((0, 5, 900))
        new = {next_id + i: now_ms + dice.choice((1, 2, 40, 10_000)) for i in range(count)}
        next_id += count
        queue.push(ids(new.values()), ids(new))
        there.insert(ids(new), np.zeros(count, dtype=np.int32))
        expiries |= new
        most = max(most, len(expiries))
        gone = dice.sample(sorted(expiries), int(len(expiries) * dice.choice((0.0, 0.1, 0.99))))
        there.remove(ids(gone))
        for one in gone:
            del expiries[one]
        queue.drop_gone(there)
        assert queue.memory_bytes() <= 16 * 1.5 * (2 * most + 1_024 + 900)
        assert queue.next_ms() is not None or not expiries
        popped = queue.pop_due(now_ms)
        popped = popped[there.present(popped)]
        times = [expiries.pop(one) for one in popped.tolist()]
        assert times == sorted(times)
        assert min(expiries.values(), default=now_ms + 1) > now_ms
        there.remove(popped)


def test_the_queue_of_an_engine_is_bounded_by_its_live_objects():
    """Objects that expire in a year and are retracted at once leave nothing behind."""
    line = Line()
    line.publish(*range(10), expiry_ms=5_000)
    sizes = []
    for _ in range(30):
        first = line.next_id
        line.publish(*range(500), expiry_ms=10**11)
        line.engine.remove(ids(range(first, line.next_id)))
        sizes.append(line.engine.memory_bytes())
    assert sizes[10] == sizes[-1]
    assert line.engine.objects.next_due_ms() == 5_000
    assert sorted(line.engine.advance(5_000).tolist()) == list(range(1, 11))
    line.engine.check()
