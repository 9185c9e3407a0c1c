"""Follows the log: reads its messages in order, keeps its time, and notices when it is out of reach.

While nothing is appended, a node appends the time, so that the time of the log goes on. A node whose
clock is far ahead of the log has not read it for as long: it is not healthy until it has caught up.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Awaitable, Callable

from cluster.entries import Entry, Tick
from cluster.log import Log, LogError
from server.clock import wall_clock_ms
from server.replication.command_loop import ReplicatedCommandLoop
from server.replication.log_clock import LEAD_MS_MAX

_log = logging.getLogger(__name__)

TICK_S = 0.5
"""After this silence, a node appends the time."""
_JITTER_S = 0.1
"""So that one node appends it for all."""
_LONELY_S = 3.0 * TICK_S
"""A node that reads no entry for this time is alone at the log."""
_LOOK_S = 0.1
"""Interval at which a node compares its clock with the log."""
_RETRY_S = 0.5
"""The pause after an append that has failed."""


class Follower:
    """Feeds the log to a command loop.

    Parameters
    ----------
    log
        The log.
    command_loop
        Applies its messages.
    on_health
        Called with whether the node is up to date, when this changes.
    """

    def __init__(
        self,
        log: Log,
        command_loop: ReplicatedCommandLoop,
        on_health: Callable[[bool], Awaitable[None]],
    ) -> None:
        self._log = log
        self._command_loop = command_loop
        self._on_health = on_health
        self._is_healthy = True
        self._read_s = time.monotonic()
        self._arrived = asyncio.Event()

    async def read(self) -> None:
        """Apply all messages after the offset of the store, and wait for further ones, until cancelled.

        Raises
        ------
        LogError
            If the log cannot be applied any further.
        """
        async for message in self._log.read(self._command_loop.applier.offset):
            self._read_s = time.monotonic()
            await self._command_loop.apply(message)
            self._arrived.set()

    async def catch_up(self) -> None:
        """Wait until everything is applied that was in the log at the start, then set the time.

        A node that is alone at the log continues at the time of its wall clock, if that is later.

        Raises
        ------
        LogError
            If the log does not respond, or has lost messages.
        """
        end = await self._log.end()
        if self._command_loop.applier.offset > end:
            raise LogError(
                f"the store is ahead of the log, which ends at {end}: the log has lost messages"
            )
        await self.caught_up()
        if not self._command_loop.coordinator.clock.is_virtual and await self._is_alone():
            self._command_loop.start_at(wall_clock_ms())
            await self._append_time()

    async def _is_alone(self) -> bool:
        """Return whether no other node appends to the log, which responds."""
        while True:
            self._arrived.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._arrived.wait(), _LONELY_S)
                return False
            if await self._log.end() == self._command_loop.applier.offset:
                return True

    async def caught_up(self) -> None:
        """Wait until everything is applied that is in the log now.

        Raises
        ------
        LogError
            If the log does not respond.
        """
        end = await self._log.end()
        while self._command_loop.applier.offset < end:
            self._arrived.clear()
            await self._arrived.wait()

    async def keep_time(self) -> None:
        """Append the time while nothing else is appended, until cancelled. Not for virtual time."""
        appended_s = 0.0
        while True:
            silence_s = TICK_S + random.uniform(0.0, _JITTER_S)
            rest_s = max(self._read_s, appended_s) + silence_s - time.monotonic()
            if rest_s > 0.0:
                await asyncio.sleep(rest_s)  # entries may come meanwhile
            else:
                await self._append_time()
                appended_s = time.monotonic()  # it is read later, when this node applies slowly

    async def watch(self) -> None:
        """Report when the node falls behind the log, and when it has caught up, until cancelled.

        Not for virtual time.
        """
        while True:
            await asyncio.sleep(_LOOK_S)
            is_healthy = self._command_loop.log_clock.lead_ms() <= LEAD_MS_MAX
            if is_healthy is self._is_healthy:
                continue
            self._is_healthy = is_healthy
            if is_healthy:
                _log.info("the node has caught up with the log")
            else:
                _log.warning("the node has applied nothing of the log for %d ms", LEAD_MS_MAX)
            await self._on_health(is_healthy)

    async def _append_time(self) -> None:
        try:
            await self._log.append([Entry(self._command_loop.log_clock.now_ms(), Tick())])
        except LogError as error:
            _log.warning("%s", error)
            await asyncio.sleep(_RETRY_S)
