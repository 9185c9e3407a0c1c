"""The contract of keys: small records that replace each other, in one order for all readers.

Keys are words with dots between them. A reader names the keys that it wants by patterns, in which `*` is
one word and `>` at the end all further ones.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import NamedTuple, Protocol

PATTERNS_MAX = 128
"""Patterns of one reader."""

CHANGES_MAX = 1_000
"""Keys that are set together."""


class Record(NamedTuple):
    """The latest value of a key."""

    key: str
    value: bytes
    """Empty if the key was deleted."""
    sequence: int
    """Its place in the order of all records, from 1."""


class Fence(NamedTuple):
    """The condition that a record is still the latest of its key."""

    key: str
    sequence: int


class Keys(Protocol):
    """Keys that all nodes share."""

    @property
    def is_connected(self) -> bool:
        """Whether a server can be reached, which may be one that cannot accept anything now."""

    async def put(self, key: str, value: bytes, expected: int, ttl_s: int = 0) -> int:
        """Set a key, if its latest record is the expected one; return the sequence of the new record.

        Parameters
        ----------
        key
            The key.
        value
            Its value; empty to delete the key.
        expected
            The sequence of the latest record; 0 for none.
        ttl_s
            After how many seconds the record is deleted; 0 for never.

        Raises
        ------
        LogConflictError
            If the latest record is another one.
        LogUnavailableError
            If there was no response in time: the record may be set or not.
        """

    async def put_all(self, changes: Mapping[str, bytes], fence: Fence) -> None:
        """Set keys, all or none, if the record of the fence is still the latest of its key.

        One call for a fence at a time: a second one waits, and is sent again.

        Parameters
        ----------
        changes
            Values by key, at most `CHANGES_MAX`; empty ones delete the key.
        fence
            The condition.

        Raises
        ------
        LogConflictError
            If it is not: nothing has changed.
        LogUnavailableError
            If there was no response in time: the keys may be set or not.
        """

    async def read(self, patterns: Sequence[str], until: int) -> list[Record]:
        """Return the latest records of keys as of a sequence at least; deleted keys may be missing.

        Parameters
        ----------
        patterns
            The keys; at most `PATTERNS_MAX`.
        until
            The sequence of a record of one of the keys.
        """

    def watch(self, patterns: Sequence[str]) -> AsyncGenerator[Record, None]:
        """Yield the latest records of keys, then each further one, in order.

        A server that is behind the others gives records first that were replaced since.
        """
