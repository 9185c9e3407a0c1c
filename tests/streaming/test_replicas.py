import json
import shutil
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from streaming.arrays.changes import from_bytes
from streaming.distribution import MECHANISMS, Sample
from streaming.distribution.keywords import Replicated
from streaming.partition.window import WindowSize
from streaming.plan import Plan
from streaming.result.audit import Definition
from streaming.tasks.matching import matcher
from streaming.tasks.processor import CHANGES, COUNTS, PartitionProcessor
from streaming.tasks.routing import FOUND, MESSAGES, ROUTED, SUBSCRIPTIONS
from tests.streaming.feed import AREA, FRAME, RandomFeed
from tests.streaming.test_partition import WEIGHTS, read
from tests.support.amounts import named, seeds


def spark_state():
    """Return what stands for Spark's state of a partition, as far as the processor uses it."""
    kept = {}

    def value(name, _ddl):
        values = kept.setdefault(name, {})
        return SimpleNamespace(get=lambda: values.get(0), update=lambda row: values.update({0: row}))

    def rows(name, _key, _ddl):
        values = kept.setdefault(name, {})
        return SimpleNamespace(
            updateValue=values.__setitem__,
            removeKey=values.pop,
            iterator=lambda: iter(list(values.items())),
        )

    return SimpleNamespace(getValueState=value, getMapState=rows)


class Cluster:
    """All partitions of a job, without Spark."""

    def __init__(self, folder, mechanism, window, partitions):
        feed = RandomFeed(99)
        sample = Sample(*read(feed.subscriptions(30), feed.messages(60)))
        chosen = MECHANISMS[mechanism].choose(partitions, sample)
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
        self.states = [spark_state() for _ in range(partitions)]
        self.sent = 0
        self.counts = {}

    def forget(self, pattern):
        """Lose what lies in memory."""
        for path in self.plan.folder(self.folder).glob(pattern):
            shutil.rmtree(path)

    def apply(self, subscriptions, messages):
        """Return the changes of a batch."""
        mechanism = self.plan.make_distribution()
        rows = {key: [] for key in self.plan.keys}
        if subscriptions is not None:
            for partition, part in mechanism.place(subscriptions):
                rows[self.plan.keys[partition]].append((SUBSCRIPTIONS, part.pack()))
        if messages is not None:
            for partition, _ in mechanism.route(messages):
                rows[self.plan.keys[partition]].append((MESSAGES, messages.pack()))
            if isinstance(mechanism, Replicated):
                for key, block in self._found(mechanism, messages):
                    rows[key].append((FOUND, block))
        found = []
        self.counts = Counter()
        for key, blocks in rows.items():
            if blocks:
                found += self._answer(key, blocks)
        return found

    def _found(self, mechanism, messages):
        published = messages.part(np.flatnonzero(messages.is_retraction == 0))
        task = []
        for partition, part in mechanism.spread(published):
            self.sent += len(part)
            block = published.part(part).pack()
            task.append(
                pa.record_batch([[self.plan.keys[partition]], [MESSAGES], [block]], schema=ROUTED)
            )
        for batch in matcher(self.plan, self.folder)(task):
            for row in batch.to_pylist():
                yield row["key"], row["block"]

    def _answer(self, key, blocks):
        processor = PartitionProcessor(self.plan, self.folder)
        processor.init(self.states[self.plan.keys.index(key)])
        rows = [SimpleNamespace(kind=kind, block=block) for kind, block in blocks]
        for row in processor.handleInputRows((key,), iter(rows), None):
            if row.kind == CHANGES:
                yield from from_bytes(row.block).to_pylist()
            if row.kind == COUNTS:
                self.counts.update(json.loads(row.block))


WINDOWS = {"count": WindowSize(count=60), "time": WindowSize(duration_ms=4_000)}


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("part", seeds(2), ids=named)
def test_every_mechanism_gives_what_the_definition_gives(part, mechanism, window, tmp_path):
    feed = RandomFeed(part.start, WEIGHTS)
    size = WINDOWS[window]
    cluster = Cluster(tmp_path, mechanism, size, 4)
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
        for row in rows:
            for one in row["left"]:
                lists[one].remove(row["object_id"])
        for row in rows:
            for one in row["entered"]:
                held = lists.setdefault(one, set())
                assert row["object_id"] not in held
                held.add(row["object_id"])
        definition.apply(subscriptions, messages)
        evaluated.append(cluster.counts["evaluated"] < len(definition.subscriptions))
        expected = definition.results(definition.subscriptions)
        assert {one: held for one, held in lists.items() if held} == {
            one: held for one, held in expected.items() if held
        }
    # Only what was lost has to be evaluated anew: in most batches replicas know enough.
    assert evaluated.count(True) >= 8
