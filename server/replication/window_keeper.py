"""Claims the windows of a node's subscriptions in the log, which bounds those of all nodes together.

When a device subscribes with a window that no node has claimed, its node claims it first, and the
subscription waits for the result. Otherwise the node compares once a second what it uses with what it
has claimed. Windows of slots that it takes are claimed in any case: these subscriptions were accepted
before.

Cost: one entry for each new or ended window, at most one a second, and one a minute.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time

from cluster.entries import SECOND_RULES, UseWindows
from nearcast.canonical import Window
from nearcast.errors import RefusedError
from server import command as c
from server.commands.acceptor import checked_spec
from server.model import NO_WINDOW
from server.replication.command_loop import ReplicatedCommandLoop

_log = logging.getLogger(__name__)

_LOOK_S = 1.0
_RENEW_MS = 60_000
_PATIENCE_S = 1.0
_PENDING_S = 5.0
"""How long a window is claimed for a subscription that is not accepted yet."""


class WindowKeeper:
    """Keeps the claims of a node.

    Parameters
    ----------
    command_loop
        That of the node.
    address
        Of the node.
    """

    def __init__(self, command_loop: ReplicatedCommandLoop, address: str) -> None:
        self._command_loop = command_loop
        self._coordinator = command_loop.coordinator
        self._address = address
        self._pending_s: dict[Window, float] = {}
        """When windows were claimed for subscriptions, by the monotonic clock."""
        self._claiming = asyncio.Lock()

    async def run(self) -> None:
        """Claim and release windows, until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_S)
            if self._is_in_force and self._is_due():
                async with self._claiming:
                    await self._claim(must=True)

    def is_due_for(self, command: c.Subscribe) -> bool:
        """Return whether a subscription has a window that is to be claimed first."""
        coordinator, window = self._coordinator, command.spec.window
        if window == NO_WINDOW or window in coordinator.log_windows or not self._is_in_force:
            return False
        session = coordinator.sessions.get(command.device_id)
        handles = [] if session is None else session.handles.values()
        known = {coordinator.matching.spec(handle).window for handle in handles} - {NO_WINDOW}
        try:
            checked_spec(command.spec, coordinator, command.outbox.principal)
        except RefusedError:
            return False
        return len(known) < coordinator.limits.device_windows_max and not coordinator.lag_offset

    async def claim_for(self, command: c.Subscribe) -> None:
        """Claim the window of a subscription; if that is refused, the subscription will be, too.

        A log that does not respond delays the stream of the device by a second, not longer.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE_S), self._claiming:
                await self._claim_one(command.spec.window)

    async def _claim_one(self, window: Window) -> None:
        if window in self._coordinator.log_windows:
            return
        self._pending_s[window] = time.monotonic()
        if not await self._claim(must=False):
            self._pending_s.pop(window, None)

    @property
    def _is_in_force(self) -> bool:
        return self._command_loop.applier.rules >= SECOND_RULES

    def _is_due(self) -> bool:
        claimed = self._coordinator.log_windows.claims.get(self._address)
        wanted = self._wanted()
        if claimed is None:
            return bool(wanted)
        is_old = bool(wanted) and claimed.time_ms <= self._coordinator.log_ms - _RENEW_MS
        return claimed.windows != wanted or is_old

    def _wanted(self) -> tuple[Window, ...]:
        """Return the windows of the node, those of subscriptions to come included, in order."""
        now_s = time.monotonic()
        self._pending_s = {
            window: at_s for window, at_s in self._pending_s.items() if at_s > now_s - _PENDING_S
        }
        found = self._coordinator.windows_in_use() | self._pending_s.keys()
        return tuple(sorted(found, key=lambda window: (window.duration_ms, window.count)))

    async def _claim(self, *, must: bool) -> bool:
        try:
            await self._command_loop.append(UseWindows(self._address, self._wanted(), must))
        except RefusedError as error:
            _log.info("windows are not claimed: %s", error)
            return False
        return True
