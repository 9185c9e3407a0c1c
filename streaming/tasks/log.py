"""What Spark's state keeps of a partition: its log, from which everything else follows.

Blocks of the messages in the window, whatever has become of them, and of subscriptions as they were
applied, one for each batch, and a few numbers.
What is behind the window goes; subscriptions are written anew when half of their rows are out of date.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from index.batches import Ints
from streaming.arrays.blocks import Messages, Subscriptions

_HEAD_DDL = "version long, now_ms long, next_number long, logged long, subscriptions long"
_MESSAGES_DDL = "block binary"
_SPAN_DDL = "next_number long, latest_ms long"

_GARBAGE_MIN = 10_000
"""So many rows of the log of subscriptions, or half of them, may be out of date."""
_BLOCK_ROWS = 50_000


class Head(NamedTuple):
    """The numbers in the state."""

    version: int = 0
    """How many batches were applied."""
    now_ms: int = 0
    next_number: int = 0
    """How many messages have taken a place in the window."""
    logged: int = 0
    """Rows in the log of subscriptions."""
    subscriptions: int = 0
    """How many there are."""


class LoggedMessages(NamedTuple):
    """What the state keeps of the messages of a batch."""

    next_number: int
    latest_ms: int
    """The time of the partition behind the batch: none of its messages is later."""
    block: bytes
    first_ms: int = 0
    """Where the window begins behind the batch: what is earlier is behind it. It is not kept."""


class InitialState(NamedTuple):
    """What a partition begins with that others have put aside."""

    head: Head
    messages: Sequence[LoggedMessages]
    subscriptions: Sequence[bytes]


class Log:
    """The log of one partition.

    Parameters
    ----------
    handle
        Spark's.
    """

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._head = handle.getValueState("head", _HEAD_DDL)
        self._messages = handle.getMapState("messages", "version long", _MESSAGES_DDL)
        self._spans = handle.getMapState("spans", "version long", _SPAN_DDL)
        self._subscriptions = handle.getMapState("subscriptions", "version long", "block binary")

    def head(self) -> Head | None:
        """Return the numbers; None of a partition that has applied nothing."""
        kept = self._head.get()
        return None if kept is None else Head(*kept)

    def blocks(self) -> tuple[list[Messages], list[Subscriptions]]:
        """Return the blocks of messages and those of subscriptions, in order."""
        return (
            [Messages.unpack(bytes(value[0])) for _, value in _sorted(self._messages)],
            [Subscriptions.unpack(bytes(value[0])) for _, value in _sorted(self._subscriptions)],
        )

    def begin(self, initial: InitialState) -> Head:
        """Take what others have put aside; before anything else. Return the numbers."""
        for version, one in enumerate(initial.messages):
            self._keep(version, one)
        for version, block in enumerate(initial.subscriptions):
            self._subscriptions.updateValue((version,), (block,))
        version = max(len(initial.messages), len(initial.subscriptions))
        head = initial.head._replace(version=version)
        self._head.update(tuple(head))
        return head

    def clear(self) -> None:
        """Forget everything."""
        for state in (self._head, self._messages, self._spans, self._subscriptions):
            state.clear()

    def append(self, head: Head, messages: LoggedMessages | None, subscriptions: bytes | None) -> None:
        """Keep a batch, behind which the numbers are these, and let go of what is behind the window."""
        if messages is not None:
            self._keep(head.version, messages)
            self._trim(messages.first_ms)
        if subscriptions is not None:
            self._subscriptions.updateValue((head.version,), (subscriptions,))
        if head.logged - head.subscriptions > max(_GARBAGE_MIN, head.subscriptions):
            head = head._replace(logged=self._compact(head.version))
        self._head.update(tuple(head))

    def _keep(self, version: int, messages: LoggedMessages) -> None:
        self._messages.updateValue((version,), (messages.block,))
        self._spans.updateValue((version,), (messages.next_number, messages.latest_ms))

    def _trim(self, first_ms: int) -> None:
        """Forget batches of which everything is behind the window."""
        for version, (_, latest_ms) in _sorted(self._spans):
            if latest_ms >= first_ms:
                return
            self._spans.removeKey((version,))
            self._messages.removeKey((version,))

    def _compact(self, version: int) -> int:
        """Write the log of subscriptions anew; return how many rows it has."""
        kept = _sorted(self._subscriptions)
        alive = compacted([Subscriptions.unpack(bytes(value[0])) for _, value in kept])
        for old, _ in kept:
            self._subscriptions.removeKey((old,))
        blocks = [one.pack() for one in chunks(alive)]
        # Versions of before, of which there are none any more, in the order of what they have.
        for number, block in enumerate(blocks):
            self._subscriptions.updateValue((version - len(blocks) + 1 + number,), (block,))
        return len(alive)


def compacted(blocks: Sequence[Subscriptions]) -> Subscriptions:
    """Return who is there behind blocks in this order, as they came last."""
    joined = Subscriptions.join(blocks)
    _, last = np.unique(joined.subscription_id[::-1], return_index=True)
    rows: Ints = np.sort(len(joined) - 1 - last)
    return joined.part(rows[joined.is_end[rows] == 0]).lean()


def chunks(alive: Subscriptions) -> Iterator[Subscriptions]:
    """Yield subscriptions in blocks that are not too large for a row of Spark."""
    for start in range(0, len(alive), _BLOCK_ROWS):
        yield alive.part(np.arange(start, min(start + _BLOCK_ROWS, len(alive)))).lean()


def _sorted(state: Any) -> list[tuple[int, Any]]:  # noqa: ANN401
    """Return a map of versions, in order."""
    found: Iterable[tuple[int, Any]] = ((key[0], value) for key, value in state.iterator())
    return sorted(found, key=lambda item: item[0])
