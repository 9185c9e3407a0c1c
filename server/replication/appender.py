"""Appends the requests of publishers to the log, those that wait together as one message.

One append is in progress at a time, so that requests of a publisher stay in order. Requests that come
meanwhile share the next one: with 64 publishers, a log of three replicas accepts many times more than one
round trip each would allow.

A request has the time at which it was submitted, and is given up if it waits for longer than the log may
take for an append. So an entry is never later than it says.

A request is complete when its entry has been read from the log and applied; then its publisher gets the
response.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from cluster.entries import Change, Entry, Publish, TakeIn
from cluster.log import PATIENCE_S, Log, LogError
from nearcast.errors import Reason, RefusedError
from server.replication.outcomes import Reply

_log = logging.getLogger(__name__)

_ENTRIES_MAX = 1_000
_BYTES_MAX = 500_000
"""About half a message of the log: objects are estimated."""
_OBJECT_BYTES = 200
_ID_BYTES = 16
_RETRY_MS = 1_000


class _Request(NamedTuple):
    """A request that waits."""

    entry: Entry
    end_s: float
    """When it is given up, by the monotonic clock."""


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
        self._waiting: deque[_Request] = deque()
        self._replies: dict[bytes, asyncio.Future[Any]] = {}
        self._arrived = asyncio.Event()

    def submit(self, change: Change) -> asyncio.Future[Any]:
        """Append a change; return the future of its reply or RefusedError."""
        request_id = secrets.token_bytes(_ID_BYTES)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._replies[request_id] = future
        end_s = time.monotonic() + PATIENCE_S
        self._waiting.append(_Request(Entry(self._now_ms(), change, request_id), end_s))
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

    def _next(self) -> list[Entry]:
        """Take requests for one message, in their order. Those that have waited too long are refused."""
        found: list[Entry] = []
        size, now_s = 0, time.monotonic()
        while self._waiting and len(found) < _ENTRIES_MAX and size < _BYTES_MAX:
            entry, end_s = self._waiting.popleft()
            if self._replies[entry.request_id].cancelled():
                del self._replies[entry.request_id]
            elif now_s > end_s:
                self.reply(entry.request_id, _failed("repeat the request, which was not carried out"))
            else:
                found.append(entry)
                size += _size(entry.change)
        return found

    async def _append(self, entries: list[Entry]) -> None:
        if not entries:
            return
        try:
            await self._log.append(entries)
        except LogError as error:
            _log.warning("%d requests have failed: %s", len(entries), error)
            for entry in entries:
                limit = "the request may be carried out later: repeat it with keys only"
                self.reply(entry.request_id, _failed(limit))


def _failed(advice: str) -> RefusedError:
    limit = f"available; {advice}"
    return RefusedError(Reason.INTERNAL, "log", "not acknowledging", limit, retry_after_ms=_RETRY_MS)


def _size(change: Change) -> int:
    """Return about how many bytes an entry has."""
    objects = change.objects if isinstance(change, Publish | TakeIn) else ()
    return _OBJECT_BYTES * max(1, len(objects)) + sum(len(one.payload) for one in objects)
