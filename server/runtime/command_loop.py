"""The command loop: takes waiting commands in batches, makes them durable, applies them.

It runs one batch at a time: plan, commit (in a thread), apply. The caller of a command gets the response
after the batch is on disk and applied. The loop never waits for a device. Commands that need no disk do
not wait for the commits of others, however slow the disk is: they are executed meanwhile
(`server.runtime.batcher`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from identity.quotas import Account
from nearcast.errors import Reason, RefusedError
from server import command as c
from server.commands.acceptor import Accepted
from server.commands.costs import Costs
from server.commands.plan import LATER, Later, Plan, Publication, slices
from server.commands.planner import Decision, Planner
from server.core.coordinator import Coordinator
from server.core.evaluation_batch import EvaluationBatch
from server.counters import ParkReason
from server.errors import StoreError
from server.measures import SliceTimer, cpu_us, now_us
from server.model import LiveObject
from server.object_traces import ObjectTraces
from server.runtime.batcher import Batcher
from server.runtime.charges import Charges
from server.runtime.command_queue import CommandQueue, Entry, principal_of
from server.runtime.fair_shares import FairShares, Lane
from server.runtime.gc_control import GcControl
from server.runtime.lifecycle import ServerState, require_serving
from server.runtime.retention import Retention, StoreRetention
from server.runtime.waiters import Waiters
from server.store import SqliteStore
from server.store.mutations import Mutation

_log = logging.getLogger(__name__)

_T = TypeVar("_T")

_IDLE_S = 1.0
"""Interval at which an idle loop advances the time, so that expired objects leave memory."""

_TURNS = 4
"""Turns of the event loop before a batch. Streams are read and written meanwhile, and the batch has more
commands: with one turn, a report took 1.4 times the CPU that it takes with four (neighbours/versions)."""

_CLEAN_MS = 10_000
"""Interval at which an idle loop writes expired objects and the time to the store."""

_AHEAD_MS = 2_000
"""How far time may advance beyond a commit: a server that was killed starts no earlier than that."""

_LEAP_MS = 60_000
"""After a larger jump in time, as after sleep of the machine, no device gets the old time."""

_READ_ON_MAX = 32
_READ_ON_TURNS = 4
"""How often to read on in a flood at most, and for how many turns of the event loop each time.

While waiting reports give way to later ones, each report that is read before the batch saves an
evaluation. Without reading on, a third less was accepted. The limit is in turns, not milliseconds, so
that an idle stream causes no delay.
"""

_BATCH_US = 12_000.0
"""Maximum cost of a durable batch: the next commands wait for it, and for its commit."""

_SLICE_US = 4_000.0
"""Cost of the slice of a batch that is executed before volatile commands continue."""

_EXPIRY_SLICE_US = 2_000.0
"""Cost of a slice of expired objects: those that remain can wait, unlike a publisher."""

_EXPIRED_MAX = 1_000
"""Maximum number of expired objects that are removed in a slice, however cheap they were."""

_LATE_MAX = 5_000
"""Maximum number of late mutations in a commit, some milliseconds; the next commits continue."""

_LAST_S = 2.0
"""How long the last commits may take when the server stops."""


class Commit(NamedTuple):
    """What the thread of the store writes."""

    late: list[Mutation]
    now_ms: int
    until_ms: int
    written: asyncio.Future[None]


class CommandLoop:
    """Drives a coordinator.

    Parameters
    ----------
    coordinator
        Already recovered from the store.
    store
        The store that makes rows durable.
    retention
        Finds the devices to be forgotten; by default none.
    traces
        Traces objects, if any are to be traced.
    state
        Whether commands are accepted.
    tenants
        The accounts of tenants; by default none.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        store: SqliteStore,
        retention: Retention | None = None,
        *,
        traces: ObjectTraces | None = None,
        state: ServerState = ServerState.SERVING,
        tenants: Mapping[str, Account] | None = None,
    ) -> None:
        self.coordinator = coordinator
        self._planner = Planner(coordinator)
        self.store = store
        self._clock = coordinator.clock
        self._costs = Costs(coordinator)
        self.charges = Charges()
        self.tenants: Mapping[str, Account] = {} if tenants is None else tenants
        """The accounts of tenants."""
        self.fair_shares = FairShares(self.tenants)
        self._queue = CommandQueue(
            coordinator.counters,
            coordinator.limits.queue_max,
            self._costs.of,
            self.charges.taken_on,
            self._taken,
        )
        self._arrived = asyncio.Event()
        self._waiters = Waiters(
            lambda account, _: self._queue.has_room(account),
            lambda account, _: self._queue.is_within_bound(account),
        )
        self._freed: dict[Account, None] = {}
        # Callers whose commands were taken while tasks wait for capacity.
        self._disk = ThreadPoolExecutor(1, thread_name_prefix="store")
        self.batcher = Batcher(coordinator, self._queue, self._let_in, self._costs, self.charges)
        self.gc_control = GcControl()
        self.traces = traces
        self.state = state
        """Whether commands are accepted."""
        self._stopping = False
        self._has_ended = False
        self._is_impatient = False
        # Whether a server that stops has waited long enough for accepted commands.
        self._committed_ms = 0
        self._until_ms = 0  # time limit in the store
        self._ahead_ms = 0  # of the steady clock
        self._is_behind = not self._clock.is_virtual
        # Whether time is to jump: a device welcomed before the jump would take the old time as correct.
        self._lease_expired_count = 0
        self._forgotten_count = 0
        self._superseded_count = 0
        self._retention = retention or StoreRetention(store, 0)
        self._commit_us = 0.0
        """CPU time that the thread of the store took per row of the last commit."""

    async def execute(self, command: c.Command) -> Any:  # noqa: ANN401
        """Submit a command and wait for its reply.

        Raises
        ------
        RefusedError
            If it is refused.
        """
        return await (await self.submit(command))

    async def submit(self, command: c.Command) -> asyncio.Future[Any]:
        """Submit a command; return the future of its reply or RefusedError. Waits only for capacity.

        Raises
        ------
        RefusedError
            If commands are not accepted now.
        """
        require_serving(self.state)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        await self._put(command, future)
        return future

    async def enqueue(self, command: c.DeviceCommand) -> None:
        """Submit a command of a device, which receives any refusal. Waits only for capacity."""
        await self._put(command, None)

    def try_enqueue(self, command: c.DeviceCommand) -> bool:
        """Submit a command of a device if there is capacity; return whether there was."""
        if not self._queue.has_room(command.outbox.principal.account):
            return False
        self._enqueue(command, None)
        return True

    def enqueue_detach(self, command: c.Detach) -> None:
        """Submit without waiting for capacity: for clean-up, which must not be cancelled."""
        self._enqueue(command, None)

    async def _put(self, command: c.Command, future: asyncio.Future[Any] | None) -> None:
        account = principal_of(command).account
        if self._queue.has_room(account) and account not in self._waiters:
            self._enqueue(command, future)
        else:
            await self._waiters.wait(account, 1, lambda: self._enqueue(command, future))

    def _enqueue(self, command: c.Command, future: asyncio.Future[Any] | None) -> None:
        if self._queue.put(command, future):
            self._arrived.set()

    async def answered(self) -> None:
        """Wait until the open location requests have responses or are given up."""
        is_over = asyncio.Event()
        self.coordinator.location_requests.when_answered(is_over.set)
        if self.state is not ServerState.DRAINING:
            await is_over.wait()

    async def run(self) -> None:
        """Execute commands until `stop`."""
        self._committed_ms = self._until_ms = self.coordinator.matching.now_ms
        self.coordinator.counters.serving_ms = began_ms = self._clock.read()
        pacing = asyncio.create_task(self.fair_shares.run())
        self._ahead_ms = self._start_ms() - began_ms
        while not (self._stopping and not self._queue):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._rest_s()):
                    await self._arrived.wait()
            for _ in range(_TURNS):
                await asyncio.sleep(0)
            await self._pass_time()
            if self._is_impatient:
                self._refuse_waiting()
            if self._queue:
                if self.coordinator.counters.reports_superseded != self._superseded_count:
                    await self._read_on()
                await self.batcher.run()
                if self._queue.durable_count:
                    await self._run_batch()
            elif self.coordinator.matching.now_ms >= self._committed_ms + _CLEAN_MS or (
                self.coordinator.late_count >= _LATE_MAX
            ):
                await self._clean()
            is_reweighing = self.coordinator.matching.is_reweighing and self.coordinator.reweigh()
            if not self._queue and not is_reweighing:
                self._arrived.clear()
            self.gc_control.rest()
        pacing.cancel()
        self._has_ended = True
        await self._retention.stop()
        await self._clean_last()
        self.close()

    def _start_ms(self) -> int:
        """Return the time at which time continues."""
        return max(self._committed_ms, self._clock.wall_ms())

    def close(self) -> None:
        """End the threads, which a loop that was cancelled has left."""
        self._disk.shutdown()
        self.batcher.close()

    def _rest_s(self) -> float:
        """Return how many seconds the loop may wait for a command."""
        matching = self.coordinator.matching
        if self._clock.is_virtual:
            return _IDLE_S
        now_ms = self._clock.read() + self._ahead_ms
        if matching.engine.quiet_until_ms >= now_ms + 1000.0 * _IDLE_S:
            return _IDLE_S
        due_ms = matching.next_due_ms()
        return _IDLE_S if due_ms is None else min(_IDLE_S, max(0.0, (due_ms - now_ms) / 1000.0))

    def serve(self) -> None:
        """Accept commands from now on."""
        self.state = ServerState.SERVING
        self._is_impatient = False

    def stop(self) -> None:
        """Let `run` end when all waiting commands are done."""
        self.drain()
        self._stopping = True

    def drain(self, patience_s: float = math.inf) -> None:
        """Refuse new commands; continue accepted ones for a while, then refuse the rest, too.

        Parameters
        ----------
        patience_s
            How long accepted commands continue, in seconds.
        """
        if self.state is not ServerState.DRAINING and patience_s < math.inf:
            asyncio.get_running_loop().call_later(patience_s, self._lose_patience)
        self.state = ServerState.DRAINING
        self.coordinator.location_requests.end_waiting()
        self._arrived.set()

    def _lose_patience(self) -> None:
        self._is_impatient = True
        self._arrived.set()

    def _refuse_waiting(self) -> None:
        """Refuse all waiting commands as not executed, except detaches and what the node itself does."""
        entries = self._queue.take_all()
        error = RefusedError(Reason.DRAINING, "server", "stopping", "running; try again")
        refused = [entry for entry in entries if not isinstance(entry.command, c.Detach | c.InTurn)]
        for entry in refused:
            if entry.answer is not None and not entry.answer.done():
                entry.answer.set_exception(error)
        if refused:
            _log.info("%d waiting commands were not processed", len(refused))
        for entry in entries:
            if isinstance(entry.command, c.Detach):
                self.coordinator.detach(entry.command.outbox, entry.command.device_id)
            elif isinstance(entry.command, c.InTurn):
                self._enqueue(entry.command, entry.answer)
        self._let_in()

    async def last_seen_ms(self, device_id: str) -> int | None:
        """Return the time at which a device was last seen, to the hour; None if the store has none.

        Raises
        ------
        RefusedError
            INTERNAL, if the store cannot be read.
        """
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(None, self.store.last_seen_ms, device_id)
        except StoreError as error:
            _log.warning("%s", error)
            raise RefusedError(Reason.INTERNAL, "store", "not readable", "readable") from None

    @property
    def waiting_count(self) -> int:
        """The number of waiting commands."""
        return len(self._queue)

    @property
    def accepted_count(self) -> int:
        """The number of commands that were ever queued, without reports that took another's place."""
        return self._queue.put_count

    async def _pass_time(self) -> None:
        coordinator, clock = self.coordinator, self._clock
        real_ms = clock.read()
        if coordinator.matching.pending:
            coordinator.detach_silent()
        if not clock.is_virtual:
            now_ms = max(coordinator.matching.now_ms, real_ms + self._ahead_ms)
            if now_ms > self._until_ms:
                self._until_ms = now_ms + _AHEAD_MS  # also if the disk fails: time goes on
                self._is_behind |= now_ms > coordinator.matching.now_ms + _LEAP_MS
                await self._clean(self._until_ms)
            if not coordinator.skip_to(now_ms):
                await self._advance(now_ms)
            self._is_behind = False
        expired_count = coordinator.counters.parked[ParkReason.LEASE_EXPIRED]
        if expired_count > self._lease_expired_count:
            count = expired_count - self._lease_expired_count
            _log.info("%d devices are parked: their leases expired", count)
            self._lease_expired_count = expired_count
        forgotten_count = coordinator.counters.devices_forgotten
        if forgotten_count > self._forgotten_count:
            count = forgotten_count - self._forgotten_count
            _log.info("%d devices are deleted: their retention expired", count)
            self._forgotten_count = forgotten_count
        now_ms = coordinator.matching.now_ms
        if now_ms >= self._retention.due_ms:
            self._retention.pass_time(now_ms, self._forget)

    async def _advance(self, now_ms: int) -> None:
        """Set the time. Between slices of expired objects, commands of devices are executed."""
        costs, slice_timer = self._costs, SliceTimer(self.coordinator.counters.measures.slice_us)
        before_us = 0.0
        with self.batcher.held_queries():
            while self.coordinator.advance_some(now_ms, count := self._expired_count()):
                await self._let_others_go_on(slice_timer)
                costs.expiry.note(count * costs.expired_us, slice_timer.total_us - before_us)
                before_us = slice_timer.total_us
        slice_timer.pause()

    def _expired_count(self) -> int:
        """Return the number of expired objects in a slice."""
        return min(_EXPIRED_MAX, int(_EXPIRY_SLICE_US / self._costs.expired_us))

    async def _read_on(self) -> None:
        """Read more from streams as long as waiting reports give way to reports that are read."""
        counters = self.coordinator.counters
        for _ in range(_READ_ON_MAX):
            if counters.reports_superseded == self._superseded_count:
                break
            self._superseded_count = counters.reports_superseded
            for _ in range(_READ_ON_TURNS):
                await asyncio.sleep(0)

    async def _run_batch(self) -> None:
        """Execute a batch of commands that need the disk."""
        taken = self._queue.take_durable(self.coordinator.limits.batch_max, _BATCH_US)
        if not taken:
            return
        slice_timer = SliceTimer(self.coordinator.counters.measures.slice_us)
        entries, decisions, later = self._planned(taken)
        if later:
            self._queue.put_back(later)
        self._let_in()
        if self.traces is not None:
            self.traces.begin_commit()
        mutations = [one for plan in decisions if isinstance(plan, Plan) for one in plan.mutations]
        slice_timer.pause()
        if mutations:
            try:
                await self._commit(mutations)
            except StoreError as error:
                _log.error("a batch of %d commands is refused: %s", len(entries), error)
                self.gc_control.suspect()
                kept = [_unless_durable(plan, error) for plan in decisions]
                pairs = zip(decisions, kept, strict=True)
                self._planner.give_back([plan for plan, one in pairs if one is not plan])
                decisions = kept
        slice_timer.resume()
        with self.batcher.held_queries():
            await self._apply(entries, decisions, slice_timer)
        slice_timer.pause()
        factor = self._costs.factor_of([entry.command for entry in entries])
        self.charges.carried_out(entries, slice_timer.total_us, factor, self._commit_us * len(mutations))
        self._queue.done(entries)

    def _planned(self, taken: Sequence[Entry]) -> tuple[list[Entry], list[Decision], list[Entry]]:
        """Return the entries of a batch, the decisions for them, and the entries that have to wait."""
        found = self._planner.plan_batch([entry.command for entry in taken])
        entries = [entry for entry, plan in zip(taken, found, strict=True) if plan is not LATER]
        later = [entry for entry, plan in zip(taken, found, strict=True) if plan is LATER]
        return entries, [plan for plan in found if not isinstance(plan, Later)], later

    async def _apply(
        self, entries: Sequence[Entry], decisions: Sequence[Decision], slice_timer: SliceTimer
    ) -> None:
        """Apply plans that are on disk, and commands that needed no disk; send the responses.

        Plans of a batch do not touch the same data, so all publications are applied together, before
        anything is evaluated. A plan that touches everything is the last of its batch, and is applied
        after the others. Searches that come between two slices wait: they would find a part of a
        publication, or a publication without a retraction that was accepted before it.
        """
        decided = list(zip(entries, decisions, strict=True))
        if self.traces is not None:
            for entry, plan in decided:
                self.traces.committed(entry.command, _created(plan))
        publications: list[Publication] = []
        replies: list[tuple[Entry, object]] = []
        for entry, plan in decided:
            if isinstance(plan, Plan) and plan.publication is not None:
                replies.append((entry, plan.apply(EvaluationBatch())))
                publications.append(plan.publication)
        if publications:
            await self._publish(publications, slice_timer)
        for entry, reply in replies:
            _answer(entry, reply)
        for number, some in enumerate(_slices_of(decided)):
            if number or publications:
                await self._let_others_go_on(slice_timer)
            self._carry_out(some)

    def _carry_out(self, decided: Sequence[tuple[Entry, Decision]]) -> None:
        """Apply plans, then accept commands that need no disk; evaluate both together, and respond.

        The order ensures that a device with a hello gets no delta between welcome and snapshot.
        """
        accepted = Accepted()
        replies: list[tuple[Entry, object]] = []
        for entry, plan in decided:
            if isinstance(plan, RefusedError):
                self.batcher.refuse(entry, plan)
            elif plan is not None:
                replies.append((entry, plan.apply(accepted.evaluation)))
        self.batcher.accept((entry for entry, plan in decided if plan is None), accepted)
        self.batcher.finish(accepted)
        for entry, reply in replies:
            _answer(entry, reply)

    async def _let_others_go_on(self, slice_timer: SliceTimer) -> None:
        """Execute commands that need no disk between two slices of a durable batch."""
        slice_timer.pause()
        await asyncio.sleep(0)
        await self.batcher.run()
        slice_timer.resume()

    async def _publish(self, publications: Sequence[Publication], slice_timer: SliceTimer) -> None:
        """Apply publications in slices, between which commands that need no disk are executed."""
        count_max = max(1, int(_SLICE_US / self._costs.object_us))
        for i, (created, replaced) in enumerate(slices(publications, count_max)):
            if i:
                await self._let_others_go_on(slice_timer)
            self.coordinator.publish(created, replaced)
        if self.traces is not None:
            self.traces.matched()

    async def _forget(self, command: c.Forget) -> None:
        """Execute a command of the retention, unless the loop has ended."""
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        await self._put(command, done)
        if not self._has_ended:
            await done

    def _taken(self, lane: Lane, entries: Sequence[Entry]) -> None:
        """Record that commands were taken from the queue."""
        self.fair_shares.taken(lane, entries)
        if self._waiters:
            self._freed.update((entry.account, None) for entry in entries)

    def _let_in(self) -> None:
        """Put commands into the queue that wait for capacity."""
        if self._freed:
            freed, self._freed = self._freed, {}
            self._waiters.wake(freed)

    async def _clean(self, until_ms: int | None = None) -> None:
        try:
            await self._commit([], until_ms)
        except StoreError as error:
            _log.warning("%s", error)
            self.gc_control.suspect()

    async def _clean_last(self) -> None:
        """Write what is left when the loop has ended: all of it, if that takes two seconds at most."""
        end_s, before = time.monotonic() + _LAST_S, math.inf
        await self._clean(self.coordinator.matching.now_ms)
        while 0 < (left := self.coordinator.late_count) < before and time.monotonic() < end_s:
            before = left
            await self._clean(self.coordinator.matching.now_ms)

    async def _commit(self, mutations: list[Mutation], until_ms: int | None = None) -> None:
        """Make mutations durable. Commands that need no disk are executed meanwhile."""
        commit = self._begin_commit(mutations, until_ms)
        await self._end_commit(commit, self._meanwhile(commit.written))

    def _begin_commit(self, mutations: list[Mutation], until_ms: int | None) -> Commit:
        """Begin to write mutations in the thread of the store. `_end_commit` follows, then the next."""
        coordinator = self.coordinator
        late = coordinator.take_late(_LATE_MAX)
        now_ms = coordinator.matching.now_ms
        if until_ms is None:
            is_virtual = self._clock.is_virtual
            until_ms = now_ms if is_virtual else max(self._until_ms, now_ms + _AHEAD_MS)
        loop = asyncio.get_running_loop()
        rows = [*late, *mutations]
        written = loop.run_in_executor(self._disk, self._write, rows, now_ms, until_ms)
        return Commit(late, now_ms, until_ms, written)

    async def _end_commit(self, commit: Commit, written: Awaitable[None]) -> None:
        """Wait until a commit is written.

        Raises
        ------
        StoreError
            If it is not.
        """
        try:
            await written
        except StoreError:
            self.coordinator.put_back_late(commit.late)
            raise
        self._committed_ms, self._until_ms = commit.now_ms, max(self._until_ms, commit.until_ms)
        self.coordinator.counters.sink_waiting = self._sink_waiting()

    def _sink_waiting(self) -> int:
        """Return the number of changes that wait for the sink."""
        return self.store.unsent_count

    async def _meanwhile(self, committing: Awaitable[_T]) -> _T:
        """Execute commands that need no disk until a commit is done; return its result."""
        committed = asyncio.ensure_future(committing)
        committed.add_done_callback(lambda _: self._arrived.set())
        try:
            while not committed.done():
                self._arrived.clear()
                if self._is_behind:
                    break
                await self.batcher.run()
                if self._queue.volatile_count:
                    await asyncio.sleep(0)  # streams are read and written
                elif not committed.done():
                    await self._arrived.wait()
            return await committed
        finally:
            self._arrived.set()

    def _write(self, mutations: list[Mutation], now_ms: int, until_ms: int) -> None:
        """Commit mutations. Runs in the thread of the store."""
        measures = self.coordinator.counters.measures
        measures.commit_rows.note(len(mutations))
        began_us, began_cpu_us = now_us(), cpu_us()
        try:
            self.store.commit(mutations, now_ms, until_ms)
        finally:
            took_us = now_us() - began_us
            measures.commit_us.note(took_us)
            self.fair_shares.committed(took_us / 1e6)
            self._commit_us = (cpu_us() - began_cpu_us) / max(1, len(mutations))


def _created(plan: Decision) -> Sequence[LiveObject]:
    """Return the objects that a plan publishes."""
    publication = _publication(plan)
    return () if publication is None else publication.created


def _unless_durable(plan: Decision, error: StoreError) -> Decision:
    """Return a refusal for a plan that was not made durable; other decisions stay."""
    if not isinstance(plan, Plan):
        return plan
    refusals = (error.refusal_of(mutation) for mutation in plan.mutations)
    return next((one for one in refusals if one is not None), plan)


def _slices_of(decided: Iterable[tuple[Entry, Decision]]) -> Iterator[list[tuple[Entry, Decision]]]:
    """Yield slices, by cost, of decisions without publication; a plan touching everything is alone."""
    some: list[tuple[Entry, Decision]] = []
    cost_us = 0.0
    for entry, plan in decided:
        if _publication(plan) is not None:
            continue
        is_last = isinstance(plan, Plan) and plan.touches.everything
        if some and (is_last or cost_us + entry.cost_us > _SLICE_US):
            yield some
            some, cost_us = [], 0.0
        some.append((entry, plan))
        cost_us += entry.cost_us
    if some:
        yield some


def _publication(plan: Decision) -> Publication | None:
    return plan.publication if isinstance(plan, Plan) else None


def _answer(entry: Entry, reply: object) -> None:
    if entry.answer is not None and not entry.answer.done():
        entry.answer.set_result(reply)
