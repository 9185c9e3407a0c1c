"""A partition with messages of its own, in one process."""

from __future__ import annotations

from collections.abc import Sequence

from engine import EngineOptions
from streaming.arrays.blocks import Messages, Subscriptions
from streaming.partition.applied import Applied
from streaming.partition.live_messages import LiveMessages
from streaming.partition.partition import Partition
from streaming.partition.words import NO_WORDS, Words
from streaming.window_size import WindowSize


class Alone:
    """A partition, its messages and their words.

    Parameters
    ----------
    options
        The options of the engine.
    size
        Which messages count.
    """

    def __init__(self, options: EngineOptions, size: WindowSize) -> None:
        self.words = Words()
        self.messages = LiveMessages(options, size, self.words)
        self.partition = Partition(options, self.messages)

    def apply(self, subscriptions: Subscriptions | None, messages: Messages | None) -> Applied:
        """Apply a batch."""
        step = None if messages is None else self.messages.apply(messages, self.words.of(messages))
        words = NO_WORDS if subscriptions is None else self.words.of(subscriptions)
        return self.partition.apply(subscriptions, words, step)

    def restore(
        self,
        now_ms: int,
        next_number: int,
        messages: Sequence[Messages],
        subscriptions: Sequence[Subscriptions],
    ) -> None:
        """Restore everything from the log: see `LiveMessages.restore` and `Partition.restore`."""
        block = Messages.join(list(messages)) if messages else None
        words = NO_WORDS if block is None else self.words.of(block)
        self.messages.restore(now_ms, next_number, block, words)
        if subscriptions:
            joined = Subscriptions.join(list(subscriptions))
            self.partition.restore(joined, self.words.of(joined))

    def check(self) -> None:
        """Verify every invariant from the definitions.

        Raises
        ------
        InconsistentIndexError
            Names the invariant that does not hold.
        """
        self.messages.forget_gone()
        self.messages.check()
        self.partition.check()
