"""The stateful operator: one partition, its log in Spark's state, its engine in memory beside.

State is what cannot be had again: blocks of live messages and of subscriptions, as they were applied, one
for each batch, and a few numbers. The engine, much larger, follows from them. It lies in memory
(`resident`), with the version it has come to, what made it so, and what was said to that. So a batch that
Spark gives out again, after a fault, finds the engine one version behind and goes on; or already there,
and the answer with it; or gone, and builds it anew from the log.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from engine.contracts import STANDING, handle_of
from index.batches import Ints
from index.tables.growth import rooms_of
from streaming.arrays.blocks import Messages, Subscriptions
from streaming.arrays.changes import to_bytes
from streaming.distribution.keywords import Replicated
from streaming.partition.candidates import Candidates, MakeCandidateIndex
from streaming.partition.partition import Applied, Found, Partition
from streaming.partition.placing import Placer
from streaming.partition.replicas import Heard
from streaming.plan import Plan
from streaming.tasks.matching import FoundBlock, board
from streaming.tasks.resident import Note, Resident
from streaming.tasks.routing import FOUND, MESSAGES, REFUSED, SUBSCRIPTIONS

CHANGES, COUNTS = "changes", "counts"

ANSWERS_DDL = "partition int, kind string, block binary"
"""What a partition says of a batch: changes, counts, and what was refused."""

_HEAD_DDL = "version long, now_ms long, next_number long, logged long, subscriptions long"
_MESSAGES_DDL = "first_number long, block binary"
_SPAN_DDL = "next_number long, latest_ms long"

_GARBAGE_MIN = 10_000
"""So many rows of the log of subscriptions, or half of them, may be out of date."""
_COMPACTED_ROWS = 50_000
_CHANGES_MAX = 1_000_000
"""Of one row of Spark: some ten megabytes."""


class _Head(NamedTuple):
    """The numbers in the state."""

    version: int = 0
    """How many batches were applied."""
    now_ms: int = 0
    next_number: int = 0
    logged: int = 0
    """Rows in the log of subscriptions."""
    subscriptions: int = 0
    """How many there are."""


class _LoggedMessages(NamedTuple):
    """What the state keeps of the messages of a batch."""

    first_number: int
    latest_ms: int
    block: bytes


@dataclass(frozen=True, slots=True)
class _Answer:
    """What is said to a batch, and what the state keeps of it."""

    head: _Head
    rows: list[tuple[str, bytes]]
    messages: _LoggedMessages | None
    subscriptions: bytes | None

    def pack(self) -> bytes:
        """Write it."""
        numbers: dict[str, Any] = {"head": self.head, "kinds": [kind for kind, _ in self.rows]}
        blocks = [block for _, block in self.rows]
        if self.messages is not None:
            numbers["messages"] = self.messages[:2]
            blocks.append(self.messages.block)
        if self.subscriptions is not None:
            numbers["subscriptions"] = True
            blocks.append(self.subscriptions)
        numbers["sizes"] = [len(block) for block in blocks]
        return json.dumps(numbers).encode() + b"\n" + b"".join(blocks)

    @classmethod
    def unpack(cls, data: bytes) -> _Answer:
        """Read it."""
        first, _, rest = data.partition(b"\n")
        numbers = json.loads(first)
        ends = np.cumsum(numbers["sizes"]).tolist()
        blocks = [rest[end - size : end] for end, size in zip(ends, numbers["sizes"], strict=True)]
        subscriptions = blocks.pop() if "subscriptions" in numbers else None
        messages = None
        if "messages" in numbers:
            first_number, latest_ms = numbers["messages"]
            messages = _LoggedMessages(first_number, latest_ms, blocks.pop())
        rows = list(zip(numbers["kinds"], blocks, strict=True))
        return cls(_Head(*numbers["head"]), rows, messages, subscriptions)


class PartitionProcessor(StatefulProcessor):
    """Applies batches to partitions.

    Parameters
    ----------
    plan
        Of the job.
    memory
        A folder on a file system in memory, for engines.
    """

    def __init__(self, plan: Plan, memory: Path) -> None:
        self._plan = plan
        self._memory = memory

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._head = handle.getValueState("head", _HEAD_DDL)
        self._messages = handle.getMapState("messages", "version long", _MESSAGES_DDL)
        self._spans = handle.getMapState("spans", "version long", _SPAN_DDL)
        self._subscriptions = handle.getMapState("subscriptions", "version long", "block binary")

    def handleInputRows(  # noqa: N802
        self,
        key: Any,  # noqa: ANN401
        rows: Iterator[Row],
        timerValues: Any,  # noqa: ANN401, ARG002, N803
    ) -> Iterator[Row]:
        """Apply a batch to a partition."""
        partition = self._plan.keys.index(key[0])
        # Tasks that are repeated may bring the same blocks in another order.
        blocks = sorted((row.kind, bytes(row.block)) for row in rows)
        kept = self._head.get()
        head = _Head() if kept is None else _Head(*kept)
        answer = self._answer(partition, head, blocks)
        self._log(answer)
        for kind, block in answer.rows:
            yield Row(partition=partition, kind=kind, block=block)

    def close(self) -> None:
        """Nothing is open."""

    # -- the engine ------------------------------------------------------------------------------

    def _answer(self, partition: int, head: _Head, blocks: list[tuple[str, bytes]]) -> _Answer:
        digest = hashlib.blake2b(digest_size=16)
        # What replicas find may differ in a batch that is repeated; the answer does not.
        for kind, block in [one for one in blocks if one[0] != FOUND]:
            digest.update(f"{kind} {len(block)} ".encode())
            digest.update(block)
        resident = Resident(self._plan.folder(self._memory) / str(partition))
        with resident.locked(), rooms_of(resident.room):
            note = resident.note()
            if note is not None and (note.version, note.digest) == (head.version + 1, digest.digest()):
                return _Answer.unpack(note.answer)
            if note is not None and note.version == head.version:
                state: _State = resident.take()
            else:
                resident.discard()
                state = self._restored(head)
            answer = _applied(state, head, blocks)
            if state.placer is not None:
                self._say(partition, state, state.placer, answer)
            answer.rows.append((COUNTS, json.dumps(_gauges(partition, state, blocks)).encode()))
            resident.keep(state, Note(head.version + 1, digest.digest(), answer.pack()))
            return answer

    def _say(self, partition: int, state: _State, placer: Placer, answer: _Answer) -> None:
        """Say to replicas what is new."""
        candidates = state.partition.candidates
        handles = np.empty(0, dtype=np.int64) if candidates is None else candidates.take_touched()
        fresh = np.empty(0, dtype=np.int64)
        if answer.subscriptions is not None:
            block = Subscriptions.unpack(answer.subscriptions)
            fresh = handle_of(STANDING, 0) + block.subscription_id[block.is_end == 0]
        board(self._plan, self._memory).say(
            partition, answer.head.version, placer, state.partition, handles, fresh
        )

    def _new(self) -> _State:
        """Return a partition that knows nothing yet."""
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

    def _restored(self, head: _Head) -> _State:
        """Build a partition from the log."""
        state = self._new()
        messages = sorted(((key[0], value) for key, value in self._messages.iterator()), key=_first)
        subscriptions = sorted(
            ((key[0], value[0]) for key, value in self._subscriptions.iterator()), key=_first
        )
        state.partition.restore(
            head.now_ms,
            head.next_number,
            [(value[0], Messages.unpack(bytes(value[1]))) for _, value in messages],
            [Subscriptions.unpack(bytes(block)) for _, block in subscriptions],
        )
        return state

    # -- the log ---------------------------------------------------------------------------------

    def _log(self, answer: _Answer) -> None:
        """Put a batch into the state, and let go of what is behind the window."""
        head = answer.head
        if answer.messages is not None:
            self._messages.updateValue(
                (head.version,), (answer.messages.first_number, answer.messages.block)
            )
            self._spans.updateValue((head.version,), (head.next_number, answer.messages.latest_ms))
            self._trim(head)
        if answer.subscriptions is not None:
            self._subscriptions.updateValue((head.version,), (answer.subscriptions,))
        if head.logged - head.subscriptions > max(_GARBAGE_MIN, head.subscriptions):
            head = head._replace(logged=self._compact(head.version))
        self._head.update(tuple(head))

    def _trim(self, head: _Head) -> None:
        """Forget the oldest messages, as far as they are behind the window: numbers have no gaps."""
        window = self._plan.window
        spans = sorted((key[0], value) for key, value in self._spans.iterator())
        for version, (next_number, latest_ms) in spans:
            is_old = window.duration_ms and latest_ms <= head.now_ms - window.duration_ms
            if not is_old and not (window.count and next_number <= head.next_number - window.count):
                return
            self._spans.removeKey((version,))
            self._messages.removeKey((version,))

    def _compact(self, version: int) -> int:
        """Write the log of subscriptions anew; return how many rows it has."""
        blocks = sorted(((key[0], value[0]) for key, value in self._subscriptions.iterator()), key=_first)
        joined = Subscriptions.join([Subscriptions.unpack(bytes(block)) for _, block in blocks])
        _, last = np.unique(joined.subscription_id[::-1], return_index=True)
        rows: Ints = np.sort(len(joined) - 1 - last)
        rows = rows[joined.is_end[rows] == 0]
        for old, _ in blocks:
            self._subscriptions.removeKey((old,))
        starts = range(0, len(rows), _COMPACTED_ROWS)
        # Versions of before, of which there are none any more, in the order of what they have.
        for number, start in enumerate(starts):
            part = joined.part(rows[start : start + _COMPACTED_ROWS])
            self._subscriptions.updateValue((version - len(starts) + 1 + number,), (part.pack(),))
        return len(rows)


class _State(NamedTuple):
    """What lies in memory."""

    partition: Partition
    placer: Placer | None
    """If subscriptions have replicas."""


def _first(item: tuple[int, Any]) -> int:
    return item[0]


def _gauges(partition: int, state: _State, blocks: Iterable[tuple[str, bytes]]) -> dict[str, int]:
    """Return how many subscriptions and replicas there are, and messages that replicas have matched."""
    found = [FoundBlock.unpack(block) for kind, block in blocks if kind == FOUND]
    count = state.partition.subscription_count
    return {
        "subscriptions": count,
        "replicas": count if state.placer is None else state.placer.replica_count,
        # Replicas tell every owner: one of them counts.
        "matched": sum(one.received for one in found) if partition == 0 else 0,
    }


def _found(state: _State, head: _Head, blocks: Iterable[tuple[str, bytes]]) -> Found | None:
    """Return what replicas have found; None if one of them did not know what it must."""
    if state.placer is None:
        return None
    found = [FoundBlock.unpack(block) for kind, block in blocks if kind == FOUND]
    if any(one.heard != Heard(state.placer.token, head.version) for one in found):
        return None
    nothing = [np.empty(0, dtype=np.int64)]
    return Found(
        np.concatenate([one.found.object_id for one in found] or nothing),
        np.concatenate([one.found.handle for one in found] or nothing),
    )


def _applied(state: _State, head: _Head, blocks: list[tuple[str, bytes]]) -> _Answer:
    """Apply a batch to a partition; return the answer."""
    partition = state.partition
    messages = [Messages.unpack(block) for kind, block in blocks if kind == MESSAGES]
    subscriptions = [Subscriptions.unpack(block) for kind, block in blocks if kind == SUBSCRIPTIONS]
    began_s = time.perf_counter()
    applied = partition.apply(
        Subscriptions.join(subscriptions) if subscriptions else None,
        Messages.join(messages) if messages else None,
        _found(state, head, blocks),
    )
    rows = [(REFUSED, block) for kind, block in blocks if kind == REFUSED]
    for start in range(0, len(applied.changes), _CHANGES_MAX):
        part = applied.changes.part(start, start + _CHANGES_MAX)
        rows.append((CHANGES, to_bytes(part.rows())))
    left = int(np.count_nonzero(applied.changes.is_left))
    counts = {
        **applied.counts._asdict(),
        "entered": len(applied.changes) - left,
        "left": left,
        "received": sum(map(len, messages)),
        "apply_us": round((time.perf_counter() - began_s) * 1e6),
    }
    rows.append((COUNTS, json.dumps(counts).encode()))
    return _Answer(
        _Head(
            head.version + 1,
            partition.engine.now_ms,
            partition.window.next_number,
            head.logged + (0 if applied.subscriptions is None else len(applied.subscriptions)),
            partition.subscription_count,
        ),
        rows,
        _logged(applied),
        applied.subscriptions.pack() if applied.subscriptions is not None else None,
    )


def _logged(applied: Applied) -> _LoggedMessages | None:
    block = applied.messages
    if block is None:
        return None
    return _LoggedMessages(applied.first_number, int(block.time_ms.max(initial=0)), block.pack())


def release(plan: Plan, memory: Path) -> None:
    """Remove the engines of a job that does not go on, from this machine's memory."""
    shutil.rmtree(memory / plan.run, ignore_errors=True)
