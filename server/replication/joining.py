"""A node that joins copies the store of another node where the log does not lead on from its own.

The log does not keep its messages for ever (`trimmer`). A node whose store is older than the first
message of the log copies the store of a node that serves, verifies it, takes its content, and applies the
log from there. A node with a new store does the same if the log is long.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from cluster.log import Log, LogError
from cluster.ownership import Lease
from cluster.registry import SharedRecords
from server.errors import StoreError
from server.store import SqliteStore
from server.store.adopting import require_intact, snapshot_facts
from server.store.scratch import remove_scratch, scratch_file

_log = logging.getLogger(__name__)

COPY_MIN = 1_000
"""A node with a new store copies one if the log has as many messages. A log to which nothing but the time
is appended has them after eight minutes."""

PATIENCE_S = 60.0
"""How long to look for a node that sends its store, before the node ends. Others may be starting."""
_PAUSE_S = 0.5
_PAUSE_MAX_S = 8.0

Fetch = Callable[[str, bytes, Path], Awaitable[None]]
"""Copies the store of the node with an address and an incarnation into a new file; raises CopyError."""


class CopyError(Exception):
    """A node has not sent its store as a whole."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node is in the log, and what the log has."""

    offset: int
    """Up to which the store has applied the log."""
    first: int
    """The offset of the first message of the log."""
    end: int

    @property
    def is_behind(self) -> bool:
        """Whether the log lacks messages that the store needs."""
        return self.offset + 1 < self.first

    @property
    def is_far(self) -> bool:
        """Whether a copy of another store is faster than the log."""
        return self.offset == 0 and self.end >= COPY_MIN


class Joiner:
    """Brings the store of a node to a place from which the log leads on.

    Parameters
    ----------
    log
        The log.
    log_id
        Its id.
    records
        They have the addresses of the other nodes.
    fetch
        Copies the store of another node.
    """

    def __init__(self, log: Log, log_id: str, records: SharedRecords, fetch: Fetch) -> None:
        self._log = log
        self._log_id = log_id
        self._records = records
        self._fetch = fetch
        self._jitter = random.Random()

    async def prepare(self, store: SqliteStore, offset: int, address: str) -> None:
        """Let a store take the content of another one, if the log does not lead on from its own.

        Parameters
        ----------
        store
            Of this node, and of this log.
        offset
            Up to which the store has applied the log.
        address
            Of this node.

        Raises
        ------
        LogError
            If the log lacks messages that the store needs, and no node sends a store in time.
        StoreError
            If the store cannot be written.
        """
        remove_scratch(store.path)
        end_s = asyncio.get_running_loop().time() + PATIENCE_S
        pause_s = _PAUSE_S
        while True:
            place = Place(offset, await self._log.first(), await self._log.end())
            if not place.is_behind and not place.is_far:
                return
            copied = await self._copied(store, place, address)
            if copied is not None:
                offset = copied  # the log may have been trimmed meanwhile
                continue
            if not place.is_behind:
                _log.info("no other node sends its store: the whole log is applied")
                return
            if asyncio.get_running_loop().time() + pause_s > end_s:
                raise _nobody(store.path, place)
            await asyncio.sleep(self._jitter.uniform(0.5, 1.0) * pause_s)
            pause_s = min(2.0 * pause_s, _PAUSE_MAX_S)

    async def _copied(self, store: SqliteStore, place: Place, address: str) -> int | None:
        """Let the store take the content of another one; return its offset, None if no node sends it."""
        leases = await self._records.leases()
        others = [lease for lease in leases if lease.node.address != address]
        self._jitter.shuffle(others)
        for lease in sorted(others, key=lambda lease: -lease.stored_offset):
            try:
                return await self._copy_from(lease, store, place)
            except CopyError as error:
                _log.warning("the store of node %s is not copied: %s", lease.node.address, error)
        return None

    async def _copy_from(self, lease: Lease, store: SqliteStore, place: Place) -> int:
        with scratch_file(store.path) as path:
            await self._fetch(lease.node.address, lease.node.incarnation, path)
            offset = await asyncio.to_thread(self._verified, path, place)
            await asyncio.to_thread(store.adopt, path)
            _log.info("the store of node %s is copied, up to offset %d", lease.node.address, offset)
        return offset

    def _verified(self, path: Path, place: Place) -> int:
        """Return the offset of a snapshot.

        Raises
        ------
        CopyError
            If it is damaged, of another log, or does not help.
        """
        try:
            require_intact(path)
            found = snapshot_facts(path)
        except StoreError as error:
            raise CopyError(str(error)) from error
        if found.log_id != self._log_id:
            raise CopyError("it has the objects of another log")
        if found.offset + 1 < place.first or found.offset <= place.offset:
            raise CopyError(f"it ends at offset {found.offset}, the log starts at {place.first}")
        return found.offset


def _nobody(store: str, place: Place) -> LogError:
    return LogError(
        f"the log starts at offset {place.first}, store {store} ends at {place.offset}, and no node of "
        f"the cluster sends its store: start a node whose store ends at {place.first - 1} or later; if "
        "there is none, restore a backup into new servers of a log: nearcast cluster restore"
    )
