"""The stateful operator: one partition, with its log in Spark's state and its engine in memory.

The state holds the data that cannot be recomputed (`log`). The engine, which is much larger, follows from
it. The engine lies in memory (`shared_arrays`), with its version, the digest of the input that led to
this version, and the response to that input. If Spark repeats a batch after a fault, the operator may
find the engine one version behind, and applies the batch; or already at the version of the batch, and
returns the stored response; or find no engine, and rebuilds it from the log.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Iterable, Iterator
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
from streaming.distribution.keywords import Replicated
from streaming.partition.applied import Applied, Found
from streaming.partition.candidates import Candidates, MakeCandidateIndex
from streaming.partition.partition import Partition
from streaming.partition.placing import Placer
from streaming.plan import Plan
from streaming.tasks.log import Head, Log, LoggedMessages
from streaming.tasks.rebalanced_state import initial_state
from streaming.tasks.replicating import FoundBlock
from streaming.tasks.routing import FEEDBACK, FOUND, MESSAGES, READ, REBALANCED, REFUSED, SUBSCRIPTIONS
from streaming.tasks.shared_arrays import LostError, Note, SharedArrays

CHANGES, COUNTS = "changes", "counts"

ANSWERS_DDL = "partition int, kind string, block binary"
"""The response of a partition to a batch: changes, counts, and rows that were refused."""

_MESSAGE_BYTES, _SUBSCRIPTION_BYTES = 300, 2_000
"""Memory of a row, somewhat more than is usual (docs/streaming.md, Sizes)."""
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
        digest = hashlib.blake2b(digest_size=16)
        # The pairs of replicas may differ in a batch that is repeated; the response does not.
        for kind, block in [one for one in blocks if one[0] != FOUND]:
            digest.update(f"{kind} {len(block)} ".encode())
            digest.update(block)
        shared = SharedArrays(self._plan.folder(self._memory) / str(partition))
        with shared.locked(), rooms_of(shared.room):
            note = shared.note()
            if note is not None and (note.version, note.digest) == (head.version + 1, digest.digest()):
                return _Answer.unpack(note.answer)
            arrived = _unpacked(blocks)
            shared.require_free(_growth_bytes(*arrived))
            state = self._kept_state(shared, note, head)
            is_rebuilt = state is None
            state = self._restored(head, shared) if state is None else state
            answer = _applied(partition, state, head, blocks, *arrived)
            if state.placer is not None:
                answer.rows.extend(_feedback(partition, state, state.placer, answer))
            memory = {
                "rebuilt": int(is_rebuilt and head.version > 0),
                "index_bytes": shared.occupied_bytes,
                "block_bytes": sum(len(block) for _, block in blocks),
                "now_ms": answer.head.now_ms,
            }
            answer.rows.append(_counted(partition, _gauges(partition, state, blocks) | memory))
            shared.keep(state, Note(head.version + 1, digest.digest(), answer.pack()))
            return answer

    def _kept_state(self, shared: SharedArrays, note: Note | None, head: Head) -> _State | None:
        """Return the partition as it was after the last batch, if it is in memory."""
        if note is not None and note.version == head.version:
            with suppress(LostError):
                return cast("_State", shared.take())
        shared.discard()
        shared.discard_outdated()
        return None

    def _new(self) -> _State:
        """Return an empty partition."""
        mechanism = self._plan.make_distribution()
        options = self._plan.engine_options()
        if not isinstance(mechanism, Replicated):
            return _State(Partition(options, self._plan.window), None)
        candidates = Candidates()
        make = MakeCandidateIndex(candidates)
        options = replace(options, subscription_index=make, weighted_index=make)
        return _State(
            Partition(options, self._plan.window, candidates),
            Placer(mechanism),
        )

    def _restored(self, head: Head, shared: SharedArrays) -> _State:
        """Rebuild a partition from the log."""
        state = self._new()
        messages, subscriptions = self._log.blocks()
        shared.require_free(_growth_bytes(messages, subscriptions))
        state.partition.restore(head.now_ms, head.next_number, messages, subscriptions)
        return state


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


def _feedback(partition: int, state: _State, placer: Placer, answer: _Answer) -> list[AnswerRow]:
    """Return the feedback for replicas, and the number of its rows."""
    candidates = state.partition.candidates
    changed = np.empty(0, dtype=np.int64) if candidates is None else candidates.take_touched()
    started = np.empty(0, dtype=np.int64)
    if answer.subscriptions is not None:
        block = Subscriptions.unpack(answer.subscriptions)
        started = handle_of(STATIONARY, 0) + block.subscription_id[block.is_end == 0]
    sent = placer.feedback(
        partition, answer.head.version, state.partition.matcher, state.partition.numbers, changed, started
    )
    rows, count = [], 0
    for target, feedback in sent:
        rows.append(AnswerRow(target, FEEDBACK, feedback.pack()))
        count += len(feedback.placements)
    return [*rows, _counted(partition, {"feedback": count, "feedback_blocks": len(rows)})]


def _counted(partition: int, counts: dict[str, int]) -> AnswerRow:
    return AnswerRow(partition, COUNTS, json.dumps(counts).encode())


def _unpacked(blocks: list[tuple[str, bytes]]) -> tuple[list[Messages], list[Subscriptions]]:
    """Return the messages and the subscriptions of a batch."""
    return (
        [Messages.unpack(block) for kind, block in blocks if kind == MESSAGES],
        [Subscriptions.unpack(block) for kind, block in blocks if kind == SUBSCRIPTIONS],
    )


def _growth_bytes(messages: Iterable[Messages], subscriptions: Iterable[Subscriptions]) -> int:
    """Return the bytes by which an index may grow with these rows."""
    return _MESSAGE_BYTES * sum(map(len, messages)) + _SUBSCRIPTION_BYTES * sum(map(len, subscriptions))


def _applied(
    own: int,
    state: _State,
    head: Head,
    blocks: list[tuple[str, bytes]],
    messages: list[Messages],
    subscriptions: list[Subscriptions],
) -> _Answer:
    """Apply a batch to a partition; return the response."""
    partition = state.partition
    began_s = time.perf_counter()
    applied = partition.apply(
        Subscriptions.join(subscriptions) if subscriptions else None,
        Messages.join(messages) if messages else None,
        _found(state, blocks),
    )
    rows = [AnswerRow(own, kind, block) for kind, block in blocks if kind in {REFUSED, READ}]
    for start in range(0, len(applied.changes), _CHANGES_MAX):
        part = applied.changes.part(start, start + _CHANGES_MAX)
        rows.append(AnswerRow(own, CHANGES, to_bytes(part.rows())))
    left = int(np.count_nonzero(applied.changes.is_left))
    counts = {
        **applied.counts._asdict(),
        "entered": len(applied.changes) - left,
        "left": left,
        "received": sum(map(len, messages)),
        "refused": sum(1 + block.count(b"\n") for kind, block in blocks if kind == REFUSED),
        "apply_us": round((time.perf_counter() - began_s) * 1e6),
    }
    rows.append(_counted(own, counts))
    return _Answer(
        Head(
            head.version + 1,
            partition.now_ms,
            partition.window.next_number,
            head.logged + (0 if applied.subscriptions is None else len(applied.subscriptions)),
            partition.subscription_count,
        ),
        rows,
        _logged(applied, partition),
        applied.subscriptions.pack() if applied.subscriptions is not None else None,
    )


def _logged(applied: Applied, partition: Partition) -> LoggedMessages | None:
    if applied.messages is None:
        return None
    first_ms, _ = partition.window.first_key(partition.now_ms)
    next_number, block = partition.window.next_number, applied.messages.pack()
    return LoggedMessages(next_number, partition.now_ms, block, first_ms)


def release(spark: SparkSession, run: str, memory: Path) -> None:
    """Remove the engines of a run, of a job that is not running, from the memory of all hosts."""
    folder = str(memory / run)

    def removed(_: Iterable[object]) -> Iterator[int]:
        shutil.rmtree(folder, ignore_errors=True)
        yield 1

    on_all_slots(spark, removed)
