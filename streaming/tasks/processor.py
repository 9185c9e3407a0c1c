"""The stateful operator: one partition, with its log in Spark's state and its engine in memory.

The state holds the data that cannot be recomputed (`log`). The engine, which is much larger, follows from
it. The engine lies in memory (`shared_arrays`), with its version, the digest of the input that led to
this version, and the response to that input. If Spark repeats a batch after a fault, the operator may
find the engine one version behind, and applies the batch; or already at the version of the batch, and
returns the stored response; or find no engine, and rebuilds it from the log.

The engine refers to the messages of the host (`shared_window`), to which another task may have applied
the batch before. An engine is then rebuilt twice: over messages of its own, as they were before the
batch, which give the response; and over those of the host, to be kept.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from engine.contracts import STATIONARY, handle_of
from feeds.hosts.slots import on_all_slots
from index.tables.growth import rooms_of
from streaming.arrays.blocks import Messages, Subscriptions
from streaming.arrays.changes import to_bytes
from streaming.arrays.numbers import Numbers
from streaming.distribution.keywords import Replicated
from streaming.partition.applied import Applied, Found
from streaming.partition.candidates import Candidates, MakeCandidateIndex
from streaming.partition.live_messages import LiveMessages
from streaming.partition.partition import Partition
from streaming.partition.placing import Placer
from streaming.plan import Plan
from streaming.tasks.log import Head, Log, LoggedMessages
from streaming.tasks.rebalanced_state import initial_state
from streaming.tasks.replicating import FoundBlock
from streaming.tasks.routing import FEEDBACK, FOUND, MESSAGES, READ, REBALANCED, REFUSED, SUBSCRIPTIONS
from streaming.tasks.shared_arrays import LostError, Note, SharedArrays
from streaming.tasks.shared_window import MessageBatch, SharedWindow

CHANGES, COUNTS = "changes", "counts"

ANSWERS_DDL = "partition int, kind string, block binary"
"""The response of a partition to a batch: changes, counts, and rows that were refused."""

_BUFFERED_BYTES, _SUBSCRIPTION_BYTES = 50, 2_000
"""Memory of a message and of a subscription in a partition, somewhat more than is usual."""
_PASSED = frozenset({REFUSED, READ})
"""Rows that a partition passes on as they are."""
_CHANGES_MAX = 1_000_000
"""Changes in one row of Spark: some ten megabytes."""


class AnswerRow(NamedTuple):
    """A row of a partition's response."""

    partition: int
    """The number of the partition; for feedback, the number of the replicas that receive it."""
    kind: str
    block: bytes


@dataclass(frozen=True, slots=True)
class _Answer:
    """The response to a batch, and the data of the batch that the state keeps."""

    head: Head
    rows: list[AnswerRow]
    messages: LoggedMessages | None
    subscriptions: bytes | None

    def pack(self) -> bytes:
        """Return it as bytes."""
        numbers: dict[str, Any] = {"head": self.head, "rows": [row[:2] for row in self.rows]}
        blocks = [row.block for row in self.rows]
        if self.messages is not None:
            about = self.messages
            numbers["messages"] = about.next_number, about.latest_ms, about.first_ms
            blocks.append(self.messages.block)
        if self.subscriptions is not None:
            numbers["subscriptions"] = True
            blocks.append(self.subscriptions)
        numbers["sizes"] = [len(block) for block in blocks]
        return json.dumps(numbers).encode() + b"\n" + b"".join(blocks)

    @classmethod
    def unpack(cls, data: bytes) -> _Answer:
        """Read it from bytes."""
        first, _, rest = data.partition(b"\n")
        numbers = json.loads(first)
        ends = np.cumsum(numbers["sizes"]).tolist()
        blocks = [rest[end - size : end] for end, size in zip(ends, numbers["sizes"], strict=True)]
        subscriptions = blocks.pop() if "subscriptions" in numbers else None
        messages = None
        if "messages" in numbers:
            next_number, latest_ms, first_ms = numbers["messages"]
            messages = LoggedMessages(next_number, latest_ms, blocks.pop(), first_ms)
        rows = [
            AnswerRow(partition, kind, block)
            for (partition, kind), block in zip(numbers["rows"], blocks, strict=True)
        ]
        return cls(Head(*numbers["head"]), rows, messages, subscriptions)


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

    # -- the engine ------------------------------------------------------------------------------

    def _answer(self, partition: int, head: Head, blocks: list[tuple[str, bytes]]) -> _Answer:
        # The pairs of replicas may differ in a batch that is repeated; the response does not.
        digest = _digest([one for one in blocks if one[0] != FOUND])
        folder, options = self._plan.folder(self._memory), self._plan.engine_options()
        own = SharedArrays(folder / str(partition))
        with own.locked(), rooms_of(own.room):
            note = own.note()
            if note is not None and (note.version, note.digest) == (head.version + 1, digest):
                return _Answer.unpack(note.answer)
            batch = _Batch.of(blocks)
            own.require_free(batch.growth_bytes)
            with SharedWindow(folder, options, self._plan.window).opened() as window:
                task = _Task(partition, self._plan, head, self._log, batch, own, window)
                state, messages, answer = task.applied(note)
                kept = Note(head.version + 1, digest, answer.pack(), messages.token)
                own.keep(state, kept, window.outside(messages))
            return answer


class _Batch(NamedTuple):
    """The rows of a batch."""

    blocks: list[tuple[str, bytes]]
    messages: MessageBatch | None
    subscriptions: Subscriptions | None

    @classmethod
    def of(cls, blocks: list[tuple[str, bytes]]) -> _Batch:
        """Read the blocks of a batch."""
        own = [one for one in blocks if one[0] == MESSAGES]
        messages = [Messages.unpack(block) for _, block in own]
        subscriptions = [Subscriptions.unpack(block) for kind, block in blocks if kind == SUBSCRIPTIONS]
        return cls(
            blocks,
            MessageBatch(Messages.join(messages), _digest(own)) if own else None,
            Subscriptions.join(subscriptions) if subscriptions else None,
        )

    @property
    def growth_bytes(self) -> int:
        """The bytes by which the index of a partition may grow."""
        return _growth_bytes(self.subscriptions) + (
            0 if self.messages is None else _BUFFERED_BYTES * len(self.messages.messages)
        )


class _Task(NamedTuple):
    """A batch at a partition."""

    partition: int
    plan: Plan
    head: Head
    log: Log
    batch: _Batch
    own: SharedArrays
    window: SharedWindow

    def applied(self, note: Note | None) -> tuple[_State, LiveMessages, _Answer]:
        """Return the partition and the messages of the host after the batch, and the response.

        Parameters
        ----------
        note
            The note of the partition in memory.
        """
        window, is_rebuilt = self.window, False
        is_there = note is not None and note.version == self.head.version
        if note is None or not is_there or note.token != window.token:
            self.own.discard()
            self.own.discard_outdated()
            if self.head.subscriptions == 0:  # as before the first batch
                messages = self._after()
                state = self._new(messages)
                return state, messages, self._answered(state, messages, is_rebuilt=False)
            is_rebuilt, note = True, None
            before = window.before(self.head, self.batch.messages, self.log)
            if before is not None:
                note = Note(self.head.version, b"", b"", before.token)
                self.own.keep(self._restored(before), note, window.outside(before))
        messages = self._after()
        if note is not None and note.token == messages.token:
            with suppress(LostError):
                state = cast("_State", self.own.take(window.outside(messages)))
                return state, messages, self._answered(state, messages, is_rebuilt=is_rebuilt)
        return self._rebuilt(messages)

    def _after(self) -> LiveMessages:
        """Return the messages of the host after the batch."""
        if self.batch.messages is not None:
            return self.window.after(self.head, self.batch.messages, self.log)
        found = self.window.before(self.head, None, self.log)
        assert found is not None  # noqa: S101 - only a batch of messages is applied
        return found

    def _rebuilt(self, messages: LiveMessages) -> tuple[_State, LiveMessages, _Answer]:
        """Rebuild the partition over messages of its own for the response, and over those of the host."""
        before = self.window.private(self.head, self.log)
        state = self._restored(before)
        if self.batch.messages is not None:
            (words,) = self.window.words_of(self.batch.messages.messages)
            before.apply(self.batch.messages.messages, words)
        answer = self._answered(state, before, is_rebuilt=True)
        last = [] if answer.subscriptions is None else [Subscriptions.unpack(answer.subscriptions)]
        return self._restored(messages, last), messages, answer

    def _restored(self, messages: LiveMessages, last: Sequence[Subscriptions] = ()) -> _State:
        """Rebuild the partition over messages, from the log and the last subscriptions after it."""
        state = self._new(messages)
        blocks = [*self.log.subscriptions(), *last]
        if blocks:
            block = Subscriptions.join(blocks)
            self.own.require_free(_growth_bytes(block))
            (words,) = self.window.words_of(block)
            state.partition.restore(block, words)
        return state

    def _new(self, messages: LiveMessages) -> _State:
        """Return a partition without subscriptions."""
        mechanism = self.plan.make_distribution()
        options = self.plan.engine_options()
        if not isinstance(mechanism, Replicated):
            return _State(Partition(options, messages), None)
        candidates = Candidates()
        make = MakeCandidateIndex(candidates)
        options = replace(options, subscription_index=make, weighted_index=make)
        return _State(Partition(options, messages, candidates), Placer(mechanism))

    def _answered(self, state: _State, messages: LiveMessages, *, is_rebuilt: bool) -> _Answer:
        """Apply the batch to the partition; the messages have it already."""
        partition, head, batch = state.partition, self.head, self.batch
        began_s = time.perf_counter()
        (words,) = self.window.words_of(batch.subscriptions)
        step = None if batch.messages is None else messages.step
        applied = partition.apply(batch.subscriptions, words, step, _found(state, batch.blocks))
        rows = [AnswerRow(self.partition, kind, block) for kind, block in batch.blocks if kind in _PASSED]
        for start in range(0, len(applied.changes), _CHANGES_MAX):
            part = applied.changes.part(start, start + _CHANGES_MAX)
            rows.append(AnswerRow(self.partition, CHANGES, to_bytes(part.rows())))
        left = int(np.count_nonzero(applied.changes.is_left))
        counts = {
            **applied.counts._asdict(),
            "entered": len(applied.changes) - left,
            "left": left,
            "received": 0 if batch.messages is None else len(batch.messages.messages),
            "refused": sum(1 + block.count(b"\n") for kind, block in batch.blocks if kind == REFUSED),
            "apply_us": round((time.perf_counter() - began_s) * 1e6),
            "rebuilt": int(is_rebuilt and head.version > 0),
            "index_bytes": self.own.occupied_bytes,
            "block_bytes": sum(len(block) for _, block in batch.blocks),
            "now_ms": messages.now_ms,
        }
        if self.window.applied_bytes:
            counts["window_bytes"] = self.window.applied_bytes
        answer = _Answer(
            Head(
                head.version + 1,
                messages.now_ms,
                messages.window.next_number,
                head.logged + (0 if applied.subscriptions is None else len(applied.subscriptions)),
                partition.subscription_count,
                head.message_batches + (batch.messages is not None),
            ),
            rows,
            _logged(applied, messages),
            applied.subscriptions.pack() if applied.subscriptions is not None else None,
        )
        if state.placer is not None:
            numbers = self.window.words.numbers
            answer.rows.extend(_feedback(self.partition, state, state.placer, answer, numbers))
        gauges = _gauges(self.partition, state, batch.blocks)
        answer.rows.append(_counted(self.partition, counts | gauges))
        return answer


class _State(NamedTuple):
    """The value that lies in memory."""

    partition: Partition
    placer: Placer | None
    """Present if subscriptions have replicas."""


def _gauges(partition: int, state: _State, blocks: Iterable[tuple[str, bytes]]) -> dict[str, int]:
    """Return the numbers of subscriptions and replicas, and what replicas have matched."""
    found = [FoundBlock.unpack(block) for kind, block in blocks if kind == FOUND]
    count = state.partition.subscription_count
    if state.placer is None:
        return {"subscriptions": count, "replicas": count}
    return {
        "subscriptions": count,
        "replicas": state.placer.replica_count,
        # Replicas send every owner the number of their messages: only one owner counts it.
        "matched": sum(block.received for block in found) if partition == 0 else 0,
        "pairs": sum(len(block.found.object_id) for block in found),
        # For the same reason each owner counts the time of the replicas of its own partition.
        "match_us": sum(block.match_us for block in found if block.partition == partition),
    }


def _found(state: _State, blocks: Iterable[tuple[str, bytes]]) -> Found | None:
    """Return the pairs that replicas have found; None if one of them lacked feedback."""
    if state.placer is None:
        return None
    found = [FoundBlock.unpack(block) for kind, block in blocks if kind == FOUND]
    are_known = [state.placer.require(block.partition, block.last_seen) for block in found]
    if not all(are_known):
        return None
    nothing = [np.empty(0, dtype=np.int64)]
    return Found(
        np.concatenate([one.found.object_id for one in found] or nothing),
        np.concatenate([one.found.handle for one in found] or nothing),
    )


def _feedback(
    partition: int, state: _State, placer: Placer, answer: _Answer, numbers: Numbers
) -> list[AnswerRow]:
    """Return the feedback for replicas, and the number of its rows."""
    candidates = state.partition.candidates
    changed = np.empty(0, dtype=np.int64) if candidates is None else candidates.take_touched()
    started = np.empty(0, dtype=np.int64)
    if answer.subscriptions is not None:
        block = Subscriptions.unpack(answer.subscriptions)
        started = handle_of(STATIONARY, 0) + block.subscription_id[block.is_end == 0]
    sent = placer.feedback(
        partition, answer.head.version, state.partition.matcher, numbers, changed, started
    )
    rows, count = [], 0
    for target, feedback in sent:
        rows.append(AnswerRow(target, FEEDBACK, feedback.pack()))
        count += len(feedback.placements)
    return [*rows, _counted(partition, {"feedback": count, "feedback_blocks": len(rows)})]


def _counted(partition: int, counts: dict[str, int]) -> AnswerRow:
    return AnswerRow(partition, COUNTS, json.dumps(counts).encode())


def _growth_bytes(subscriptions: Subscriptions | None) -> int:
    """Return the bytes by which an index may grow with these subscriptions."""
    return 0 if subscriptions is None else _SUBSCRIPTION_BYTES * len(subscriptions)


def _digest(blocks: Iterable[tuple[str, bytes]]) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for kind, block in blocks:
        digest.update(f"{kind} {len(block)} ".encode())
        digest.update(block)
    return digest.digest()


def _logged(applied: Applied, messages: LiveMessages) -> LoggedMessages | None:
    if applied.messages is None:
        return None
    first_ms, _ = messages.window.first_key(messages.now_ms)
    next_number, block = messages.window.next_number, applied.messages.pack()
    return LoggedMessages(next_number, messages.now_ms, block, first_ms)


def release(spark: SparkSession, run: str, memory: Path) -> None:
    """Remove the engines of a run, of a job that is not running, from the memory of all hosts."""
    folder = str(memory / run)

    def removed(_: Iterable[object]) -> Iterator[int]:
        shutil.rmtree(folder, ignore_errors=True)
        yield 1

    on_all_slots(spark, removed)
