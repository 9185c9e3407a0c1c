"""Retention: devices that were not seen for days are forgotten, a few at a time.

Without a log, only the disk has the times, so the check costs the server no memory. It runs beside
commits, once an hour. A server that has just started waits for an hour, so that devices that were
attached when it ended can reconnect.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable

from nearcast.errors import RefusedError
from server import command as c
from server.errors import StoreError
from server.store import SqliteStore

_log = logging.getLogger(__name__)

DAY_MS = 24 * 3600 * 1000
LOOK_MS = 3600 * 1000
"""Interval between two checks."""

DEVICES_MAX = 1_000
"""Maximum number of devices that are forgotten at once, which takes a few milliseconds."""

_NEVER_MS = 2**62


class Retention(ABC):
    """Finds devices to be forgotten, and has them forgotten.

    Parameters
    ----------
    days
        How long devices are remembered; 0 for no limit.
    """

    def __init__(self, days: float) -> None:
        self._days_ms = int(days * DAY_MS)
        self._check_ms = LOOK_MS
        self.due_ms = 0 if days else _NEVER_MS
        """There is nothing to do before this time."""
        self._has_begun = False
        self._looking: asyncio.Task[None] | None = None

    def pass_time(self, now_ms: int, execute: Callable[[c.Forget], Awaitable[None]]) -> None:
        """Start a check, as it is due; execute the commands that forget the devices found."""
        self.due_ms = now_ms + self._check_ms
        if not self._has_begun:
            self._has_begun = True
        elif self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(now_ms, execute))

    async def _look(self, now_ms: int, execute: Callable[[c.Forget], Awaitable[None]]) -> None:
        try:
            found = await self._overdue(now_ms)
        except StoreError as error:
            _log.warning("%s", error)
            return
        forgetting = [execute(c.Forget(tuple(some), self._days_ms)) for some in self._together(found)]
        failed = [one for one in await asyncio.gather(*forgetting, return_exceptions=True) if one]
        for one in failed:
            if not isinstance(one, RefusedError):
                raise one
        if failed:
            _log.warning("devices whose retention has expired are not deleted now: %s", failed[0])
        elif len(found) == DEVICES_MAX:
            self.due_ms = now_ms  # there may be more

    @abstractmethod
    async def _overdue(self, now_ms: int) -> list[str]:
        """Return devices that have not been seen for long, at most `DEVICES_MAX`.

        Raises
        ------
        StoreError
            If the store cannot be read.
        """

    @abstractmethod
    def _together(self, found: list[str]) -> Iterable[list[str]]:
        """Return the devices found in groups; those of a group are forgotten together or not at all."""

    async def stop(self) -> None:
        """Wait for a check in progress."""
        if self._looking is not None:
            await self._looking


class StoreRetention(Retention):
    """Finds devices to be forgotten in the store.

    Parameters
    ----------
    store
        The store, with the times at which devices were last seen.
    days
        How long devices are remembered; 0 for no limit.
    """

    def __init__(self, store: SqliteStore, days: float) -> None:
        super().__init__(days)
        self._store = store

    async def _overdue(self, now_ms: int) -> list[str]:
        loop = asyncio.get_running_loop()
        before_ms = now_ms - self._days_ms
        return await loop.run_in_executor(None, self._store.overdue, before_ms, DEVICES_MAX)

    def _together(self, found: list[str]) -> Iterable[list[str]]:
        return [found] if found else []
