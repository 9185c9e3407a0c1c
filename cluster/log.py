"""The contract of a log: one order of messages that every node reads.

Offsets increase from 1; a message's offset is the same for every reader. A message is applied as a whole.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple, Protocol

from cluster.entries import Entry

PATIENCE_S = 15.0
"""How long to repeat a request without response; the election of a leader took 4 to 7 s."""


class LogError(Exception):
    """The log cannot be used: it does not exist, is not as it must be, or does not promise durability."""


class LogUnavailableError(LogError):
    """The log has not acknowledged in time. A message may be in it or not."""


class LogConflictError(LogError):
    """The condition of a message does not hold, such as being the first: another node was faster."""


class Message(NamedTuple):
    """Entries that were appended together."""

    offset: int
    entries: Sequence[Entry]


class LogServer(NamedTuple):
    """A server that has a stream of the log."""

    name: str
    is_leader: bool
    is_current: bool
    lag: int
    """Operations that it lacks."""


class LogStream(NamedTuple):
    """A stream of the log."""

    name: str
    message_count: int
    byte_count: int
    servers: Sequence[LogServer]
    """Empty for one server that is in no cluster."""


class Log(Protocol):
    """A log of entries."""

    async def append(self, entries: Sequence[Entry], *, is_first: bool = False) -> int:
        """Append entries as one message, all or none; return its offset when it is durable.

        With `is_first` it is appended to an empty log only.

        Raises
        ------
        LogUnavailableError
            If the log has not acknowledged it in time, after retries. It may be in the log or not.
        LogConflictError
            If it had to be the first, and is not.
        """

    def read(self, after: int) -> AsyncIterator[Message]:
        """Yield the messages after an offset in order, each once, and wait for further ones.

        Raises
        ------
        LogError
            If a message is missing, or of a format that this version does not know.
        """

    async def first(self) -> int:
        """Return the offset of the first message that is there; the one after `end` if there is none.

        Raises
        ------
        LogUnavailableError
            If the log does not respond.
        """

    async def older(self, keep_s: float) -> int:
        """Return the offset up to which messages are older than the last one by a time at least.

        The age is by the clock of the log. O(log messages) requests.

        Raises
        ------
        LogError
            If the log does not respond, or messages are deleted meanwhile.
        """

    async def trim(self, until: int) -> None:
        """Delete all messages up to an offset. Readers that need one of them get an error.

        Raises
        ------
        LogError
            If the log does not respond.
        """

    async def end(self) -> int:
        """Return the offset of the last message; 0 for an empty log.

        Raises
        ------
        LogUnavailableError
            If the log does not respond.
        """

    async def streams(self) -> list[LogStream]:
        """Return the streams.

        Raises
        ------
        LogError
            If the log does not respond within a second.
        """

    async def close(self) -> None:
        """End the connection."""
