"""The messages of a host in memory: the first task of a batch applies its messages, the others find them.

The messages and their words lie in memory (`shared_arrays`), with the number of batches that were applied
and the digest of the last one. The log of each partition contains the messages, too. So a task that finds
none, or another batch, builds them from its own log.

Tasks that read the messages hold the lock together, for as long as they work on the batch; a task that
applies a batch holds it alone. So no task reads messages that change, not even one that Spark has given
up and that still runs.

Words are only added. Their lock is held while they are looked up, and their numbers stay valid after it.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, Self, cast

from engine import EngineOptions
from index.batches import KeywordIds
from index.tables.growth import rooms_of
from streaming.arrays.blocks import Messages, Subscriptions
from streaming.partition.live_messages import LiveMessages
from streaming.partition.words import NO_WORDS, Words
from streaming.tasks.file_lock import FileLock
from streaming.tasks.log import Head, Log
from streaming.tasks.plain import Outside
from streaming.tasks.shared_arrays import LostError, Note, SharedArrays
from streaming.window_size import WindowSize

_LOCK_S = 6 * 3_600.0
"""How long a task waits for others: one of them may have to rebuild a partition of millions."""
_MESSAGE_BYTES = 1_000
"""Memory of a message, somewhat more than is usual (docs/streaming.md, Sizes)."""


class WindowAheadError(Exception):
    """The messages in memory are those of a later batch: another task has gone on without this one."""


class MessageBatch(NamedTuple):
    """The messages of a batch."""

    messages: Messages
    digest: bytes


class SharedWindow:
    """The messages and words of a host.

    Parameters
    ----------
    folder
        The folder of the job on a file system in memory.
    options
        The options of the engine.
    size
        Which messages count.
    """

    def __init__(self, folder: Path, options: EngineOptions, size: WindowSize) -> None:
        self._messages, self._words = SharedArrays(folder / "messages"), SharedArrays(folder / "words")
        self._folder = folder
        self._options = options
        self._size = size
        self._lock: FileLock
        self.words = Words()
        """All words that messages have, and those that were looked up."""
        self.applied_bytes = 0
        """The memory of the messages, if this object has applied a batch to them."""

    @contextmanager
    def opened(self) -> Iterator[Self]:
        """Hold the lock together with others; wait while a task applies a batch.

        Raises
        ------
        LockedError
            If that takes more than six hours.
        """
        with self._messages.lock(_LOCK_S) as self._lock:
            self._lock.share()
            yield self

    @property
    def token(self) -> str | None:
        """The name of the messages, to whose slots partitions refer; None if there are no messages."""
        note = self._messages.note()
        return None if note is None else note.token

    def before(self, head: Head, batch: MessageBatch | None, log: Log) -> LiveMessages | None:
        """Return the messages as they were before a batch; None if the batch was applied to them.

        Parameters
        ----------
        head
            The numbers in the log of a partition.
        batch
            The batch; None if it has no messages.
        log
            This log, from which the messages are built if there are none.

        Raises
        ------
        WindowAheadError
            If the messages are those of a later batch.
        """
        return self._read(head, batch, log, is_applied=False)

    def after(self, head: Head, batch: MessageBatch, log: Log) -> LiveMessages:
        """Return the messages as they are after a batch; apply it if no other task has done so.

        The parameters and errors are those of `before`.
        """
        found = self._read(head, batch, log, is_applied=True)
        assert found is not None  # noqa: S101 - None only if they are wanted as they were before
        return found

    def private(self, head: Head, log: Log) -> LiveMessages:
        """Return a copy of the messages as they were before a batch, from a log."""
        blocks = log.messages()
        block = Messages.join(blocks) if blocks else None
        self._messages.require_free(0 if block is None else _MESSAGE_BYTES * len(block))
        (words,) = self.words_of(block)
        found = LiveMessages(self._options, self._size, self.words)
        found.restore(head.now_ms, head.next_number, block, words)
        return found

    def words_of(self, *blocks: Messages | Subscriptions | None) -> list[KeywordIds]:
        """Return the numbers of the words of blocks; new words get the next numbers."""
        if blocks and all(block is None for block in blocks):
            return [NO_WORDS] * len(blocks)
        with self._words.locked(), rooms_of(self._words.room):
            words, note = self._known_words()
            if not all(block is None or words.are_known(block) for block in blocks):
                words = cast("Words", self._words.take())
                found = [_numbers(words, block) for block in blocks]
                self._words.keep(words, note)
            else:
                found = [_numbers(words, block) for block in blocks]
        self.words.adopt(words)
        return found

    def outside(self, messages: LiveMessages) -> Outside:
        """Return what partitions refer to and what is not part of them, see `plain`."""
        return {
            "objects": messages.objects,
            "windows": messages.objects.windows,
            "weights": self.words.weights,
        }

    # -- memory ----------------------------------------------------------------------------------

    def _known_words(self) -> tuple[Words, Note]:
        note = self._words.note()
        if note is not None:
            with suppress(LostError):
                return cast("Words", self._words.view()), note
        self._words.discard()
        self._words.discard_outdated()
        words, note = Words(), Note(0, b"", b"")
        self._words.keep(words, note)
        return words, note

    def _require_not_ahead(self, head: Head, batch: MessageBatch | None) -> Note | None:
        note = self._messages.note()
        last = head.message_batches + (batch is not None)
        if note is not None and note.version > last:
            raise WindowAheadError(
                f"the messages of this job in the memory of {platform.node()} are those of batch "
                f"{note.version}, must be at most those of batch {last}: another task is ahead of this "
                f"one. If the checkpoint is a copy that was restored, remove {self._folder}"
            )
        return note

    def _read(
        self, head: Head, batch: MessageBatch | None, log: Log, *, is_applied: bool
    ) -> LiveMessages | None:
        """Return the messages, with the lock held together with others; None if they are too late."""
        is_lost = False
        while True:
            note = self._require_not_ahead(head, batch)
            is_after = batch is not None and note is not None and _is_after(note, head, batch)
            if is_after and not is_applied:
                self._lock.share()
                return None
            is_before = note is not None and note.version == head.message_batches
            if (is_after if is_applied else is_before) and not is_lost:
                if self._lock.is_exclusive:
                    self._lock.share()  # look again: other tasks may have had the lock in between
                elif (found := self._viewed()) is not None:
                    return found
                else:
                    is_lost = True
            elif not self._lock.is_exclusive:
                self._lock.own()
            elif is_applied and batch is not None:
                self._apply(note, head, batch, log)
                is_lost = False
            else:
                self._build(head, log)
                is_lost = False

    def _viewed(self) -> LiveMessages | None:
        """Return the messages to read them; None if they cannot be read."""
        self.words_of()
        with suppress(LostError):
            found = self._messages.view({"weights": self.words.weights})
            return self._require_words(cast("LiveMessages", found))
        return None

    def _require_words(self, messages: LiveMessages) -> LiveMessages:
        if messages.words_token != self.words.token:
            raise LostError("the words of the messages are lost")
        return messages

    def _build(self, head: Head, log: Log) -> LiveMessages:
        """Build the messages from a log, as they were before a batch. Requires the lock alone."""
        self._messages.discard()
        self._messages.discard_outdated()
        with rooms_of(self._messages.room):
            found = self.private(head, log)
            self._keep(found, Note(head.message_batches, b"", b"", found.token))
        return found

    def _apply(self, note: Note | None, head: Head, batch: MessageBatch, log: Log) -> None:
        """Apply a batch to the messages. Requires the lock alone."""
        self._messages.require_free(_MESSAGE_BYTES * len(batch.messages))
        (words,) = self.words_of(batch.messages)
        outside = {"weights": self.words.weights}
        messages: LiveMessages | None = None
        if note is not None and note.version == head.message_batches:
            with suppress(LostError):
                messages = self._require_words(cast("LiveMessages", self._messages.take(outside)))
        if messages is None:
            messages = self._build(head, log)
        with rooms_of(self._messages.room):
            messages.apply(batch.messages, words)
        self._keep(messages, Note(head.message_batches + 1, batch.digest, b"", messages.token))
        self.applied_bytes = self._messages.occupied_bytes

    def _keep(self, messages: LiveMessages, note: Note) -> None:
        self._messages.keep(messages, note, {"weights": self.words.weights})


def _numbers(words: Words, block: Messages | Subscriptions | None) -> KeywordIds:
    return NO_WORDS if block is None else words.of(block)


def _is_after(note: Note, head: Head, batch: MessageBatch) -> bool:
    """Return whether the messages in memory are those after a batch."""
    return (note.version, note.digest) == (head.message_batches + 1, batch.digest)
