"""A log in memory, with the format of the messages: what nodes share without a server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from cluster.codec import Assembler, encoded
from cluster.entries import Entry
from cluster.log import LogConflictError, LogStream, Message


class MemoryLog:
    """A log that ends with the process."""

    def __init__(self) -> None:
        self._messages: list[bytes] = []
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
                entries = assembler.decoded(self._messages[after])
                after += 1
                yield Message(after, entries)
            await self._arrived.wait()

    async def end(self) -> int:
        return len(self._messages)

    async def streams(self) -> list[LogStream]:
        return []

    async def close(self) -> None:
        pass
