import json
import shutil
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from index.batches import ReachBatch
from streaming import plan as plan_module
from streaming.arrays.blocks import digests
from streaming.arrays.changes import from_bytes
from streaming.distribution import MECHANISMS, Sample
from streaming.distribution.keywords import HYBRIDS
from streaming.partition.candidates import CandidateIndex, Candidates
from streaming.plan import Plan
from streaming.result.audit import Definition
from streaming.tasks import replica_log
from streaming.tasks.answers import CHANGES, COUNTS
from streaming.tasks.local_runner import LocalRunner
from streaming.warmup import ready_kernels
from streaming.window_size import WindowSize
from tests.streaming.feed import AREA, FRAME, RandomFeed
from tests.streaming.test_batches import Rows, results
from tests.streaming.test_partition import WEIGHTS, read, require_same
from tests.support.amounts import SEED, named, seeds


class Cluster:
    """All partitions of a job, on Spark's tester of stateful operators."""

    def __init__(self, folder, mechanism, window, partitions, first_level=0):
        feed = RandomFeed(99)
        sample = Sample(*read(feed.subscriptions(30), feed.messages(60)))
        chosen = MECHANISMS[mechanism].choose(partitions, sample, first_level)
        self.plan = Plan.begin(
            chosen,
            area=AREA,
            window=window,
            mechanism=mechanism,
            partitions=partitions,
            keys=tuple(range(10, 10 + partitions)),
            subscription_index="sq-plus-tree",
        )
        self.folder = folder
        self.runner = LocalRunner(self.plan, folder)
        self.counts = {}

    def forget(self, pattern):
        """Lose what lies in memory."""
        for path in self.plan.folder(self.folder).glob(pattern):
            shutil.rmtree(path)

    def apply(self, subscriptions, messages):
        """Return the changes of a batch."""
        self.counts, found = Counter(), []
        for result in self.runner.apply(subscriptions, messages):
            if result.kind == CHANGES:
                found += from_bytes(result.block).to_pylist()
            if result.kind == COUNTS:
                self.counts.update(json.loads(result.block))
        return found


def follow(lists, rows):
    """Apply rows of changes to lists: what leaves, then what enters, maybe on another partition."""
    for row in rows:
        for one in row["left"]:
            del lists[one][row["object_id"]]
    for row in rows:
        for one, score in zip(row["entered"], row["scores"], strict=True):
            held = lists.setdefault(one, {})
            assert held.get(row["object_id"]) != score
            held[row["object_id"]] = score


WINDOWS = {"count": WindowSize(count=60), "time": WindowSize(duration_ms=4_000)}
SPLIT = {"count": WindowSize(count=25), "time": WindowSize(duration_ms=3_000)}


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize(
    ("mechanism", "first_level"),
    [*((one, 0) for one in MECHANISMS), *((one, 4) for one in HYBRIDS)],
)
@pytest.mark.parametrize("part", seeds(1), ids=named)
def test_every_mechanism_gives_the_results_of_the_definition(
    part, mechanism, first_level, window, tmp_path
):
    feed = RandomFeed(part.start, WEIGHTS)
    size = WINDOWS[window]
    cluster = Cluster(tmp_path, mechanism, size, 4, first_level)
    definition = Definition(FRAME, size, lambda word: WEIGHTS.get(word, 1.0))
    lists, evaluated = {}, []
    for batch in range(14):
        if batch == 6:
            cluster.forget("replicas-*")
        if batch == 9:
            cluster.forget("[0-9]")
        if batch == 12:
            cluster.forget("*")
        subscriptions, messages = feed.subscriptions(8), feed.messages(feed.chance.choice((5, 20, 40)))
        rows = cluster.apply(*read(subscriptions, messages))
        follow(lists, rows)
        definition.apply(subscriptions, messages)
        evaluated.append(cluster.counts["evaluated"] < len(definition.subscriptions))
        require_same(lists, definition.results(definition.subscriptions))
    # Only what was lost has to be evaluated anew: in most batches replicas know enough.
    assert evaluated.count(True) >= 8


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("part", seeds(1), ids=named)
def test_so_it_is_however_rows_fall_into_batches(part, mechanism, window, tmp_path):
    """Late, twice, retracted before they come: against the definition as `test_batches` has it."""
    rows = Rows(part.start, booleans=False)
    size = SPLIT[window]
    cluster = Cluster(tmp_path, mechanism, size, 3)
    lists, seen, subscribed = {}, [], {}
    for number, (started, batch) in enumerate(rows.batches()):
        if number % 7 == 4:
            cluster.forget("*")
        follow(lists, cluster.apply(*read(started, batch)))
        seen += batch
        subscribed |= {row["subscription_id"]: row for row in started}
        require_same(lists, results(subscribed, seen, size))


@pytest.mark.parametrize("mechanism", ["keyword", "prefix"])
def test_the_log_of_replicas_has_the_same_effect_when_it_is_compacted(mechanism, tmp_path, monkeypatch):
    monkeypatch.setattr(replica_log, "_GARBAGE_MIN", 5)
    feed = RandomFeed(3, WEIGHTS)
    size = WINDOWS["count"]
    cluster = Cluster(tmp_path, mechanism, size, 4)
    definition = Definition(FRAME, size, lambda word: WEIGHTS.get(word, 1.0))
    lists = {}
    for batch in range(20):
        subscriptions, messages = feed.subscriptions(8), feed.messages(20)
        follow(lists, cluster.apply(*read(subscriptions, messages)))
        definition.apply(subscriptions, messages)
        require_same(lists, definition.results(definition.subscriptions))
        # From the log again, which was written again in most batches.
        cluster.forget("replicas-*")
        if batch > 1:
            assert cluster.counts["evaluated"] < len(definition.subscriptions)


def test_a_batch_that_changes_no_reach_sends_nothing(tmp_path):
    feed = RandomFeed(4)
    cluster = Cluster(tmp_path, "keyword", WindowSize(count=1_000), 3)
    cluster.apply(*read(feed.subscriptions(10), feed.messages(40)))
    assert cluster.runner.feedback
    unknown = feed.message(9_999_999) | {"keywords": ["nobody's"], "time_ms": feed.time_ms}
    cluster.apply(None, read([], [unknown])[1])
    assert cluster.runner.feedback == []
    cluster.apply(None, None)
    assert cluster.runner.feedback == []


@pytest.mark.parametrize("part", seeds(5), ids=named)
def test_replicas_are_where_the_keywords_of_subscriptions_are(part, tmp_path):
    """Counted apart: a replica on each partition that has one of its keywords, and on no other."""
    feed = RandomFeed(part.start)
    cluster = Cluster(tmp_path, "keyword", WINDOWS["count"], 4)
    mechanism = cluster.plan.make_distribution()
    subscribed = {}
    for _ in range(8):
        subscriptions = feed.subscriptions(8)
        cluster.apply(*read(subscriptions, feed.messages(20)))
        for row in subscriptions:
            subscribed.pop(row["subscription_id"], None)
            if row["action"] == "subscribe":
                subscribed[row["subscription_id"]] = row["keywords"]
        expected = 0
        for words in subscribed.values():
            parts, _ = mechanism.look_up(np.ascontiguousarray(digests(words)[:, 0]))
            expected += len(set(parts[0].tolist()))
        assert cluster.counts["replicas"] == expected


def test_a_candidate_index_reuses_the_slots_of_ended_subscriptions():
    candidates, chance = Candidates(), np.random.default_rng(SEED)
    index, reach_m = CandidateIndex(candidates), {}

    def reaches(ids):
        nothing = np.zeros(len(ids))
        drawn_m = chance.uniform(0.0, 100.0, len(ids))
        return ReachBatch(ids, nothing, nothing, nothing, drawn_m, np.zeros(len(ids), dtype=np.int64))

    for number in range(200):
        started = reaches(np.arange(10 * number, 10 * number + chance.integers(1, 10)))
        index.insert(started, None)
        reach_m |= dict(zip(started.ids.tolist(), started.reach_m.tolist(), strict=True))
        assert candidates.take_raised().tolist() == started.ids.tolist()
        moved = reaches(chance.permutation([*reach_m])[:8])
        index.move(moved)
        now_m = dict(zip(moved.ids.tolist(), moved.reach_m.tolist(), strict=True))
        assert candidates.take_raised().tolist() == sorted(
            one for one, found_m in now_m.items() if found_m > reach_m[one]
        )
        reach_m |= now_m
        ended = chance.permutation([*reach_m])[5:]
        index.remove(ended)
        for one in ended.tolist():
            del reach_m[one]
        index.check()
    assert index.memory_bytes() < 2_000


def test_kernels_are_compiled_without_what_a_rebalancing_has_set_aside(tmp_path):
    plan = Cluster(tmp_path, "keyword", WINDOWS["count"], 2).plan
    absent = (tmp_path / "nowhere").as_uri()
    ready_kernels(replace(plan, moved=absent, retired=(1, 2)), lambda _done, _total: None)


def test_another_version_of_the_program_removes_the_indexes_that_it_replaces(tmp_path, monkeypatch):
    cluster, feed = Cluster(tmp_path, "keyword", WINDOWS["count"], 2), RandomFeed(5)
    held = {}
    for version in ("first", "second"):
        monkeypatch.setattr(plan_module, "program_digest", lambda version=version: version)
        cluster.apply(*read(feed.subscriptions(20), feed.messages(40)))
        cluster.apply(*read([], feed.messages(40)))
        held[version] = cluster.plan.folder(tmp_path)
    names = {"0", "1", "replicas-0", "replicas-1"}
    for version, files in (("first", {"lock"}), ("second", {"lock", "head"})):
        for name in names:
            found = {path.name for path in (held[version] / name).iterdir()}
            assert {one for one in found if not one.startswith("array-")} == files, (version, name)
    assert not list(held["first"].glob("*/array-*"))
    assert list(held["second"].glob("*/array-*"))
