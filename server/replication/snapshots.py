"""Snapshots of the store of a node, for nodes that join and for backups.

SQLite copies in a thread while commits go on. A snapshot has everything of the log that was there when it
was requested.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from nearcast.errors import Reason, RefusedError
from server.errors import StoreError
from server.replication.command_loop import ReplicatedCommandLoop
from server.store.adopting import SnapshotFacts, snapshot_facts
from server.store.scratch import scratch_file

_log = logging.getLogger(__name__)

_WRITTEN_S = 30.0
"""How long to wait until the store is written."""
_RETRY_MS = 2_000


class Snapshot(NamedTuple):
    """A snapshot in a file."""

    path: Path
    facts: SnapshotFacts
    size_bytes: int
    sha256: bytes


class Snapshots:
    """Makes snapshots of the store of a node, one at a time.

    Parameters
    ----------
    command_loop
        It has the store.
    """

    def __init__(self, command_loop: ReplicatedCommandLoop) -> None:
        self._command_loop = command_loop
        self._is_busy = False

    @asynccontextmanager
    async def made(self) -> AsyncIterator[Snapshot]:
        """Make a snapshot, which exists within the block.

        A caller that is cancelled leaves when the thread that writes has ended: until then it has the
        file.

        Raises
        ------
        RefusedError
            RATE_LIMITED, if there is another one; INTERNAL, if it cannot be made.
        """
        if self._is_busy:
            limit = "one at a time; try again"
            raise RefusedError(Reason.RATE_LIMITED, "snapshots", "2", limit, retry_after_ms=_RETRY_MS)
        self._is_busy = True
        try:
            with scratch_file(self._command_loop.store.path) as path:
                yield await self._made(path)
        finally:
            self._is_busy = False

    async def _made(self, path: Path) -> Snapshot:
        try:
            async with asyncio.timeout(_WRITTEN_S):
                await self._command_loop.store_all()
            return await _to_the_end(partial(self._write, path))
        except (StoreError, OSError, TimeoutError) as error:
            _log.warning("no snapshot of the store can be made: %r", error)
            raise RefusedError(Reason.INTERNAL, "store", "not copied", "copied; see the log") from error

    def _write(self, path: Path) -> Snapshot:
        """Write a snapshot. Runs in a thread."""
        self._command_loop.store.write_snapshot(path)
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").digest()
            return Snapshot(path, snapshot_facts(path), os.fstat(file.fileno()).st_size, digest)


async def _to_the_end(function: Callable[[], Snapshot]) -> Snapshot:
    """Call a function in a thread; a cancellation waits until the thread has ended."""
    running = asyncio.get_running_loop().run_in_executor(None, function)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait((running,))
        raise


Send = Callable[[bytes], Awaitable[None]]

CHUNK_BYTES = 256 * 1024


async def send_content(snapshot: Snapshot, send: Send) -> None:
    """Send the content of a snapshot in chunks of `CHUNK_BYTES`."""
    with snapshot.path.open("rb") as file:
        while chunk := await asyncio.to_thread(file.read, CHUNK_BYTES):
            await send(chunk)
