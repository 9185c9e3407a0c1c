"""The pump: takes waiting commands in batches, makes them durable, applies them.

One batch at a time: plan, commit (in a thread), apply. Whoever waits for a command is answered after its
batch is on disk and applied. The pump never waits for a device; nor do devices that report wait for a
commit of others, however slow the disk is: what they say goes on aside (`server.runtime.report_batcher`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from safe_region.steady_clock import steady_clock_ms
from server.commands import command as c
from server.commands.plan import Plan, answer, apply
from server.commands.planner import Planner
from server.core.coordinator import Coordinator
from server.counters import ParkReason
from server.errors import Reason, RefusalError, StoreError
from server.runtime.command_queue import CommandQueue
from server.runtime.gc_control import GcControl
from server.runtime.lifecycle import ServerState, require_serving
from server.runtime.report_batcher import ReportBatcher
from server.runtime.retention import Retention
from server.store import SqliteStore
from server.store.mutations import Row

_log = logging.getLogger(__name__)

_IDLE_S = 1.0
"""How often an idle pump lets time pass: expired objects leave memory."""

_CLEAN_MS = 10_000
"""How often an idle pump tells the store what has expired and how late it is."""

_AHEAD_MS = 2_000
"""How far time may go on after a commit: a server that was killed begins no earlier than that."""

_LATE_MAX = 5_000
"""Rows nobody waits for that a commit writes at most: milliseconds; the next ones go on."""
_GATHER_S = 0.001
_GATHER_MAX = 64
"""How long, and how often at most, a flood of reports is read on before those that wait are answered."""

_LOOK_S = 0.001
"""How often, during a commit, is looked for what can go on without it."""


def wall_clock_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class CommandLoop:
    """Drives a switchboard.

    Parameters
    ----------
    switchboard
        Already recovered from the store.
    store
        Where rows become durable.
    clock
        Wall clock in milliseconds; tells where time begins unless that is virtual. Afterwards it may
        jump as it likes: lifetimes and leases are durations.
    steady_clock
        Monotonic clock in milliseconds; tells how time goes on from there, and who is late.
    retention
        Tells who is to be forgotten; by default nobody.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        store: SqliteStore,
        clock: Callable[[], int] = wall_clock_ms,
        steady_clock: Callable[[], int] = steady_clock_ms,
        retention: Retention | None = None,
    ) -> None:
        self.coordinator = coordinator
        self._planner = Planner(coordinator)
        self._store = store
        self._clock = clock
        self._steady_clock = steady_clock
        self._waiting = CommandQueue(coordinator.limits, coordinator.counters)
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._disk = ThreadPoolExecutor(1, thread_name_prefix="store")
        self._batcher = ReportBatcher(coordinator, self._planner, self._waiting, self._let_in)
        self.gc_control = GcControl()
        self.state = ServerState.SERVING
        """Whether commands are taken: set by whoever starts and stops the server."""
        self._stopping = False
        self._sync_waiters: list[
            tuple[int, asyncio.Future[None]]
        ] = []  # who waits for answers up to a number
        self._committed_ms = 0
        self._until_ms = 0  # what the store says that time may reach
        self._ahead_ms = 0  # of the steady clock
        self._superseded_count = 0
        self._lease_expired_count = 0
        self._forgotten_count = 0
        self._retention = retention or Retention(store, 0)

    async def ask(self, command: c.Command) -> Any:  # noqa: ANN401
        """Submit a command and wait for its reply.

        Raises
        ------
        RefusalError
            If it is refused.
        """
        return await (await self.submit(command))

    async def submit(self, command: c.Command) -> asyncio.Future[Any]:
        """Submit a command; return what becomes its reply, or a RefusalError. Waits only for room.

        Raises
        ------
        RefusalError
            If commands are not taken now.
        """
        require_serving(self.state)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        await self._put(command, future)
        return future

    def listen(self) -> None:
        """Note when a message has arrived: the devices that it is of are alive."""
        if not self.coordinator.virtual_time:
            self.coordinator.steady_ms = self._steady_clock()

    async def tell(self, command: c.DeviceCommand) -> None:
        """Submit a device's command; a refusal goes to the device. Waits only for room."""
        await self._put(command, None)

    def tell_at_once(self, command: c.DeviceCommand) -> bool:
        """Submit a device's command if there is room; return whether there was."""
        if not self._room.is_set():
            return False
        self._enqueue(command, None)
        return True

    def tell_now(self, command: c.Detach) -> None:
        """Submit without waiting for room: for clean-up, which must not be cancelled."""
        self._waiting.put(command)
        self._arrived.set()

    async def _put(self, command: c.Command, future: asyncio.Future[Any] | None) -> None:
        while not self._room.is_set():  # others that waited may have taken the room
            await self._room.wait()
        self._enqueue(command, future)

    def _enqueue(self, command: c.Command, future: asyncio.Future[Any] | None) -> None:
        if not self._waiting.put(command, future):
            return
        self._arrived.set()
        if len(self._waiting) >= self.coordinator.limits.queue_max:
            self._room.clear()

    async def answered(self) -> None:
        """Wait until devices that have been asked where they are have answered, or are given up."""
        location_requests = self.coordinator.location_requests
        if location_requests.oldest() <= location_requests.latest:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._sync_waiters.append((location_requests.latest, future))
            await future

    async def run(self) -> None:
        """Pump until `stop`."""
        self._committed_ms = self._until_ms = self.coordinator.matching.now_ms
        self._ahead_ms = max(self._committed_ms, self._clock()) - self._steady_clock()
        while not (self._stopping and not self._waiting):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._arrived.wait(), _IDLE_S)
            await self._pass_time()
            if self._waiting:
                await self._gather()
                await self._pump_once()
            elif self.coordinator.matching.now_ms >= self._committed_ms + _CLEAN_MS or (
                len(self.coordinator.late_rows) >= _LATE_MAX
            ):
                await self._clean()
            if not self._waiting:
                self._arrived.clear()
            self._wake_sync_waiters()
            self.gc_control.rest()
        await self._retention.stop()
        await self._clean(self.coordinator.matching.now_ms)
        self._disk.shutdown()
        self._batcher.close()

    def stop(self) -> None:
        """Let `run` end when what waits is done."""
        self.drain()
        self._stopping = True

    def drain(self) -> None:
        """Refuse new questions; what was accepted goes on."""
        self.state = ServerState.DRAINING
        self._arrived.set()

    @property
    def waiting_count(self) -> int:
        """How many commands wait."""
        return len(self._waiting)

    async def _pass_time(self) -> None:
        coordinator = self.coordinator
        coordinator.real_ms = self._steady_clock()
        coordinator.detach_silent()
        if not coordinator.virtual_time:
            coordinator.steady_ms = coordinator.real_ms
            now_ms = max(coordinator.matching.now_ms, coordinator.real_ms + self._ahead_ms)
            if now_ms > self._until_ms:
                self._until_ms = now_ms + _AHEAD_MS  # also if the disk fails: time does not stand still
                await self._clean(self._until_ms)
            coordinator.advance(now_ms)
        expired_count = coordinator.counters.parked[ParkReason.LEASE_EXPIRED]
        if expired_count > self._lease_expired_count:
            count = expired_count - self._lease_expired_count
            _log.info("%d devices have said nothing for a lease and are parked", count)
            self._lease_expired_count = expired_count
        forgotten_count = coordinator.counters.devices_forgotten
        if forgotten_count > self._forgotten_count:
            count = forgotten_count - self._forgotten_count
            _log.info("%d devices have not been heard of for long and are forgotten", count)
            self._forgotten_count = forgotten_count
        self._retention.pass_time(coordinator.matching.now_ms, lambda command: self._put(command, None))

    def _wake_sync_waiters(self) -> None:
        """Wake those whose questions have been answered; all of them when this is ending."""
        oldest = self.coordinator.location_requests.oldest()
        for number, future in self._sync_waiters:
            is_over = self.state is ServerState.DRAINING
            if (number < oldest or is_over) and not future.done():
                future.set_result(None)
        self._sync_waiters = [pair for pair in self._sync_waiters if not pair[1].done()]

    async def _gather(self) -> None:
        """Let more be read as long as that makes reports obsolete that would have to be evaluated."""
        counters = self.coordinator.counters
        for _ in range(_GATHER_MAX):
            if counters.reports_superseded == self._superseded_count:
                break
            self._superseded_count = counters.reports_superseded
            await asyncio.sleep(_GATHER_S)

    async def _pump_once(self) -> None:
        await self._batcher.carry_out()
        planned = self._planner.plan_batch(self._waiting.main(self.coordinator.limits.batch_max))
        batch = self._waiting.take_main(len(planned))
        self._let_in()
        rows = [row for plan in planned if isinstance(plan, Plan) for row in plan.rows]
        if rows:
            try:
                await self._commit(rows)
            except StoreError as error:
                _log.error("a batch of %d commands is refused: %s", len(batch), error)
                self.gc_control.suspect()
                planned = [_unless_readonly(plan) for plan in planned]
        replies = apply(self.coordinator, [plan for plan in planned if isinstance(plan, Plan)])
        answer(self.coordinator, batch, planned, replies)
        self._waiting.done(batch)

    def _let_in(self) -> None:
        if len(self._waiting) < self.coordinator.limits.queue_max:
            self._room.set()

    async def _clean(self, until_ms: int | None = None) -> None:
        try:
            await self._commit([], until_ms)
        except StoreError as error:
            _log.warning("%s", error)
            self.gc_control.suspect()

    async def _commit(self, rows: list[Row], until_ms: int | None = None) -> None:
        coordinator = self.coordinator
        late = [
            coordinator.late_rows.popleft() for _ in range(min(len(coordinator.late_rows), _LATE_MAX))
        ]
        now_ms = coordinator.matching.now_ms
        if until_ms is None:
            until_ms = now_ms if coordinator.virtual_time else max(self._until_ms, now_ms + _AHEAD_MS)
        loop = asyncio.get_running_loop()
        committing = loop.run_in_executor(
            self._disk, self._store.commit, [*late, *rows], now_ms, until_ms
        )
        try:
            await self._meanwhile(committing)
            await committing
        except StoreError:
            coordinator.late_rows.extendleft(reversed(late))
            raise
        self._committed_ms, self._until_ms = now_ms, until_ms

    async def _meanwhile(self, committing: asyncio.Future[None]) -> None:
        """Go on with what needs no disk until a commit is done: it may be slow."""
        while not committing.done():
            await self._batcher.carry_out()
            await asyncio.wait((committing,), timeout=_LOOK_S)


def _unless_readonly(plan: Plan | RefusalError) -> Plan | RefusalError:
    """Refuse what could not be made durable; the rest goes ahead."""
    if isinstance(plan, Plan) and plan.rows:
        return RefusalError(Reason.INTERNAL, "store", "not writable", "writable; try again later")
    return plan
