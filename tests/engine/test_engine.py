"""The engine as arrays: what it says, in the cases that the whole system seldom reaches."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine import Engine, EngineOptions, Positions
from engine.contracts import TOP_K
from engine.top_k.matcher import TopKSpecs
from engine.windows import Lasts
from index.batches import InterestBatch, KeywordLists, ObjectBatch
from index.contracts import InconsistentIndexError
from safe_region.regions.region import RegionMode

SUSHI = 0
FOREVER = 2**62


def ids(*values):
    return np.array(values, dtype=np.int64)


def floats(*values):
    return np.array(values, dtype=np.float64)


class Line:
    """Objects and devices on a line; weight 0, so that lengths are distances."""

    def __init__(self, extra=2, region=RegionMode.ANCHORED, k=2) -> None:
        self.engine = Engine(EngineOptions(buffer_extra=extra))
        self.matcher = self.engine.matchers[TOP_K]
        self.region, self.k = region, k
        self.next_id = 1

    def publish(self, *places, expiry_ms=FOREVER):
        numbers = np.arange(self.next_id, self.next_id + len(places), dtype=np.int64)
        self.next_id += len(places)
        words = KeywordLists.of([[SUSHI]] * len(places))
        batch = ObjectBatch(numbers, floats(*places), np.zeros(len(places)), words)
        return self.engine.publish(batch, np.full(len(places), expiry_ms, dtype=np.int64))

    def subscribe(self, handle, place):
        interests = InterestBatch(floats(0.0), np.ones(1, dtype=np.int8), KeywordLists.of([[SUSHI]]))
        self.matcher.subscribe(ids(handle), TopKSpecs(interests, ids(self.k), ids(self.region)))
        return self.evaluate(handle, place)

    def evaluate(self, handle, place):
        return self.engine.evaluate(Positions(ids(handle), floats(place), floats(0.0)))

    def held(self, handle):
        return sorted(self.engine.held(handle)[0].tolist())

    def reach(self, handle):
        bounds = self.engine.bounds(ids(handle))
        return float(bounds.bound_m[0]), int(bounds.bound_id[0])

    def pending(self, handle):
        table = self.matcher.subscriptions
        (slot,) = table.slots(ids(handle)).tolist()
        return set(self.matcher.tables.pending.ids(table.rows, slot))

    def is_pending(self, handle):
        return self.engine.are_pending(ids(handle)).tolist() == [True]


def sent(changes):
    return [(row["handle"], row["object_id"], bool(row["is_drop"])) for row in changes]


def test_a_buffer_is_the_best_and_the_reach_the_next():
    line = Line()
    line.publish(5, 1, 4, 2, 3, 6)
    assert sent(line.subscribe(7, 0)) == [(7, 2, False), (7, 4, False), (7, 5, False), (7, 3, False)]
    assert line.reach(7) == (5.0, 1)
    line.engine.check()


def test_the_next_time_an_object_leaves_a_window_is_known_though_the_first_ones_are_gone():
    line = Line()
    windows = line.engine.objects.windows
    line.matcher.subscribe(
        ids(7),
        TopKSpecs(
            InterestBatch(floats(0.0), np.ones(1, dtype=np.int8), KeywordLists.of([[SUSHI]])),
            ids(2),
            ids(RegionMode.ANCHORED),
            lasts=Lasts(ids(60_000), ids(0)),
        ),
    )
    for now_ms in (1_000, 1_500, 31_000):
        line.engine.advance(now_ms)
        line.publish(1)
    assert windows.next_due_ms() == 61_000
    line.engine.remove(ids(1))
    assert windows.next_due_ms() == 61_500
    line.engine.remove(ids(2, 3))
    assert windows.next_due_ms() is None
    line.publish(1)
    assert windows.next_due_ms() == 91_000
    line.engine.check()


def test_a_report_sends_only_the_difference():
    line = Line()
    line.publish(1, 2, 3, 4, 5, 6)
    line.subscribe(7, 0)
    assert sorted(sent(line.evaluate(7, 3.9))) == [(7, 1, True), (7, 5, False)]
    assert sent(line.evaluate(7, 3.9)) == []


def test_fewer_than_fit_leave_the_reach_infinite():
    line = Line()
    line.publish(1, 2, 3)
    line.subscribe(7, 0)
    assert line.reach(7) == (math.inf, 0)
    assert sent(line.publish(1000).changes) == [(7, 4, False)]


def test_objects_removed_since_the_last_anchor_are_skipped():
    """Where as many as are looked for used to be there are fewer now: of one device, not of the other."""
    line = Line()
    line.publish(*range(1, 11), *range(1001, 1011), *range(2000, 2010))
    line.subscribe(7, 0)
    line.subscribe(8, 1000)
    line.engine.remove(np.arange(1, 10, dtype=np.int64))
    line.engine.evaluate(Positions(ids(8, 7), floats(1000, 0), floats(0, 0)))
    assert line.held(7) == [10, 11, 12, 13]
    assert line.reach(7) == (1004.0, 14)
    assert line.held(8) == [11, 12, 13, 14]
    assert line.reach(8) == (5.0, 15)
    line.engine.check()


def test_nothing_is_looked_for_beyond_where_enough_was_seen(monkeypatch):
    line = Line()
    line.publish(*range(1, 1001))
    line.subscribe(7, 0)
    query = []
    best = line.engine.objects.index.best

    def note(interests, x_m, y_m, count, bound_m, first_id):
        query.extend(bound_m.tolist())
        return best(interests, x_m, y_m, count, bound_m, first_id)

    monkeypatch.setattr(line.engine.objects.index, "best", note)
    line.evaluate(7, 3.0)
    assert query == [pytest.approx(5.0 + 3.0, rel=1e-5)]
    assert query[0] >= 8.0
    assert line.held(7) == [1, 2, 3, 4]
    assert line.reach(7) == (2.0, 5)


def test_arrivals_that_overflow_lower_the_reach():
    line = Line()  # room for k + b + b/4 + 4 = 8
    line.publish(10, 20, 30, 40, 50)
    line.subscribe(7, 0)
    first = line.publish(11, 12, 13, 14)
    assert len(first.rebound) == 0
    second = line.publish(15)
    assert second.rebound.tolist() == [7]
    assert line.held(7) == [1, 6, 7, 8]
    assert line.reach(7) == (14.0, 9)
    assert all(is_drop for _, _, is_drop in sent(second.changes))
    line.engine.check()


def test_a_lowered_reach_is_sent_even_if_nothing_else_changes():
    """Many at once beyond what is held: nothing enters, nothing leaves, but the reach is another."""
    line = Line(extra=0, k=4)
    line.publish(1, 2, 3, 4, 9)
    line.subscribe(7, 0)
    published = line.publish(5, 6, 7, 8, 8.5)
    assert sent(published.changes) == []
    assert published.rebound.tolist() == [7]
    assert line.reach(7) == (5.0, 6)


def test_expiry_is_not_sent_and_retraction_is():
    line = Line()
    line.publish(1, expiry_ms=100)
    line.publish(2, 3)
    line.subscribe(7, 0)
    line.subscribe(8, 0)
    assert line.engine.advance(99).tolist() == []
    assert line.engine.advance(100).tolist() == [1]
    assert line.held(7) == [2, 3]
    assert sent(line.engine.remove(ids(3))) == [(7, 3, True), (8, 3, True)]
    with pytest.raises(ValueError, match="now_ms is 99, must be at least 100"):
        line.engine.advance(99)
    line.engine.check()


def test_an_object_retracted_early_does_not_expire():
    line = Line()
    line.publish(1, 2, expiry_ms=100)
    line.engine.remove(ids(1))
    assert line.engine.advance(100).tolist() == [2]


def test_parked_subscriptions_hold_nothing_and_their_room_is_used_again():
    line = Line()
    line.publish(*range(20))
    line.subscribe(7, 0)
    end = line.matcher.buffers.end
    line.engine.park(ids(7))
    assert line.engine.are_awake(ids(7)).tolist() == [False]
    assert sent(line.publish(0.5).changes) == []
    line.subscribe(8, 3)
    assert line.matcher.buffers.end == end
    line.engine.unsubscribe(ids(7))
    line.engine.check()


class TestEllipse:
    """Lamps' event of a new object."""

    @pytest.fixture
    def line(self):
        line = Line(region=RegionMode.ELLIPSE)
        line.publish(1, 2, 20)
        line.subscribe(7, 0)
        return line

    def test_it_holds_the_result_only(self, line):
        assert line.held(7) == [1, 2]
        assert line.reach(7) == (20.0, 3)

    def test_a_new_object_waits(self, line):
        published = line.publish(1.5)
        assert sent(published.changes) == []
        assert published.pending.tolist() == [7]
        assert line.is_pending(7)
        assert line.pending(7) == {4}
        assert line.held(7) == [1, 2]

    def test_a_pending_subscription_is_not_named_again(self, line):
        assert line.publish(1.5, 1.6).pending.tolist() == [7]
        assert line.publish(1.7).pending.tolist() == []
        assert line.pending(7) == {4, 5, 6}
        line.engine.check()

    def test_one_that_can_matter_nowhere_in_the_region_does_not(self, line):
        assert line.publish(25).pending.tolist() == []
        assert not line.is_pending(7)

    def test_one_that_enters_needs_no_search(self, line):
        line.publish(1.5)
        line.engine.objects.index.best = None  # would be called
        assert sorted(sent(line.evaluate(7, 0.5))) == [(7, 2, True), (7, 4, False)]
        assert line.reach(7) == (1.5, 2)
        assert not line.is_pending(7)

    def test_one_that_does_not_enter_needs_one(self, line):
        line.publish(4)
        assert sent(line.evaluate(7, 0)) == []
        assert line.reach(7) == (4.0, 4)

    def test_a_removed_device_is_evaluated_again(self, line):
        line.publish(4)
        line.evaluate(7, 18)
        assert line.held(7) == [3, 4]
        line.engine.check()

    def test_an_object_removed_meanwhile_does_not_enter(self, line):
        line.publish(1.5)
        line.engine.remove(ids(4))
        assert sent(line.evaluate(7, 0)) == []
        line.engine.check()

    def test_a_parked_subscription_is_not_pending_and_its_pairs_are_free(self, line):
        pending = line.matcher.tables.pending
        line.subscribe(8, 0)
        for _ in range(3):
            assert line.publish(1.5).pending.tolist() == [7, 8]
            line.engine.park(ids(7))
            assert (line.is_pending(7), line.is_pending(8)) == (False, True)
            line.evaluate(7, 0)
            line.evaluate(8, 0)
            line.engine.check()
        assert (pending.end, len(pending), pending.free_count()) == (2, 0, 2)

    @pytest.mark.parametrize("part", ["chain", "free", "object"])
    def test_check_notices_lost_pairs(self, line, part):
        line.publish(1.5, 1.6)
        line.engine.check()
        table, pending = line.matcher.subscriptions, line.matcher.tables.pending
        (slot,) = table.slots(ids(7)).tolist()
        if part == "chain":
            pending.pairs["next"][table.rows["first_pending"][slot]] = -1
        elif part == "free":
            pending.ends[0] += 1
        else:
            pending.pairs["object_id"][:2] = 4
        with pytest.raises(InconsistentIndexError, match="pend"):
            line.engine.check()


@pytest.mark.parametrize("part", ["objects", "holdings", "reach", "room"])
def test_check_notices_damage(part):
    line = Line()
    line.publish(*range(1, 12))
    line.subscribe(7, 0)
    line.subscribe(8, 2)
    line.engine.check()
    table, subscriptions = line.engine.objects.table, line.matcher.subscriptions
    if part == "objects":
        table.rows["first_holding"][table.slots(ids(1))] = -1
    elif part == "holdings":
        line.matcher.buffers.holdings["owner"][0] = 1
    elif part == "reach":
        subscriptions.rows["reach_m"][subscriptions.slots(ids(7))] = 3.5
    else:
        line.matcher.buffers.ends[0] += 4
    with pytest.raises(InconsistentIndexError):
        line.engine.check()
