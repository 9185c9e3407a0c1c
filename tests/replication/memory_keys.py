"""Keys in memory, for several readers, that can be out of reach for some."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

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
        matches = _matching(patterns)
        found = [one for one in self._latest.values() if one.value and matches(one.key)]
        return sorted(found, key=lambda one: one.sequence)

    async def watch(self, patterns: Sequence[str]) -> AsyncIterator[Record]:
        matches, seen = _matching(patterns), len(self.history)
        for record in [one for one in self.history if self._latest.get(one.key) is one]:
            if matches(record.key):
                yield record
        while True:
            while seen < len(self.history):
                record = self.history[seen]
                seen += 1
                if matches(record.key):
                    yield record
            await self._arrived.wait()

    def expire(self, key: str) -> None:
        """Delete the record of a key, as a log does after its time: no reader learns of it."""
        del self._latest[key]

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


def _matching(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return whether a key has one of some patterns, of which hundreds differ only in a number."""
    by_shape: dict[tuple[int, bool, tuple[int, ...]], set[tuple[str, ...]]] = {}
    for pattern in patterns:
        words = pattern.removesuffix(".>").split(".")
        places = tuple(place for place, word in enumerate(words) if word != "*")
        shape = len(words), pattern.endswith(".>"), places
        by_shape.setdefault(shape, set()).add(tuple(words[place] for place in places))

    def matches(key: str) -> bool:
        words = key.split(".")
        return any(
            (len(words) > count if has_more else len(words) == count)
            and tuple(words[place] for place in places) in found
            for (count, has_more, places), found in by_shape.items()
        )

    return matches
