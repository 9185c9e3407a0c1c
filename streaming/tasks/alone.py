"""All partitions of a job in one process, without Spark: for kernels to be compiled, and for tests.

It goes through what tasks go through: blocks in bytes, indexes in files, replicas that match first.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester

from streaming.arrays.blocks import Messages, Subscriptions
from streaming.distribution import Distribution
from streaming.plan import Plan
from streaming.tasks.matching import matcher
from streaming.tasks.processor import PartitionProcessor
from streaming.tasks.routing import ROUTED, SUBSCRIPTIONS, routed


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

    def apply(self, subscriptions: Subscriptions | None, messages: Messages | None) -> list[Answer]:
        """Return what partitions say of a batch."""
        mechanism = self._plan.make_distribution()
        rows: dict[int, list[Row]] = {key: [] for key in self._plan.keys}
        if subscriptions is not None:
            for partition, part in mechanism.place(subscriptions):
                rows[self._plan.keys[partition]].append(Row(kind=SUBSCRIPTIONS, block=part.pack()))
        if messages is not None:
            for row in self._matched(mechanism, messages):
                rows[row["key"]].append(Row(kind=row["kind"], block=row["block"]))
        return [
            Answer(row.kind, bytes(row.block))
            for key, blocks in rows.items()
            if blocks
            for row in self._testers[key].test(key, blocks)
        ]

    def _matched(self, mechanism: Distribution, messages: Messages) -> Iterator[dict[str, Any]]:
        """Yield what owners are sent: messages, and what replicas have found."""
        task = [
            pa.record_batch([[self._plan.keys[partition]], [kind], [block]], schema=ROUTED)
            for partition, kind, block in routed(mechanism, messages)
        ]
        for batch in matcher(self._plan, self._memory)(task):
            yield from batch.to_pylist()
