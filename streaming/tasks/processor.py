"""The stateful operator: one partition, with its log in Spark's state and its engine in memory.

The state holds the data that cannot be recomputed (`log`). The engine, which is much larger, follows from
it. The engine lies in memory (`shared_arrays`), with its version, the digest of the input that led to
this version, and the response to that input. If Spark repeats a batch after a fault, the operator may
find the engine one version behind, and applies the batch; or already at the version of the batch, and
returns the stored response; or find no engine, and rebuilds it from the log (`partition_task`).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from feeds.hosts.slots import on_all_slots
from index.tables.growth import rooms_of
from streaming.plan import Plan
from streaming.tasks.answers import Answer
from streaming.tasks.batch import Batch
from streaming.tasks.log import Head, Log
from streaming.tasks.partition_task import PartitionTask
from streaming.tasks.rebalanced_state import initial_state
from streaming.tasks.routing import REBALANCED
from streaming.tasks.shared_arrays import Note, SharedArrays
from streaming.tasks.shared_window import SharedWindow


class PartitionProcessor(StatefulProcessor):
    """Applies batches to partitions.

    Parameters
    ----------
    plan
        The plan of the job.
    memory
        A folder on a file system in memory, for engines.
    """

    def __init__(self, plan: Plan, memory: Path) -> None:
        self._plan = plan
        self._memory = memory

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._log = Log(handle)

    def handleInputRows(  # noqa: N802
        self,
        key: Any,  # noqa: ANN401
        rows: Iterator[Row],
        timerValues: Any,  # noqa: ANN401, ARG002, N803
    ) -> Iterator[Row]:
        """Apply a batch to a partition."""
        if key[0] not in self._plan.keys:  # a key from before the job was rebalanced
            self._log.clear()
            return
        partition = self._plan.keys.index(key[0])
        head = self._log.head()
        if head is None:
            head = self._log.begin(initial_state(self._plan, partition)) if self._plan.moved else Head()
        # A repeated task may deliver the same blocks in another order.
        blocks = sorted((row.kind, bytes(row.block)) for row in rows if row.kind != REBALANCED)
        if not blocks:
            return
        answer = self._answer(partition, head, blocks)
        self._log.append(answer.head, answer.messages, answer.subscriptions)
        for row in answer.rows:
            yield Row(**row._asdict())

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def _answer(self, partition: int, head: Head, blocks: list[tuple[str, bytes]]) -> Answer:
        folder, options = self._plan.folder(self._memory), self._plan.engine_options()
        own = SharedArrays(folder / str(partition))
        with own.locked(), rooms_of(own.room):
            note, batch = own.note(), Batch.of(blocks)
            digest = batch.digest
            if note is not None and (note.version, note.digest) == (head.version + 1, digest):
                return Answer.unpack(note.answer)
            own.require_free(batch.growth_bytes)
            with SharedWindow(folder, options, self._plan.window).opened() as window:
                task = PartitionTask(partition, self._plan, head, self._log, batch, own, window)
                state, messages, answer = task.applied(note)
                kept = Note(head.version + 1, digest, answer.pack(), messages.token)
                own.keep(state, kept, window.outside(messages))
            return answer


def release(spark: SparkSession, run: str, memory: Path) -> None:
    """Remove the engines of a run, of a job that is not running, from the memory of all hosts."""
    folder = str(memory / run)

    def removed(_: Iterable[object]) -> Iterator[int]:
        shutil.rmtree(folder, ignore_errors=True)
        yield 1

    on_all_slots(spark, removed)
