"""Retention: devices of which nothing has been heard for days are forgotten, a few at a time.

Whether one is overdue is known on disk only, so looking costs the server no memory; it is done beside
commits, once an hour. A server that has just begun waits for an hour: devices that were attached when it
ended should have found it by then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from server import command as c
from server.errors import StoreError
from server.store import SqliteStore

_log = logging.getLogger(__name__)

DAY_MS = 24 * 3600 * 1000
LOOK_MS = 3600 * 1000
"""Between two looks."""

_DEVICES_MAX = 1_000
"""Forgotten in one go: a few milliseconds."""

_NEVER_MS = 2**62


class Retention:
    """Looks for devices to be forgotten.

    Parameters
    ----------
    store
        Where it stands when devices were last seen.
    days
        How long devices are remembered; 0 for ever.
    """

    def __init__(self, store: SqliteStore, days: float) -> None:
        self._store = store
        self._days_ms = int(days * DAY_MS)
        self.due_ms = 0 if days else _NEVER_MS
        """Before this time there is nothing to do."""
        self._has_begun = False
        self._looking: asyncio.Task[None] | None = None

    def pass_time(self, now_ms: int, submit: Callable[[c.Forget], Awaitable[None]]) -> None:
        """Look, as it is time; submit the command that forgets whom it finds."""
        self.due_ms = now_ms + LOOK_MS
        if not self._has_begun:
            self._has_begun = True
        elif self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(now_ms, submit))

    async def _look(self, now_ms: int, submit: Callable[[c.Forget], Awaitable[None]]) -> None:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.run_in_executor(
                None, self._store.overdue, now_ms - self._days_ms, _DEVICES_MAX
            )
        except StoreError as error:
            _log.warning("%s", error)
            return
        if found:
            await submit(c.Forget(tuple(found)))
        if len(found) == _DEVICES_MAX:
            self.due_ms = now_ms  # there are more

    async def stop(self) -> None:
        """Wait for a look under way."""
        if self._looking is not None:
            await self._looking
