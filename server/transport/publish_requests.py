"""The requests of a publish stream that are in progress at the server. No I/O.

When the server drains, or the token of the stream expires, no more requests are admitted. Their number is
final then, and the client gets it at once, in `GoAway`, ahead of the responses that are due. The client
half-closes, and the server reads until it has.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import NamedTuple

from nearcast.errors import RefusedError

_REQUESTS_MAX = 64
"""Maximum number in progress per stream: enough to share a commit, and few enough for short waits."""


@dataclass(slots=True)
class PendingRequest:
    """A request without a response."""

    sequence: int
    size: int
    """Number of objects."""
    ids: asyncio.Future[list[int]] | RefusedError

    @property
    def is_done(self) -> bool:
        """Whether the response can be sent."""
        return isinstance(self.ids, RefusedError) or self.ids.done()


class AdmittedCount(NamedTuple):
    """The number of admitted requests of a draining stream, and why no more are admitted."""

    number: int
    reason: RefusedError


class PublishRequests:
    """The requests of a stream in progress, oldest first: those that wait share a commit.

    Parameters
    ----------
    objects_max
        Maximum number of their objects; a single request may have more.
    """

    def __init__(self, objects_max: int) -> None:
        self.reason: RefusedError | None = None
        """Why no more requests are admitted."""
        self.stop_reading = asyncio.Event()
        """Set when reading is to stop, even if the client has not half-closed."""
        self._objects_max = objects_max
        self._admitted_count = 0
        self._size = 0
        self._pending: deque[PendingRequest] = deque()
        self._room = asyncio.Event()
        self._has_ended = False
        self._must_go_away = False
        self._changed = asyncio.Event()

    @property
    def is_draining(self) -> bool:
        """Whether no more requests are admitted."""
        return self.reason is not None

    async def admit(self, size: int) -> bool:
        """Wait until `size` more objects may be in progress; return False if the server drains."""
        while self._pending and not self.is_draining and self._is_full(size):
            self._room.clear()
            await self._room.wait()
        self._admitted_count += not self.is_draining
        return not self.is_draining

    def enqueue(self, request: PendingRequest) -> None:
        """Append a request that was admitted."""
        self._size += request.size
        self._pending.append(request)
        if isinstance(request.ids, asyncio.Future):
            request.ids.add_done_callback(lambda _: self._changed.set())
        self._changed.set()

    def drain(self, reason: RefusedError) -> None:
        """Admit no more requests."""
        if self.is_draining:
            return
        self.reason = reason
        self._must_go_away = True
        self._room.set()
        self._changed.set()

    def end(self) -> None:
        """Record that reading has ended."""
        self._has_ended = True
        self._changed.set()

    async def responses(self) -> AsyncIterator[PendingRequest | AdmittedCount]:
        """Yield responses as they are ready; each request is in progress until the next is requested."""
        while True:
            if self._must_go_away and self.reason is not None:
                self._must_go_away = False
                yield AdmittedCount(self._admitted_count, self.reason)
            elif self._pending and self._pending[0].is_done:
                yield self._pending[0]
                self._size -= self._pending.popleft().size
                self._room.set()
            elif self._has_ended and not self._pending:
                return
            else:
                self._changed.clear()
                await self._changed.wait()

    def _is_full(self, size: int) -> bool:
        return len(self._pending) >= _REQUESTS_MAX or self._size + size > self._objects_max
