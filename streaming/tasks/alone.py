"""All partitions of a job in one process, without Spark: for kernels to be compiled, and for tests.

It goes through what tasks go through: blocks in bytes, indexes in files, replicas that match first.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester

from streaming.arrays.blocks import Messages, Subscriptions
from streaming.distribution.keywords import Replicated
from streaming.plan import Plan
from streaming.tasks.matching import matcher
from streaming.tasks.processor import PartitionProcessor
from streaming.tasks.routing import FOUND, MESSAGES, ROUTED, SPREAD, SUBSCRIPTIONS


class Answer(NamedTuple):
    """What a partition says of a batch."""

    kind: str
    block: bytes


class Alone:
    """A job on Spark's tester of stateful operators.

    Parameters
    ----------
    plan
        Of the job.
    memory
        A folder for engines.
    """

    def __init__(self, plan: Plan, memory: Path) -> None:
        self._plan, self._memory = plan, memory
        self._testers = {key: TwsTester(PartitionProcessor(plan, memory)) for key in plan.keys}
        self.sent = 0
        """Messages that were sent to replicas."""

    def apply(self, subscriptions: Subscriptions | None, messages: Messages | None) -> list[Answer]:
        """Return what partitions say of a batch."""
        mechanism = self._plan.make_distribution()
        rows: dict[int, list[Row]] = {key: [] for key in self._plan.keys}
        if subscriptions is not None:
            for partition, part in mechanism.place(subscriptions):
                rows[self._plan.keys[partition]].append(Row(kind=SUBSCRIPTIONS, block=part.pack()))
        if messages is not None:
            for partition, _ in mechanism.route(messages):
                rows[self._plan.keys[partition]].append(Row(kind=MESSAGES, block=messages.pack()))
            if isinstance(mechanism, Replicated):
                for key, block in self._found(mechanism, messages):
                    rows[key].append(Row(kind=FOUND, block=block))
        return [
            Answer(row.kind, bytes(row.block))
            for key, blocks in rows.items()
            if blocks
            for row in self._testers[key].test(key, blocks)
        ]

    def _found(self, mechanism: Replicated, messages: Messages) -> Iterator[tuple[int, bytes]]:
        """Yield what replicas find, with the key of the owner."""
        published = messages.part(np.flatnonzero(messages.is_retraction == 0))
        task = []
        for partition, part in mechanism.spread(published):
            self.sent += len(part)
            block = published.part(part).pack()
            columns = [[self._plan.keys[partition]], [SPREAD], [block]]
            task.append(pa.record_batch(columns, schema=ROUTED))
        for batch in matcher(self._plan, self._memory)(task):
            for row in batch.to_pylist():
                yield row["key"], row["block"]
