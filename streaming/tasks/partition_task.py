"""One batch at one partition: find the engine in memory or rebuild it, apply the batch, and respond.

The engine refers to the messages of the host (`shared_window`), to which another task may have applied
the batch before. An engine is then rebuilt twice: over messages of its own, as they were before the
batch, which give the response; and over those of the host, to be kept.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

import numpy as np

from engine.contracts import STATIONARY, handle_of
from streaming.arrays.blocks import Subscriptions
from streaming.arrays.changes import to_bytes
from streaming.arrays.numbers import Numbers
from streaming.distribution.keywords import Replicated
from streaming.partition.applied import Applied, Found
from streaming.partition.candidates import Candidates, MakeCandidateIndex
from streaming.partition.live_messages import LiveMessages
from streaming.partition.partition import Partition
from streaming.partition.placing import Placer
from streaming.plan import Plan
from streaming.tasks.answers import CHANGES, Answer, AnswerRow
from streaming.tasks.batch import Batch, growth_bytes
from streaming.tasks.log import Head, Log, LoggedMessages
from streaming.tasks.replicating import FoundBlock
from streaming.tasks.routing import FEEDBACK, FOUND, READ, REFUSED
from streaming.tasks.shared_arrays import LostError, Note, SharedArrays
from streaming.tasks.shared_window import SharedWindow

_PASSED = frozenset({REFUSED, READ})
"""Rows that a partition passes on as they are."""
_CHANGES_MAX = 1_000_000
"""Changes in one row of Spark: some ten megabytes."""


class State(NamedTuple):
    """The value that lies in memory."""

    partition: Partition
    placer: Placer | None
    """Present if subscriptions have replicas."""


class PartitionTask(NamedTuple):
    """A batch at a partition."""

    partition: int
    plan: Plan
    head: Head
    log: Log
    batch: Batch
    own: SharedArrays
    window: SharedWindow

    def applied(self, note: Note | None) -> tuple[State, LiveMessages, Answer]:
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
        if note is None or note.token != messages.token:
            return self._rebuilt(messages)
        try:
            kept = cast("State", self.own.take(window.outside(messages)))
        except LostError:
            return self._rebuilt(messages)
        return kept, messages, self._answered(kept, messages, is_rebuilt=is_rebuilt)

    def _after(self) -> LiveMessages:
        """Return the messages of the host after the batch."""
        if self.batch.messages is not None:
            return self.window.after(self.head, self.batch.messages, self.log)
        found = self.window.before(self.head, None, self.log)
        assert found is not None  # noqa: S101 - only a batch of messages is applied
        return found

    def _rebuilt(self, messages: LiveMessages) -> tuple[State, LiveMessages, Answer]:
        """Rebuild the partition over messages of its own for the response, and over those of the host."""
        before = self.window.private(self.head, self.log)
        state = self._restored(before)
        if self.batch.messages is not None:
            (words,) = self.window.words_of(self.batch.messages.messages)
            before.apply(self.batch.messages.messages, words)
        answer = self._answered(state, before, is_rebuilt=True)
        last = [] if answer.subscriptions is None else [Subscriptions.unpack(answer.subscriptions)]
        return self._restored(messages, last), messages, answer

    def _restored(self, messages: LiveMessages, last: Sequence[Subscriptions] = ()) -> State:
        """Rebuild the partition over messages, from the log and the last subscriptions after it."""
        state = self._new(messages)
        blocks = [*self.log.subscriptions(), *last]
        if blocks:
            block = Subscriptions.join(blocks)
            self.own.require_free(growth_bytes(block))
            (words,) = self.window.words_of(block)
            state.partition.restore(block, words)
        return state

    def _new(self, messages: LiveMessages) -> State:
        """Return a partition without subscriptions."""
        mechanism = self.plan.make_distribution()
        options = self.plan.engine_options()
        if not isinstance(mechanism, Replicated):
            return State(Partition(options, messages), None)
        candidates = Candidates()
        make = MakeCandidateIndex(candidates)
        options = replace(options, subscription_index=make, weighted_index=make)
        return State(Partition(options, messages, candidates), Placer(mechanism))

    def _answered(self, state: State, messages: LiveMessages, *, is_rebuilt: bool) -> Answer:
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
        answer = Answer(
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
        answer.rows.append(AnswerRow.counted(self.partition, counts | gauges))
        return answer


def _gauges(partition: int, state: State, blocks: Iterable[tuple[str, bytes]]) -> dict[str, int]:
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


def _found(state: State, blocks: Iterable[tuple[str, bytes]]) -> Found | None:
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
    partition: int, state: State, placer: Placer, answer: Answer, numbers: Numbers
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
    return [*rows, AnswerRow.counted(partition, {"feedback": count, "feedback_blocks": len(rows)})]


def _logged(applied: Applied, messages: LiveMessages) -> LoggedMessages | None:
    if applied.messages is None:
        return None
    first_ms, _ = messages.window.first_key(messages.now_ms)
    next_number, block = messages.window.next_number, applied.messages.pack()
    return LoggedMessages(next_number, messages.now_ms, block, first_ms)
