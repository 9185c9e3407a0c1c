"""The source: objects of a feed become objects of the server, each once.

Rows are taken in chunks, in order. The offset goes to disk with the objects of a chunk, so a server that
was killed continues where it was. Keys identify known objects: `source/` and the object's number in the
feed.

In a cluster, the chunks go through the log, each with the cursor before it, and have no effect if the
stream has another cursor by then: another node has read it. The source then goes on from that cursor.

Reading, decoding and validating rows run in threads of the source: a feed that is slow, or large, delays
no other work.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from cluster.entries import NO_CURSOR, Cursor
from nearcast.errors import RefusedError
from server import command as c
from server.bridge.attempts import Attempts
from server.bridge.chunk import Chunk
from server.bridge.feeds import SourceFeed
from server.bridge.rows import RowValidator, ValidatedRows
from server.core.coordinator import Coordinator
from server.counters import Feed

_log = logging.getLogger(__name__)

_WAIT_S = 0.25
_THREADS_MAX = 16
_QUIET_S = 1.0
"""Interval between two log lines about refused rows."""

Execute = Callable[[c.Command], Awaitable[Any]]
_Found = TypeVar("_Found")


class Source:
    """Takes objects from a feed.

    Parameters
    ----------
    source
        The feed.
    cursors
        How far its streams were read; read at the start, and after a chunk that had no effect.
    coordinator
        Has the limits, and the time.
    execute
        Executes commands.
    """

    def __init__(
        self,
        source: SourceFeed,
        cursors: Mapping[str, Cursor],
        coordinator: Coordinator,
        execute: Execute,
    ) -> None:
        self._source, self._cursors = source, cursors
        self._coordinator, self._execute = coordinator, execute
        self._validator = RowValidator(coordinator.limits, coordinator.frame)
        self._refusals = _Refusals()
        self._threads = ThreadPoolExecutor(
            min(len(source.streams), _THREADS_MAX), thread_name_prefix="source"
        )

    async def run(self) -> None:
        """Take objects from all streams, until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for stream in self._source.streams:
                    tasks.create_task(self._take(stream))
        finally:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._source.close()

    async def _take(self, stream: str) -> None:
        """Take objects from a stream, until cancelled."""
        attempts = Attempts(f"source, stream {stream}", Feed.SOURCE, self._coordinator.counters)
        try:
            await self._keep_taking(stream, attempts)
        finally:
            attempts.ended()

    async def _keep_taking(self, stream: str, attempts: Attempts) -> None:
        """Take objects from a stream, and retry after errors."""
        cursor = self._cursors.get(stream, NO_CURSOR)
        while True:
            try:
                after = cursor.offset or self._source.begin(stream)
                found = self._source.next(stream, after, _WAIT_S)
                count = 0
                while (chunk := await self._in_thread(next, found, None)) is not None:
                    count += 1
                    taken = await self._take_in(chunk, stream, cursor, attempts)
                    if taken is None:
                        cursor = self._moved(stream)
                        break
                    cursor = taken
            except Exception as error:  # noqa: BLE001 - no error of a feed ends the server
                await attempts.failed(error)
                continue
            attempts.succeeded()
            if not count:
                self._refusals.flush()
                await asyncio.sleep(_WAIT_S)

    def _moved(self, stream: str) -> Cursor:
        """Return the cursor of a stream that another node has read."""
        cursor = self._cursors.get(stream, NO_CURSOR)
        _log.info("source, stream %s: another node has read it; it is continued from there", stream)
        return cursor

    async def _take_in(
        self, chunk: Chunk, stream: str, before: Cursor, attempts: Attempts
    ) -> Cursor | None:
        """Execute the command of a chunk, and retry until there is a reply; return the cursor after it.

        None if the stream has another cursor.
        """
        if chunk.passed_over:
            self._coordinator.counters.source_unreadable += 1
            _log.warning("source: %s", chunk.passed_over)
            if chunk.offset == before.offset:
                return before
        is_counted = False
        while True:
            now_ms = self._coordinator.matching.now_ms
            validated = await self._in_thread(
                self._validator.validated, chunk.rows, stream, before, chunk.offset, now_ms
            )
            if not is_counted:
                self._count(validated)
                is_counted = True
            try:
                has_effect = await self._execute(validated.command)
            except RefusedError as error:
                await attempts.failed(error)
            else:
                attempts.succeeded()
                return Cursor(chunk.offset, before.entry_count + 1) if has_effect else None

    def _count(self, validated: ValidatedRows) -> None:
        """Count refused rows, and log them."""
        if validated.refused:
            self._coordinator.counters.source_refused += validated.refused
            self._refusals.note(validated.refused, validated.first)

    async def _in_thread(self, call: Callable[..., _Found], *arguments: Any) -> _Found:  # noqa: ANN401
        return await asyncio.get_running_loop().run_in_executor(self._threads, call, *arguments)


class _Refusals:
    """Refused rows as lines of the log: one a second at most."""

    def __init__(self) -> None:
        self._count, self._first = 0, ""
        self._logged_s = -_QUIET_S

    def note(self, count: int, first: str) -> None:
        self._count += count
        self._first = self._first or first
        self.flush()

    def flush(self) -> None:
        """Log the refused rows, if it is time."""
        now_s = time.monotonic()
        if not self._count or now_s - self._logged_s < _QUIET_S:
            return
        _log.warning("the source has %d refused rows, first: %s", self._count, self._first)
        self._count, self._first, self._logged_s = 0, "", now_s
