"""The command loop of a node: publications go to the log, and come back in its order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeGuard

from cluster.entries import Change, Entry, Publish, TakeIn
from cluster.log import LogError, Message
from cluster.registry import Changes
from cluster.slots import slot_of
from nearcast.errors import Reason, RefusedError
from server import command as c
from server.errors import StoreError
from server.replication.appender import Appender
from server.replication.applier import Applier
from server.replication.coordinator import ReplicatedCoordinator
from server.replication.device_changes import DeviceMutation, changes_of
from server.replication.log_clock import LogClock
from server.replication.requests import LoggedCommand, change_of
from server.runtime.command_loop import CommandLoop, Commit
from server.runtime.command_queue import principal_of
from server.runtime.lifecycle import require_serving
from server.store.mutations import Mutation, SetLastSeen

_log = logging.getLogger(__name__)

Write = Callable[[Mapping[int, Changes]], Awaitable[dict[int, RefusedError]]]

_UNWRITTEN_MAX = 5_000
"""Changes after which the store is written, some milliseconds of the disk's thread."""

_SEEN_MAX = 256
"""Devices that are written as seen at a time, as many writes of slots."""

_OBJECTS_MAX = 100
"""Objects that are applied at a time; commands of devices are executed in between."""


class WindowClaims(Protocol):
    """Claims windows of subscriptions in the log."""

    def is_due_for(self, command: c.Subscribe) -> bool:
        """Return whether a subscription has a window that is to be claimed first."""
        ...

    async def claim_for(self, command: c.Subscribe) -> None:
        """Claim the window of a subscription."""
        ...


class SlotsError(StoreError):
    """Changes of the subscriptions of some slots are not durable; all others are.

    Parameters
    ----------
    refusals
        The reason, by slot.
    """

    def __init__(self, refusals: Mapping[int, RefusedError]) -> None:
        super().__init__(f"{len(refusals)} slots are not served by this node now")
        self._refusals = refusals

    def refusal_of(self, _mutation: Mutation) -> RefusedError | None:
        """Return why a mutation is not durable; None if it is."""
        if not isinstance(_mutation, DeviceMutation):
            return None
        return self._refusals.get(slot_of(_mutation.device_id))


class ReplicatedCommandLoop(CommandLoop):
    """Drives the coordinator of a node. `follow` comes before everything else.

    Parameters
    ----------
    arguments, options
        Those of `CommandLoop`.
    """

    coordinator: ReplicatedCoordinator

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401
        super().__init__(*arguments, **options)
        self.log_clock = LogClock(self._clock.steady_ms)
        self.window_keeper: WindowClaims | None = None
        """Claims windows of subscriptions; None before the node follows the log."""
        self._must_store = False
        self._storing: asyncio.Task[None] | None = None
        """Writes the store, or has ended; None if what it did was seen."""
        self._unwritten_max = _UNWRITTEN_MAX
        """Changes after which the store is written: more of them while it cannot be written."""
        self._stored = asyncio.Event()

    def follow(
        self,
        applier: Applier,
        appender: Appender,
        write: Write,
        caught_up: Callable[[], Awaitable[None]],
    ) -> None:
        """Connect it with the log.

        Parameters
        ----------
        applier
            Where entries are applied.
        appender
            Where requests go.
        write
            Stores changes of subscriptions.
        caught_up
            Waits until everything is applied that is in the log.
        """
        self.applier = applier
        self._appender = appender
        self._write_slots = write
        self._caught_up = caught_up

    def close(self) -> None:
        """End the threads; see `CommandLoop.close`."""
        if self._storing is not None:
            self._storing.cancel()
        super().close()

    async def submit(self, command: c.Command) -> asyncio.Future[Any]:
        """Submit a command; see `CommandLoop.submit`."""
        if isinstance(command, LoggedCommand):
            require_serving(self.state)
            found = self._appender.submit(change_of(command, self.coordinator))
            self.charges.carried(principal_of(command).account, self._costs.of(command))
            return found
        if isinstance(command, c.Sync):
            await self._catch_up()
        return await super().submit(command)

    async def enqueue(self, command: c.DeviceCommand) -> None:
        """Submit a command of a device; see `CommandLoop.enqueue`. It waits until a window is claimed."""
        if self.window_keeper is not None and self._needs_claim(command):
            await self.window_keeper.claim_for(command)
        await super().enqueue(command)

    def try_enqueue(self, command: c.DeviceCommand) -> bool:
        """Submit a command of a device if nothing is to be waited for; return whether it was."""
        return not self._needs_claim(command) and super().try_enqueue(command)

    def _needs_claim(self, command: c.DeviceCommand) -> TypeGuard[c.Subscribe]:
        """Return whether a command waits until a window is claimed."""
        keeper = self.window_keeper
        return keeper is not None and isinstance(command, c.Subscribe) and keeper.is_due_for(command)

    async def _catch_up(self) -> None:
        """Apply what is in the log now.

        Raises
        ------
        RefusedError
            INTERNAL, if the log does not respond.
        """
        try:
            await self._caught_up()
        except LogError:
            limit = "responding; try again"
            raise RefusedError(Reason.INTERNAL, "log", "not responding", limit) from None

    async def apply(self, message: Message) -> None:
        """Apply a message of the log in its turn. Messages are to come one after the other.

        Raises
        ------
        LogError
            If this version does not know the rules of the log.
        """
        failures: list[LogError] = []
        for first, entries, is_last in _chunks(message.entries):

            def apply(
                first: int = first,
                entries: Sequence[Entry] = entries,
                is_last: bool = is_last,  # noqa: FBT001
            ) -> None:
                try:
                    self.applier.apply(message.offset, entries, first, is_last=is_last)
                except LogError as error:  # it ends the reader, not the loop
                    failures.append(error)
                self.log_clock.follow(self.coordinator.log_ms)
                self._ahead_ms = self.log_clock.ahead_ms
                self.coordinator.counters.sink_waiting = self._sink_waiting()

            await self.in_turn(apply, _object_count(entries))
            if failures:
                raise failures[0]

    async def in_turn(self, apply: Callable[[], object], row_count: int = 1) -> None:
        """Call a function after the commands that wait, before the next ones."""
        applied: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        await self._put(c.InTurn(apply, row_count), applied)
        await applied

    def start_at(self, wall_ms: int) -> None:
        """Continue at the time of a wall clock, if that is later: nobody else is at the log."""
        self.log_clock.start(wall_ms)
        self._ahead_ms = self.log_clock.ahead_ms

    def _start_ms(self) -> int:
        """Return the time of the log: the wall clock of a node does not count."""
        self.log_clock.follow(self.coordinator.log_ms)
        return self._clock.real_ms + self.log_clock.ahead_ms

    async def _pass_time(self) -> None:
        await super()._pass_time()
        if self._must_store or len(self.coordinator.unwritten) >= self._unwritten_max:
            await self._clean()

    def _sink_waiting(self) -> int:
        return self.coordinator.sink.waiting_count

    def append(self, change: Change) -> asyncio.Future[Any]:
        """Append an entry; return the future result, when this node has applied it.

        Raises
        ------
        RefusedError
            If the log does not respond, or the entry is refused when it is applied.
        """
        return self._appender.submit(change)

    async def store_all(self) -> None:
        """Wait until the store has everything that was in the log when this was called.

        Raises
        ------
        RefusedError
            INTERNAL, if the log does not respond.
        """
        await self._catch_up()
        await self.store_applied()

    async def store_applied(self) -> None:
        """Wait until the store has everything that is applied now."""
        offset = self.applier.offset
        while self.applier.stored_offset < offset:
            self._stored.clear()
            self._must_store = True
            self._arrived.set()
            await self._stored.wait()

    async def _clean(self, until_ms: int | None = None) -> None:
        """Begin to write the store, up to a whole message, and write when devices were seen.

        Entries are applied meanwhile: the store may be behind.
        """
        if self._is_storing() or not self.applier.is_whole:
            return
        taken = self.applier.take_unwritten()
        self._must_store = False
        # if it fails, the next attempt follows as many changes again: O(1) amortised a change
        self._unwritten_max = max(_UNWRITTEN_MAX, 2 * len(taken))
        self._storing = asyncio.create_task(self._end_storing(self._begin_commit(taken, until_ms)))
        await super()._clean(until_ms)

    async def _clean_last(self) -> None:
        """Write what is left; see `CommandLoop._clean_last`. Wait for the store before and after."""
        await self._until_stored()
        await super()._clean_last()
        await self._until_stored()

    async def _until_stored(self) -> None:
        if self._storing is not None:
            await self._storing

    def _is_storing(self) -> bool:
        """Return whether the store is being written. What has ended that unexpectedly is raised."""
        if self._storing is not None and self._storing.done():
            ended, self._storing = self._storing, None
            ended.result()
        return self._storing is not None

    async def _end_storing(self, commit: Commit) -> None:
        """Wait until the store is written, and record what it has."""
        try:
            await self._end_commit(commit, commit.written)
        except StoreError as error:
            self.applier.put_back_unwritten()
            _log.warning("%s", error)
            self.gc_control.suspect()
        else:
            self._unwritten_max = _UNWRITTEN_MAX
            self.applier.written()
            self._stored.set()
            self._arrived.set()

    async def _commit(self, mutations: list[Mutation], until_ms: int | None = None) -> None:  # noqa: ARG002
        """Make changes of subscriptions durable, with their slots. All other changes come from the log.

        Raises
        ------
        SlotsError
            If changes of some slots are not durable.
        """
        coordinator, seen = self.coordinator, self._seen()
        changes = changes_of(
            [*seen, *mutations], coordinator.sessions, coordinator.last_seen, coordinator.log_ms
        )
        refusals = await self._meanwhile(self._write_slots(changes)) if changes else {}
        for slot, some in changes.items():
            if slot not in refusals:
                coordinator.last_seen.wrote(slot, some)
        if refusals:
            raise SlotsError(refusals)

    def _seen(self) -> list[SetLastSeen]:
        """Return the devices to be written as seen with the next changes; none while the node lags."""
        if self.coordinator.lag_offset:
            return []
        return list(map(SetLastSeen, self.coordinator.last_seen.pending(_SEEN_MAX)))

    async def last_seen_ms(self, device_id: str) -> int | None:
        """Return when a device was last seen; see `CommandLoop.last_seen_ms`."""
        return self.coordinator.last_seen.time_of(device_id)


def _chunks(entries: Sequence[Entry]) -> Iterator[tuple[int, Sequence[Entry], bool]]:
    """Yield entries in chunks, with the place of the first one and whether the chunk is the last."""
    first = count = 0
    for i, entry in enumerate(entries):
        count += _object_count((entry,))
        if count >= _OBJECTS_MAX and i + 1 < len(entries):
            yield first, entries[first : i + 1], False
            first, count = i + 1, 0
    yield first, entries[first:], True


def _object_count(entries: Sequence[Entry]) -> int:
    return sum(len(one.change.objects) for one in entries if isinstance(one.change, Publish | TakeIn))
