"""A log in memory, with the format of the messages: what nodes share without a server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from cluster.codec import Assembler, encoded
from cluster.entries import Entry
from cluster.log import LogConflictError, LogError, LogStream, Message


class MemoryLog:
    """A log that ends with the process."""

    def __init__(self) -> None:
        self._messages: list[bytes] = []
        self._trimmed = 0
        self._arrived = asyncio.Event()

    async def append(self, entries: Sequence[Entry], *, is_first: bool = False) -> int:
        if is_first and self._messages:
            raise LogConflictError
        self._messages.append(encoded(entries))
        self._arrived.set()
        self._arrived = asyncio.Event()
        return len(self._messages)

    async def read(self, after: int) -> AsyncIterator[Message]:
        assembler = Assembler()
        while True:
            while after < len(self._messages):
                if after < self._trimmed:
                    raise LogError(f"the log has no message {after + 1}")
                entries = assembler.decoded(self._messages[after])
                after += 1
                yield Message(after, entries)
            await self._arrived.wait()

    async def first(self) -> int:
        return self._trimmed + 1

    async def older(self, keep_s: float) -> int:
        """All messages are as old as the last one."""
        return self._trimmed if keep_s > 0.0 else len(self._messages)

    async def trim(self, until: int) -> None:
        self._trimmed = max(self._trimmed, until)

    async def end(self) -> int:
        return len(self._messages)

    async def streams(self) -> list[LogStream]:
        return []

    async def close(self) -> None:
        pass
