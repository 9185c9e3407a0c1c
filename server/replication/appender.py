"""Appends the requests of publishers to the log, those that wait together as one message.

One append is in progress at a time, so that requests of a publisher stay in order. Requests that come
meanwhile share the next one: with 64 publishers, a log of three replicas accepts many times more than one
round trip each would allow.

A request is complete when its entry has been read from the log and applied; then its publisher gets the
response.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Callable
from typing import Any

from cluster.entries import Change, Entry, Publish, TakeIn
from cluster.log import Log, LogError
from nearcast.errors import Reason, RefusedError
from server.replication.outcomes import Reply

_log = logging.getLogger(__name__)

_ENTRIES_MAX = 1_000
_BYTES_MAX = 500_000
"""About half a message of the log: objects are estimated."""
_OBJECT_BYTES = 200
_ID_BYTES = 16
_RETRY_MS = 1_000


class Appender:
    """Appends entries, and keeps the requests that wait for their replies.

    Parameters
    ----------
    log
        The log.
    now_ms
        The time for entries: that of the node's clock; 0 in virtual time.
    """

    def __init__(self, log: Log, now_ms: Callable[[], int]) -> None:
        self._log = log
        self._now_ms = now_ms
        self._waiting: deque[tuple[bytes, Change]] = deque()
        self._replies: dict[bytes, asyncio.Future[Any]] = {}
        self._arrived = asyncio.Event()

    def submit(self, change: Change) -> asyncio.Future[Any]:
        """Append a change; return the future of its reply or RefusedError."""
        request_id = secrets.token_bytes(_ID_BYTES)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._replies[request_id] = future
        self._waiting.append((request_id, change))
        self._arrived.set()
        return future

    def reply(self, request_id: bytes, reply: Reply) -> None:
        """Pass on the reply of a request, if it is of this node."""
        future = self._replies.pop(request_id, None)
        if future is None or future.done():
            return
        if isinstance(reply, RefusedError):
            future.set_exception(reply)
        else:
            future.set_result(reply)

    async def run(self) -> None:
        """Append what waits, until cancelled."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._waiting:
                await self._append(self._next())

    def _next(self) -> list[tuple[bytes, Change]]:
        """Take requests for one message, in their order."""
        found: list[tuple[bytes, Change]] = []
        size = 0
        while self._waiting and len(found) < _ENTRIES_MAX and size < _BYTES_MAX:
            request_id, change = self._waiting.popleft()
            if not self._replies[request_id].cancelled():
                found.append((request_id, change))
                size += _size(change)
            else:
                del self._replies[request_id]
        return found

    async def _append(self, requests: list[tuple[bytes, Change]]) -> None:
        if not requests:
            return
        now_ms = self._now_ms()
        entries = [Entry(now_ms, change, request_id) for request_id, change in requests]
        try:
            await self._log.append(entries)
        except LogError as error:
            _log.warning("%d requests have failed: %s", len(requests), error)
            for request_id, _ in requests:
                self.reply(request_id, _unknown())


def _unknown() -> RefusedError:
    return RefusedError(
        Reason.INTERNAL,
        "log",
        "not acknowledging",
        "available; the request may be carried out later: repeat it with keys only",
        retry_after_ms=_RETRY_MS,
    )


def _size(change: Change) -> int:
    """Return about how many bytes an entry has."""
    objects = change.objects if isinstance(change, Publish | TakeIn) else ()
    return _OBJECT_BYTES * max(1, len(objects)) + sum(len(one.payload) for one in objects)
