"""The log of a partition in Spark's state, from which its whole state follows.

The log holds a block for each batch of the messages in the window, including expired and retracted ones;
a block for each batch of the subscriptions as they were applied; and a few numbers. Messages behind the
window are removed. The log of subscriptions is compacted when half of its rows are out of date.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from index.batches import Ints
from streaming.arrays.blocks import Messages, Subscriptions

_HEAD_DDL = (
    "version long, now_ms long, next_number long, logged long, subscriptions long, message_batches long"
)
_MESSAGES_DDL = "block binary"
_SPAN_DDL = "next_number long, latest_ms long"
_FIRST_DDL = "version long"

_GARBAGE_MIN = 10_000
"""The number of rows of the log of subscriptions, or else half of them, that may be out of date."""
_BLOCK_ROWS = 50_000


class Head(NamedTuple):
    """The numbers in the state."""

    version: int = 0
    """The number of batches that were applied."""
    now_ms: int = 0
    next_number: int = 0
    """The number of messages that have taken a place in the window."""
    logged: int = 0
    """Rows in the log of subscriptions."""
    subscriptions: int = 0
    """The number of live subscriptions."""
    message_batches: int = 0
    """The number of batches with messages that were applied: the same in all partitions."""


class LoggedMessages(NamedTuple):
    """The data of a batch's messages that the state keeps."""

    next_number: int
    latest_ms: int
    """The time of the partition after the batch: none of its messages is later."""
    block: bytes
    first_ms: int = 0
    """The start of the window after the batch; earlier messages are behind it. Not kept in the state."""


class InitialState(NamedTuple):
    """The initial state of a partition, which a rebalancing has set aside."""

    head: Head
    messages: Sequence[LoggedMessages]
    subscriptions: Sequence[bytes]


class Log:
    """The log of one partition.

    Parameters
    ----------
    handle
        The handle of Spark's state.
    """

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._head = handle.getValueState("head", _HEAD_DDL)
        self._messages = handle.getMapState("messages", "version long", _MESSAGES_DDL)
        self._spans = handle.getMapState("spans", "version long", _SPAN_DDL)
        self._first = handle.getValueState("first", _FIRST_DDL)
        self._subscriptions = handle.getMapState("subscriptions", "version long", "block binary")

    def head(self) -> Head | None:
        """Return the numbers; None if the partition has applied no batch."""
        kept = self._head.get()
        return None if kept is None else Head(*kept)

    def messages(self) -> list[Messages]:
        """Return the blocks of messages in order."""
        return [Messages.unpack(bytes(value[0])) for _, value in _sorted(self._messages)]

    def subscriptions(self) -> list[Subscriptions]:
        """Return the blocks of subscriptions in order."""
        return [Subscriptions.unpack(bytes(value[0])) for _, value in _sorted(self._subscriptions)]

    def begin(self, initial: InitialState) -> Head:
        """Store the initial state set aside by a rebalancing; call this first. Return the numbers."""
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
        for state in (self._head, self._messages, self._spans, self._first, self._subscriptions):
            state.clear()

    def append(self, head: Head, messages: LoggedMessages | None, subscriptions: bytes | None) -> None:
        """Log a batch and the numbers after it, and remove messages that are behind the window."""
        if messages is not None:
            self._keep(head.version, messages)
            self._trim(messages.first_ms, head.version)
        if subscriptions is not None:
            self._subscriptions.updateValue((head.version,), (subscriptions,))
        if head.logged - head.subscriptions > max(_GARBAGE_MIN, head.subscriptions):
            head = head._replace(logged=self._compact(head.version))
        self._head.update(tuple(head))

    def _keep(self, version: int, messages: LoggedMessages) -> None:
        self._messages.updateValue((version,), (messages.block,))
        self._spans.updateValue((version,), (messages.next_number, messages.latest_ms))

    def _trim(self, first_ms: int, last: int) -> None:
        """Remove batches up to `last` whose messages are all behind the window.

        Spark reads a map entry by entry, so the state has the first version that may still be there.
        """
        kept = self._first.get()
        first = _sorted(self._spans)[0][0] if kept is None else int(kept[0])
        while first <= last:
            span = self._spans.getValue((first,))
            if span is not None:
                if span[1] >= first_ms:
                    break
                self._spans.removeKey((first,))
                self._messages.removeKey((first,))
            first += 1
        if kept is None or first > kept[0]:
            self._first.update((first,))

    def _compact(self, version: int) -> int:
        """Compact the log of subscriptions; return its number of rows."""
        kept = _sorted(self._subscriptions)
        alive = compacted([Subscriptions.unpack(bytes(value[0])) for _, value in kept])
        for old, _ in kept:
            self._subscriptions.removeKey((old,))
        blocks = [one.pack() for one in chunks(alive)]
        # Earlier versions, which are free again, in the order of the blocks.
        for number, block in enumerate(blocks):
            self._subscriptions.updateValue((version - len(blocks) + 1 + number,), (block,))
        return len(alive)


def compacted(blocks: Sequence[Subscriptions]) -> Subscriptions:
    """Return the live subscriptions after these blocks, in the order of their last rows."""
    joined = Subscriptions.join(blocks)
    _, last = np.unique(joined.subscription_id[::-1], return_index=True)
    rows: Ints = np.sort(len(joined) - 1 - last)
    return joined.part(rows[joined.is_end[rows] == 0]).lean()


def chunks(alive: Subscriptions) -> Iterator[Subscriptions]:
    """Yield subscriptions in blocks that are not too large for a row of Spark."""
    for start in range(0, len(alive), _BLOCK_ROWS):
        yield alive.part(np.arange(start, min(start + _BLOCK_ROWS, len(alive)))).lean()


def _sorted(state: Any) -> list[tuple[int, Any]]:  # noqa: ANN401
    """Return the items of a map by version, in order."""
    found: Iterable[tuple[int, Any]] = ((key[0], value) for key, value in state.iterator())
    return sorted(found, key=lambda item: item[0])
