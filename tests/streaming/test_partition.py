import pyarrow as pa
import pytest

from feeds.schemas import MESSAGES, SUBSCRIPTIONS
from index.square import Square
from streaming.arrays.blocks import Messages, Subscriptions
from streaming.arrays.reading import read_messages, read_subscriptions
from streaming.partition.alone import Alone
from streaming.partition.options import engine_options
from streaming.result.audit import Definition
from streaming.tasks.shared_arrays import Note, SharedArrays
from streaming.window_size import WindowSize
from tests.streaming.feed import FRAME, RandomFeed
from tests.support.amounts import named, seeds

WEIGHTS = {"word0": 0.5, "word3": 2.0, "word7": 4.0}
SQUARE = Square(0.0, 0.0, 10_000.0)
WINDOWS = {
    "count": WindowSize(count=60),
    "time": WindowSize(duration_ms=4_000),
    "one": WindowSize(count=1),
}


def read(subscriptions, messages):
    """Read rows, through bytes."""
    batch = pa.RecordBatch.from_pylist(subscriptions, SUBSCRIPTIONS)
    block, refusals = read_subscriptions(batch, FRAME, lambda word: WEIGHTS.get(word, 1.0))
    assert not refusals.reasons
    started = Subscriptions.unpack(block.pack()) if len(block) else None
    batch = pa.RecordBatch.from_pylist(messages, MESSAGES)
    block, refusals = read_messages(batch, FRAME, lambda word: WEIGHTS.get(word, 1.0))
    assert not refusals.reasons
    return started, Messages.unpack(block.pack()) if len(block) else None


def received(lists, changes):
    """Apply changes to lists, each of which must be news: an object, or another score."""
    rows = zip(changes.subscription_id, changes.object_id, changes.is_left, changes.score, strict=True)
    for owner, one, is_left, score in rows:
        held = lists.setdefault(int(owner), {})
        if is_left:
            assert score == 0.0
            del held[int(one)]
        else:
            assert 0.0 <= score <= 1.0
            assert held.get(int(one)) != score
            held[int(one)] = float(score)


def require_same(lists, expected):
    """Require that lists are those of the definition, with their scores."""
    assert {one: held.keys() for one, held in lists.items() if held} == {
        one: held.keys() for one, held in expected.items() if held
    }
    for one, held in lists.items():
        assert held == pytest.approx(expected.get(one, {}), abs=1e-9)


def rows_of(applied):
    # What buffers have beyond results depends on what has become of them.
    return applied.changes.rows().to_pylist(), applied.counts._replace(refilled=0)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("part", seeds(6), ids=named)
def test_results_are_the_oracles_after_every_batch(part, window):
    feed = RandomFeed(part.start, WEIGHTS, booleans=True)
    size = WINDOWS[window]
    partition = Alone(engine_options(SQUARE, FRAME.maxdist_m), size)
    expected = Definition(FRAME, size, lambda word: WEIGHTS.get(word, 1.0))
    lists = {}
    for _ in range(12):
        subscriptions, messages = feed.subscriptions(8), feed.messages(feed.chance.choice((0, 5, 40)))
        received(lists, partition.apply(*read(subscriptions, messages)).changes)
        expected.apply(subscriptions, messages)
        require_same(lists, expected.results(expected.subscriptions))
        partition.check()


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("part", seeds(4), ids=named)
def test_a_stored_or_restored_partition_continues_alike(part, window, tmp_path):
    """One is never interrupted, one lies in files between batches, one is built anew from its log."""
    feed = RandomFeed(part.start, WEIGHTS, booleans=True)
    size = WINDOWS[window]
    options = engine_options(SQUARE, FRAME.maxdist_m)
    partition = Alone(options, size)
    shared = SharedArrays(tmp_path / "partition")
    with shared.locked():
        shared.keep(partition, Note(0, b"", b""))
    messages_log, subscriptions_log = [], []
    for version in range(1, 10):
        blocks = read(feed.subscriptions(8), feed.messages(feed.chance.choice((0, 5, 40))))
        now_ms, next_number = partition.messages.now_ms, partition.messages.window.next_number
        expected = partition.apply(*blocks)
        other = SharedArrays(tmp_path / "partition")
        with other.locked():
            assert other.note().version == version - 1
            kept = other.take()
            assert other.note() is None
            assert rows_of(kept.apply(*blocks)) == rows_of(expected)
            other.keep(kept, Note(version, b"", b""))
            kept.check()
        restored = Alone(options, size)
        restored.restore(now_ms, next_number, messages_log, subscriptions_log)
        assert rows_of(restored.apply(*blocks)) == rows_of(expected)
        restored.check()
        if expected.messages is not None:
            messages_log.append(expected.messages)
        if expected.subscriptions is not None:
            subscriptions_log.append(expected.subscriptions)


def test_boolean_subscriptions_that_are_wrong_are_refused_with_a_reason():
    good = RandomFeed(1).boolean(1)
    near = {"lon": 12.1, "lat": 55.05, "radius_m": 100.0, "bounds": None}
    box = {"radius_m": None, "bounds": [12.0, 55.0, 12.1, 55.1]}
    rows = [
        ({**good, **near}, None),
        ({**good, **box}, None),
        ({**good, **near, "expression": None}, "expression must be present"),
        ({**good, **near, "expression": "NOT tea"}, "expression: "),
        ({**good, **near, "expression": "tea AND ("}, "expression: "),
        ({**good, **near, "radius_m": 0.0}, "radius_m must be above 0"),
        ({**good, **near, "radius_m": 60_000.0}, "radius_m must be above 0, at most 50000"),
        ({**good, **near, "lat": 80.0}, "lon, lat must be in the area"),
        ({**good, **near, **box, "radius_m": 5.0}, "either radius_m or bounds"),
        ({**good, **near, "radius_m": None}, "either radius_m or bounds"),
        ({**good, **box, "bounds": [12.1, 55.0, 12.0, 55.1]}, "bounds must be"),
        ({**good, **box, "bounds": [12.1, 55.0, None, 55.1]}, "bounds must be"),
        ({**good, **box, "bounds": [12.1, 55.0]}, "bounds must be"),
        ({**good, **box, "bounds": [1.0, 5.0, 1.1, 5.1]}, "bounds must be"),
        ({**good, **near, "kind": "other"}, "kind must be top_k or boolean"),
    ]
    batch = pa.RecordBatch.from_pylist([row for row, _ in rows], SUBSCRIPTIONS)
    block, refusals = read_subscriptions(batch, FRAME, lambda _word: 1.0)
    assert len(block) == 2
    expected = [(number, message) for number, (_, message) in enumerate(rows) if message]
    assert refusals.rows.tolist() == [number for number, _ in expected]
    for reason, (_, message) in zip(refusals.reasons, expected, strict=True):
        assert reason.startswith(message)
