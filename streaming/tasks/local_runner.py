"""All partitions of a job in one process, without Spark: to compile kernels, and for tests.

It uses the same steps as tasks: blocks in bytes, indexes in files, replicas that match first, and
feedback for the next batch.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester

from streaming.arrays.blocks import Messages, Subscriptions
from streaming.distribution import has_replicas
from streaming.plan import Plan
from streaming.tasks.answers import AnswerRow
from streaming.tasks.processor import PartitionProcessor
from streaming.tasks.replicating import ReplicaProcessor
from streaming.tasks.routing import FEEDBACK, SUBSCRIPTIONS, routed


class Answer(NamedTuple):
    """A row of a partition's response to a batch."""

    kind: str
    block: bytes


class LocalRunner:
    """A job on Spark's tester of stateful operators.

    Parameters
    ----------
    plan
        The plan of the job.
    memory
        A folder for engines.
    """

    def __init__(self, plan: Plan, memory: Path) -> None:
        self._plan, self._memory = plan, memory
        self._owners = {key: TwsTester(PartitionProcessor(plan, memory)) for key in plan.keys}
        self._replicas: dict[int, TwsTester] = {}
        if has_replicas(plan.mechanism):
            self._replicas = {key: TwsTester(ReplicaProcessor(plan, memory)) for key in plan.keys}
        self.feedback: list[AnswerRow] = []
        """The feedback of the last batch, for the next one."""

    def apply(self, subscriptions: Subscriptions | None, messages: Messages | None) -> list[Answer]:
        """Apply a batch; return the responses of the partitions."""
        mechanism, keys = self._plan.make_distribution(), self._plan.keys
        rows: dict[int, list[Row]] = {key: [] for key in keys}
        for partition, kind, block in routed(mechanism, messages) if messages is not None else ():
            rows[keys[partition]].append(Row(kind=kind, block=block))
        for partition, kind, block in self.feedback:
            rows[keys[partition]].append(Row(kind=kind, block=block))
        rows = self._matched(rows)
        for partition, part in mechanism.place(subscriptions) if subscriptions is not None else ():
            rows[keys[partition]].append(Row(kind=SUBSCRIPTIONS, block=part.pack()))
        found = [
            AnswerRow(row.partition, row.kind, bytes(row.block))
            for key, blocks in rows.items()
            if blocks
            for row in self._owners[key].test(key, blocks)
        ]
        self.feedback = [row for row in found if row.kind == FEEDBACK]
        return [Answer(row.kind, row.block) for row in found if row.kind != FEEDBACK]

    def _matched(self, rows: dict[int, list[Row]]) -> dict[int, list[Row]]:
        """Return the rows for owners: messages, and the pairs that replicas have found."""
        if not self._replicas:
            return rows
        found: dict[int, list[Row]] = {key: [] for key in rows}
        for key, own in rows.items():
            for row in self._replicas[key].test(key, own) if own else ():
                found[row.key].append(Row(kind=row.kind, block=row.block))
        return found
