"""Results follow from the rows of the feeds, however they fall into batches.

What is expected is written out here from the definition, and shares nothing with the job.
"""

from __future__ import annotations

import math
import random

import numpy as np
import pyarrow as pa
import pytest

from feeds.schemas import MESSAGES, PUBLISH, RETRACT, SUBSCRIBE, TOP_K
from streaming.arrays.reading import read_messages
from streaming.partition import early as early_module
from streaming.partition.alone import Alone
from streaming.partition.options import engine_options
from streaming.partition.window import Window
from streaming.result.audit import Definition
from streaming.window_size import WindowSize
from tests.streaming.feed import FRAME, RandomFeed
from tests.streaming.test_partition import SQUARE, WEIGHTS, read, received, require_same
from tests.support.amounts import named, seeds

COUNT, TIME = WindowSize(count=3), WindowSize(duration_ms=1_000)
WINDOWS = {
    "count": WindowSize(count=25),
    "few": WindowSize(count=1),
    "time": WindowSize(duration_ms=4_000),
}
PLACE = {"lon": 12.1, "lat": 55.05}


def message(object_id, time_ms, ttl_ms=None, **more):
    return {
        "action": PUBLISH,
        "object_id": object_id,
        "time_ms": time_ms,
        **PLACE,
        "keywords": ["tea"],
        "ttl_ms": ttl_ms,
        **more,
    }


def retraction(object_id, time_ms):
    return {"action": RETRACT, "object_id": object_id, "time_ms": time_ms}


def subscription(subscription_id, k=10, alpha=0.5, **more):
    return {
        "action": SUBSCRIBE,
        "subscription_id": subscription_id,
        "time_ms": 0,
        "kind": TOP_K,
        "keywords": ["tea", "milk"],
        "k": k,
        "alpha": alpha,
        "similarity": "jaccard",
        **PLACE,
        **more,
    }


class Job:
    """A partition, and what follows its changes."""

    def __init__(self, size):
        self.size, self.lists = size, {}
        self.partition = Alone(engine_options(SQUARE, FRAME.maxdist_m), size)
        self._messages, self._subscriptions = [], []

    def apply(self, messages=(), subscriptions=()):
        """Take a batch; return what became of it."""
        applied = self.partition.apply(*read(list(subscriptions), list(messages)))
        received(self.lists, applied.changes)
        self._messages += [] if applied.messages is None else [applied.messages]
        self._subscriptions += [] if applied.subscriptions is None else [applied.subscriptions]
        self.partition.check()
        return applied.counts

    def restore(self):
        """Build the partition anew from its log."""
        before, self.partition = (
            self.partition,
            Alone(engine_options(SQUARE, FRAME.maxdist_m), self.size),
        )
        self.partition.restore(
            before.messages.now_ms,
            before.messages.window.next_number,
            self._messages,
            self._subscriptions,
        )

    def ids(self, subscription_id=1):
        return sorted(self.lists.get(subscription_id, {}))


# -- the definition ------------------------------------------------------------------------------


def in_window(rows, size):
    """Return the messages that count, of all rows so far."""
    now_ms = max((row["time_ms"] for row in rows), default=0)
    published = {row["object_id"]: row for row in rows if row["action"] == PUBLISH}
    retracted = {row["object_id"] for row in rows if row["action"] == RETRACT}
    last = sorted(published.values(), key=lambda row: (row["time_ms"], row["object_id"]))
    if size.count:
        last = last[-size.count :]
    else:
        last = [row for row in last if row["time_ms"] > now_ms - size.duration_ms]
    return [
        row
        for row in last
        if row["object_id"] not in retracted
        and (row["ttl_ms"] is None or row["time_ms"] + row["ttl_ms"] > now_ms)
    ]


def weight(word):
    return WEIGHTS.get(word, 1.0) ** 2


def text_distance(similarity, own, others):
    common = len(own & others)
    if similarity == "jaccard":
        return 1.0 - common / len(own | others)
    if similarity == "dice":
        return 1.0 - 2.0 * common / (len(own) + len(others))
    if similarity == "cosine":
        return 1.0 - common / math.sqrt(len(own) * len(others))
    norms = [sum(map(weight, words)) for words in (own, others)]
    return 1.0 - sum(map(weight, own & others)) / math.sqrt(norms[0] * norms[1])


def best(row, messages):
    """Return the result of a top-k subscription: ties go to the smaller id."""
    own, scores = set(row["keywords"]), {}
    x_m, y_m = FRAME.project(row["lon"], row["lat"])
    weight_m = (1.0 - row["alpha"]) / row["alpha"] * FRAME.maxdist_m
    for one in messages:
        others = set(one["keywords"])
        if own & others:
            there_x_m, there_y_m = FRAME.project(one["lon"], one["lat"])
            dx, dy = x_m - there_x_m, y_m - there_y_m
            length_m = math.sqrt(dx * dx + dy * dy)
            scores[one["object_id"]] = length_m + weight_m * text_distance(row["similarity"], own, others)
    chosen = sorted(scores, key=lambda one: (scores[one], one))[: row["k"]]
    return {one: scores[one] * row["alpha"] / FRAME.maxdist_m for one in chosen}


def is_matched(expression, words):
    """Whether a clause of an expression without parentheses is met."""
    return any(
        all(
            (term.removeprefix("NOT ") in words) != term.startswith("NOT ")
            for term in clause.split(" AND ")
        )
        for clause in expression.split(" OR ")
    )


def is_within(row, one):
    """Whether a message lies in the range of a boolean subscription."""
    x_m, y_m = FRAME.project(one["lon"], one["lat"])
    if row["bounds"] is None:
        return math.dist(FRAME.project(row["lon"], row["lat"]), (x_m, y_m)) <= row["radius_m"]
    west, south, east, north = row["bounds"]
    (x1_m, y1_m), (x2_m, y2_m) = FRAME.project(west, south), FRAME.project(east, north)
    return x1_m <= x_m <= x2_m and y1_m <= y_m <= y2_m


def result(row, messages):
    """Return the result of a subscription, with scores."""
    if row["kind"] == TOP_K:
        return best(row, messages)
    return {
        one["object_id"]: 0.0
        for one in messages
        if is_within(row, one) and is_matched(row["expression"], set(one["keywords"]))
    }


def results(subscribed, rows, size):
    """Return the results of subscriptions by number, over all rows so far."""
    messages = in_window(rows, size)
    return {one: result(row, messages) for one, row in subscribed.items()}


# -- one case each -------------------------------------------------------------------------------


def split(rows, sizes):
    """Return the rows in batches of so many."""
    ends = np.cumsum(sizes).tolist()
    return [rows[end - size : end] for end, size in zip(ends, sizes, strict=True)]


@pytest.mark.parametrize("sizes", [[1, 1, 1, 1], [4], [2, 2], [1, 3]])
def test_an_object_that_expires_in_its_own_batch_takes_a_place_in_a_window_of_a_count(sizes):
    rows = [message(1, 10), message(2, 20, ttl_ms=5), message(3, 30), message(4, 40)]
    job = Job(COUNT)
    job.apply(subscriptions=[subscription(1)])
    for batch in split(rows, sizes):
        job.apply(batch)
    assert job.ids() == [3, 4]


@pytest.mark.parametrize("sizes", [[1, 1, 1, 1, 1], [5], [3, 2], [2, 3]])
def test_an_object_retracted_in_its_own_batch_takes_a_place_in_a_window_of_a_count(sizes):
    rows = [message(1, 10), message(2, 20), retraction(2, 25), message(3, 30), message(4, 40)]
    job = Job(COUNT)
    job.apply(subscriptions=[subscription(1)])
    for batch in split(rows, sizes):
        job.apply(batch)
    assert job.ids() == [3, 4]


@pytest.mark.parametrize("size", [COUNT, TIME])
@pytest.mark.parametrize("is_restored", [False, True])
def test_a_retracted_object_does_not_return_when_it_is_delivered_again(size, is_restored):
    job = Job(size)
    job.apply([message(11, 10), retraction(11, 20)], [subscription(1)])
    if is_restored:
        job.restore()
    counts = job.apply([message(11, 10), message(12, 30)])
    assert job.ids() == [12]
    assert counts.duplicates == 1


@pytest.mark.parametrize("size", [COUNT, TIME])
@pytest.mark.parametrize("is_restored", [False, True])
def test_a_retraction_that_is_read_before_its_message_holds(size, is_restored):
    job = Job(size)
    assert job.apply([retraction(13, 20)], [subscription(1)]).unknown == 1
    if is_restored:
        job.restore()
    counts = job.apply([message(13, 10), message(14, 30)])
    assert job.ids() == [14]
    assert (counts.published, counts.retracted) == (1, 1)
    assert job.apply([message(13, 10)]).duplicates == 1
    assert job.ids() == [14]


@pytest.mark.parametrize("size", [COUNT, TIME])
def test_a_retraction_is_forgotten_when_its_message_is_behind_the_window(size):
    job = Job(size)
    job.apply([retraction(13, 20)])
    job.apply([message(20 + one, 100 + one) for one in range(3)])
    assert len(job.partition.messages.early) == (1 if size is TIME else 0)
    job.apply([message(30 + one, 1_020 + one) for one in range(3)])
    assert len(job.partition.messages.early) == 0


def test_so_many_retractions_without_messages_are_remembered_as_the_window_has_places(monkeypatch):
    monkeypatch.setattr(early_module, "REMEMBERED_MIN", 0)
    job = Job(COUNT)
    for one in range(8):
        job.apply([retraction(one, 10 * one), retraction(one, 10 * one)])
        job.restore()
        assert len(job.partition.messages.early) == min(one + 1, 3)
    job.apply([message(one, 10 * one) for one in range(8)], [subscription(1)])
    assert job.ids() == []
    job = Job(COUNT)
    job.apply([retraction(one, 100) for one in range(8)])
    job.apply([message(one, 99) for one in (3, 4, 5)], [subscription(1)])
    assert job.ids() == [3, 4]  # the last three were remembered: of 5, 6 and 7
    job = Job(COUNT)
    job.apply([message(100, 1)], [subscription(1)])
    for one in range(4):
        job.apply([retraction(one, 10)])
    job.apply([message(0, 9)])  # the retraction of 0 was logged, and is forgotten
    assert job.ids() == [0, 100]
    job.restore()
    job.apply([retraction(0, 13)])
    assert job.ids() == [100]


@pytest.mark.parametrize("size", [COUNT, TIME])
@pytest.mark.parametrize("order", [(10, 20), (20, 10)])
def test_ties_go_to_the_smaller_id_whatever_came_first(size, order):
    times = {20: 1, 10: 2}
    job = Job(size)
    job.apply(subscriptions=[subscription(3, k=1)])
    for one in order:
        job.apply([message(one, times[one])])
    assert job.ids(3) == [10]
    job.apply([retraction(10, 3)])
    assert job.ids(3) == [20]


def test_a_replaced_subscription_sends_the_scores_of_remaining_objects():
    job = Job(COUNT)
    rows = [message(1, 10, lon=12.15), message(2, 20)]
    job.apply(rows, [subscription(4, alpha=0.9), subscription(5, alpha=0.1)])
    expected = dict(job.lists[5])
    assert job.lists[4] != pytest.approx(expected)
    job.apply(subscriptions=[subscription(4, alpha=0.1, time_ms=1)])
    assert job.lists[4] == pytest.approx(expected)
    applied = job.partition.apply(*read([subscription(4, alpha=0.1, time_ms=2)], []))
    assert len(applied.changes) == 0  # nothing is different


def test_so_does_one_that_becomes_boolean_with_further_changes():
    job = Job(COUNT)
    job.apply([message(1, 10), message(2, 20)], [subscription(4, k=1)])
    assert job.ids(4) == [1]
    boolean = {
        "action": SUBSCRIBE,
        "subscription_id": 4,
        "time_ms": 1,
        "kind": "boolean",
        "expression": "tea",
        **PLACE,
        "radius_m": 100.0,
        "bounds": None,
    }
    job.apply([message(3, 30)], [boolean])
    assert job.lists[4] == {1: 0.0, 2: 0.0, 3: 0.0}
    job.apply([retraction(2, 40)], [subscription(4, k=3, time_ms=2)])
    assert job.lists[4] == {1: pytest.approx(0.25), 3: pytest.approx(0.25)}


def test_a_late_message_is_in_its_place_in_a_window_of_so_many():
    job = Job(COUNT)
    job.apply([message(1, 10), message(2, 20), message(4, 40)], [subscription(1)])
    assert job.apply([message(3, 30)]).published == 1
    assert job.ids() == [2, 3, 4]
    assert job.apply([message(9, 15)]).expired == 1
    job.restore()
    job.apply([message(5, 50)])
    assert job.ids() == [3, 4, 5]


def test_a_window_keeps_no_more_than_its_own():
    window = Window(WindowSize(count=100))
    for batch in range(200):
        ids = np.arange(batch * 30, batch * 30 + 30)
        arrived = window.arrive(ids, ids, np.full(30, 1 << 62), batch)
        assert arrived.is_inside.all()
        window.check()
    assert len(window) == 100
    assert window.capacity <= 1024


def test_the_greatest_id_is_taken_and_the_one_behind_it_refused():
    job = Job(COUNT)
    job.apply([message(2**63 - 2, 10), message(4, 10)], [subscription(1, k=1)])
    assert job.ids() == [4]
    job.apply([retraction(4, 20)])
    assert job.ids() == [2**63 - 2]
    batch = pa.RecordBatch.from_pylist([message(2**63 - 1, 10)], MESSAGES)
    _, refusals = read_messages(batch, FRAME, lambda _word: 1.0)
    assert refusals.reasons == [f"object_id must be 0 to {2**63 - 2}"]


# -- all of it together --------------------------------------------------------------------------


class Rows:
    """Rows as sources deliver them: late, twice, retractions before their messages."""

    def __init__(self, seed, *, booleans=True):
        self.chance = chance = random.Random(seed)
        feed = RandomFeed(seed, WEIGHTS, booleans=booleans)
        first = chance.choice((0, 2**63 - 1_001))
        ids = chance.sample(range(first, first + 1_000), 150)
        messages = []
        for number, one in enumerate(ids):
            time_ms = 1_000 + 100 * number + chance.choice((0, 0, chance.randint(0, 400)))
            ttl_ms = chance.choice((None, None, 1, 300, 2_000))
            messages.append({**feed.message(one), "time_ms": time_ms, "ttl_ms": ttl_ms})
        messages += [
            retraction(row["object_id"], row["time_ms"] + chance.choice((0, 50, 900)))
            for row in chance.sample(messages, 40)
        ]
        messages += chance.sample(messages, 30)
        delay = lambda: chance.choice((0, 0, 0, chance.randint(0, 3_000)))  # noqa: E731
        messages.sort(key=lambda row: row["time_ms"] + delay())
        self.messages = messages
        self.subscriptions = [feed.subscription(number % 14) for number in range(30)]

    def batches(self):
        """Yield the rows in batches; of subscriptions one of a number each."""
        messages, subscriptions = list(self.messages), list(self.subscriptions)
        while messages:
            size = self.chance.choice((1, 1, 2, 5, 20, 60))
            batch, messages = messages[:size], messages[size:]
            self.chance.shuffle(batch)
            started, subscriptions = subscriptions[:5], subscriptions[5:]
            yield started, batch


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("part", seeds(12), ids=named)
def test_results_follow_from_the_rows_however_they_fall_into_batches(part, window):
    size = WINDOWS[window]
    rows = Rows(part.start)
    job, definition = Job(size), Definition(FRAME, size, lambda word: WEIGHTS.get(word, 1.0))
    seen, subscribed = [], {}
    for number, (started, batch) in enumerate(rows.batches()):
        job.apply(batch, started)
        seen += batch
        subscribed |= {row["subscription_id"]: row for row in started}
        expected = results(subscribed, seen, size)
        require_same(job.lists, expected)
        definition.apply(started, batch)
        require_same(definition.results(subscribed), expected)
        if number % 4 == 3:
            job.restore()


def test_an_audit_notices_an_error_that_another_division_would_hide():
    """As a job would be that left out what has ended in its own batch: results are of all rows."""
    rows = [message(1, 10), message(2, 20, ttl_ms=5), message(3, 30), message(4, 40)]
    found = []
    for sizes in ([1, 1, 1, 1], [4]):
        definition = Definition(FRAME, COUNT, lambda _word: 1.0)
        definition.apply([subscription(1)], [])
        for batch in split(rows, sizes):
            definition.apply([], batch)
        found.append(definition.results([1]))
    assert found[0] == found[1]
    assert found[0][1].keys() == {3, 4}
