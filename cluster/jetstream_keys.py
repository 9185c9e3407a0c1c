"""Keys in NATS JetStream: a stream that keeps the last message of each subject."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Mapping, Sequence

from nats.aio.msg import Msg

from cluster.keys import Fence, Record
from cluster.stream import BATCH_MAX, LAST_SEQUENCE, LAST_SEQUENCE_OF, TTL, Content, Stream

_DELETED_S = 60
"""After this time the record of a deleted key is deleted, too: no reader reads this late."""


class JetStreamKeys:
    """Keys in a stream.

    Parameters
    ----------
    stream
        The stream, with one message a subject.
    prefix
        The start of its subjects.
    """

    def __init__(self, stream: Stream, prefix: str) -> None:
        self._stream = stream
        self._prefix = prefix

    @property
    def is_connected(self) -> bool:
        """Whether a server can be reached."""
        return self._stream.is_connected

    async def put(self, key: str, value: bytes, expected: int, ttl_s: int = 0) -> int:
        """Set a key; see `Keys.put`."""
        headers = {LAST_SEQUENCE: str(expected), **_expiring(value, ttl_s)}
        return await self._stream.append([Content(self._prefix + key, value, headers)])

    async def put_all(self, changes: Mapping[str, bytes], fence: Fence) -> None:
        """Set keys; see `Keys.put_all`."""
        condition = {
            LAST_SEQUENCE: str(fence.sequence),
            LAST_SEQUENCE_OF: self._prefix + fence.key,
        }
        contents = [
            Content(self._prefix + key, value, {**_expiring(value), **(condition if i == 0 else {})})
            for i, (key, value) in enumerate(changes.items())
        ]
        if len(contents) > BATCH_MAX:
            raise ValueError(f"{len(contents)} keys, must be at most {BATCH_MAX}")
        await self._stream.append(contents)

    async def read(self, patterns: Sequence[str], until: int) -> list[Record]:
        """Return records; see `Keys.read`. O(records).

        A key that is set meanwhile has its record behind `until` only: the end is where none waits.
        """
        found: dict[str, Record] = {}
        async with contextlib.aclosing(self._messages(patterns)) as messages:
            async for message in messages:
                record = self._record(message)
                found[record.key] = record
                if record.sequence >= until and not message.metadata.num_pending:
                    break
        return list(found.values())

    async def watch(self, patterns: Sequence[str]) -> AsyncGenerator[Record, None]:
        """Yield records; see `Keys.watch`."""
        async with contextlib.aclosing(self._messages(patterns)) as messages:
            async for message in messages:
                yield self._record(message)

    def _messages(self, patterns: Sequence[str]) -> AsyncGenerator[Msg, None]:
        return self._stream.deliveries(0, [self._prefix + pattern for pattern in patterns])

    def _record(self, message: Msg) -> Record:
        key = message.subject.removeprefix(self._prefix)
        return Record(key, message.data, message.metadata.sequence.stream)


def _expiring(value: bytes, ttl_s: int = 0) -> dict[str, str]:
    ttl_s = ttl_s if value else _DELETED_S
    return {TTL: f"{ttl_s}s"} if ttl_s else {}
