"""Keys in memory, for several readers, that can be out of reach for some."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence

from cluster.keys import Fence, Record
from cluster.log import LogConflictError


class MemoryKeys:
    """Keys that end with the process."""

    is_connected = True

    def __init__(self) -> None:
        self._latest: dict[str, Record] = {}
        self.history: list[Record] = []
        self._arrived = asyncio.Event()

    async def put(self, key: str, value: bytes, expected: int, ttl_s: int = 0) -> int:
        del ttl_s
        self._require(key, expected)
        return self._set(key, value)

    async def put_all(self, changes: Mapping[str, bytes], fence: Fence) -> None:
        self._require(*fence)
        for key, value in changes.items():
            self._set(key, value)

    async def read(self, patterns: Sequence[str], until: int) -> list[Record]:
        assert until <= len(self.history)
        found = [one for one in self._latest.values() if one.value and _matches(one.key, patterns)]
        return sorted(found, key=lambda one: one.sequence)

    async def watch(self, patterns: Sequence[str]) -> AsyncIterator[Record]:
        for record in [one for one in self.history if self._latest[one.key] is one]:
            if _matches(record.key, patterns):
                yield record
        seen = len(self.history)
        while True:
            while seen < len(self.history):
                record = self.history[seen]
                seen += 1
                if _matches(record.key, patterns):
                    yield record
            await self._arrived.wait()

    def latest(self, key: str) -> Record:
        """Return the latest record of a key."""
        return self._latest.get(key, Record(key, b"", 0))

    def _require(self, key: str, expected: int) -> None:
        if self.latest(key).sequence != expected:
            raise LogConflictError

    def _set(self, key: str, value: bytes) -> int:
        record = self._latest[key] = Record(key, value, len(self.history) + 1)
        self.history.append(record)
        self._arrived.set()
        self._arrived = asyncio.Event()
        return record.sequence


def _matches(key: str, patterns: Sequence[str]) -> bool:
    return any(_fits(key.split("."), pattern.split(".")) for pattern in patterns)


def _fits(words: list[str], pattern: list[str]) -> bool:
    if pattern[-1] == ">":
        return len(words) >= len(pattern) and _fits(words[: len(pattern) - 1], pattern[:-1])
    return len(words) == len(pattern) and all(
        expected in ("*", word) for word, expected in zip(words, pattern, strict=True)
    )
