"""The slots of a node: takes them, serves their devices, and releases them.

`cluster.ownership` decides; this does it: it writes owners, reads the subscriptions of slots that it has
taken, and detaches the devices of slots that it has lost. The command loop changes the sessions, in turn
with commands of devices.

Cost: to take a slot, one append and one read for up to 128 slots.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Coroutine, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any

from cluster.log import Log, LogConflictError, LogError, LogUnavailableError
from cluster.ownership import Lease, Node, NodeState, Owned, Ownership
from cluster.registry import (
    SEEN,
    SLOTS_MAX,
    Changes,
    LastSeen,
    LeaseRead,
    OwnerRead,
    Registry,
    SlotRecords,
    StoredSubscription,
)
from cluster.slots import slot_of
from nearcast.errors import RefusedError
from server.errors import StoreError
from server.replication.cluster_placement import ClusterPlacement, without_server
from server.replication.command_loop import ReplicatedCommandLoop
from server.replication.device_changes import columns_of
from server.replication.own_lease import LEASE_S, RENEW_S, OwnLease

_log = logging.getLogger(__name__)

GIVE_UP_S = 30.0
"""A node that reaches a server of the log keeps its devices for this time without a lease: an election of
the log's leader is shorter."""
_ROWS_MAX = 2_000
"""Subscriptions that are restored at a time, some milliseconds."""
_DEVICES_MAX = 100
"""Devices that are detached at a time, some milliseconds."""
_MOVED_PER_S = 300
"""Devices that move to each other node per second: so many say hello there beside its other work."""
_STEP_S = 0.01
"""Interval of steps, each of which looks at all slots: records arrive many at once."""
_LOOK_S = 0.1
"""How soon devices that have sent nothing are notified of a lag."""


class SlotKeeper:
    """Keeps the slots of a node.

    Parameters
    ----------
    log
        The log of objects.
    registry
        The records that all nodes share.
    node
        This node.
    command_loop
        It has the sessions.
    can_read_source, can_write_sink
        Whether this node has the source, and the sink, of the cluster.
    """

    def __init__(
        self,
        log: Log,
        registry: Registry,
        node: Node,
        command_loop: ReplicatedCommandLoop,
        *,
        can_read_source: bool = False,
        can_write_sink: bool = False,
    ) -> None:
        self._registry = registry
        self._node = node
        self._can_read_source, self._can_write_sink = can_read_source, can_write_sink
        self._command_loop = command_loop
        self._coordinator = command_loop.coordinator
        self._ownership = Ownership(node)
        self._state = NodeState.READY
        self._changed = asyncio.Event()
        self._lease = OwnLease(registry, node, self._content)
        self.placement = ClusterPlacement(log, node, self._ownership, self._lease, command_loop)
        self._has_failed = False
        self._tasks: asyncio.TaskGroup | None = None

    # -- tasks -----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Keep the slots, until cancelled.

        Raises
        ------
        LogError
            If another node has the address of this one, or a record cannot be read.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                tasks.create_task(self._watch())
                tasks.create_task(self._lease.renew())
                tasks.create_task(self._step())
                tasks.create_task(self._guard())
                tasks.create_task(self._notify())
        except ExceptionGroup as errors:
            self._has_failed = True
            raise errors.exceptions[0] from None

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Let a coroutine run beside the tasks; if these end, it has no purpose any more."""
        assert self._tasks is not None  # noqa: S101 - for the type checker
        try:
            self._tasks.create_task(coroutine)
        except RuntimeError:  # they have ended, or are about to
            coroutine.close()

    async def _watch(self) -> None:
        async for record in self._registry.watch():
            match record:
                case OwnerRead(slot, owned):
                    self._read_owner(slot, owned)
                case LeaseRead():
                    self._read_lease(record)
            self._changed.set()

    def _read_owner(self, slot: int, owned: Owned) -> None:
        """Read the owner of a slot; if it is a later one than this node, nothing is promised any more."""
        sequence = self.placement.sequence(slot)
        if sequence is not None and owned.sequence > sequence:
            self.placement.end(slot)
        self._ownership.read_owner(slot, owned)
        self.placement.wake(slot)

    def _read_lease(self, record: LeaseRead) -> None:
        if record.address == self._node.address:
            self._lease.read(record)
        self.placement.read_lease(record.address)
        if record.lease is None:
            self._ownership.read_end(record.address)
        else:
            self._ownership.read_lease(record.lease)

    def _content(self) -> Lease:
        stored = self._command_loop.applier.stored_offset
        return Lease(
            self._node,
            self._state,
            stored,
            has_source=self._can_read_source,
            has_sink=self._can_write_sink,
            weights=self._coordinator.matching.generation - self._coordinator.matching.is_reweighing,
        )

    async def _step(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            steps = self._ownership.steps()
            if steps.lost:
                self._spawn(self._drop(steps.lost))
            if steps.release:
                self._spawn(self._release(steps.release))
            if steps.take:
                self.placement.move()
            for some in _portions(steps.take):
                self._spawn(self._take(some))
            await asyncio.sleep(_STEP_S)

    async def _guard(self) -> None:
        """Give up the slots of a node that does not reach the log any more.

        A node that reaches no server for as long as a lease takes has lost the log. Until then it may be
        about to connect to another server.
        """
        connected_s = time.monotonic()
        while True:
            await asyncio.sleep(RENEW_S)
            now_s = time.monotonic()
            if self._registry.is_connected:
                connected_s = now_s
            is_reached = now_s < connected_s + LEASE_S
            limit_s = GIVE_UP_S if is_reached else LEASE_S
            served = self.placement.served()
            if served and self._lease.age_s > limit_s:
                _log.warning("the devices of %d slots are detached: no lease", len(served))
                await self._give_up(served)

    async def _notify(self) -> None:
        """Notify devices of a lag, and of its end."""
        while True:
            self.placement.lag.look()
            self.placement.lag.end()
            await asyncio.sleep(_LOOK_S)

    # -- steps -----------------------------------------------------------------------------------

    async def _take(self, slots: Mapping[int, int]) -> None:
        """Write the owner of slots, and read their subscriptions; without a lease, wait for it first."""
        await self._lease.renewed()
        taken = await self._set_owners(slots, self._node)
        if taken:
            found = await self._registry.read(list(taken), max(taken.values()))
            await self._drop(taken)  # of those that this node takes again
            for rows in _slices(found.subscriptions):
                await self._command_loop.in_turn(partial(self._restore, rows), len(rows))
            self._remember(taken, found)
        for slot, sequence in taken.items():
            if self._ownership.took(slot, sequence):
                self.placement.serve(slot, sequence)
        self._changed.set()

    def _restore(self, rows: list[StoredSubscription]) -> None:
        try:
            self._coordinator.restore_subscriptions(columns_of(rows))
        except StoreError as error:
            raise LogError(f"subscriptions of the cluster cannot be restored: {error}") from error

    def _remember(self, slots: Iterable[int], found: SlotRecords) -> None:
        """Take over when the devices of slots were last seen."""
        devices: dict[int, set[str]] = {slot: set() for slot in slots}
        for one in found.subscriptions:
            devices[slot_of(one.device_id)].add(one.device_id)
        seen: dict[int, list[LastSeen]] = {slot: [] for slot in devices}
        for record in found.seen:
            seen[slot_of(record.device_id)].append(record)
        for slot, some in devices.items():
            self._coordinator.last_seen.take(slot, seen[slot], some, self._coordinator.log_ms)

    async def _release(self, slots: Mapping[int, int]) -> None:
        """Release slots, then detach their devices; not more devices than other nodes can greet.

        A device that arrives at the next owner waits there, as no other node has the slot any more.
        """
        next_owners = {self._ownership.next_owner(slot) for slot in slots}
        for some in self._some_devices(slots):
            attached_count = sum(map(self._attached_count, some))
            await asyncio.sleep(attached_count / (_MOVED_PER_S * len(next_owners)))
            released = await self._set_owners({slot: slots[slot] for slot in some}, None)
            await self._drop(some)
            for slot in released:
                self._ownership.released(slot)
            self._changed.set()

    async def _give_up(self, slots: Collection[int]) -> None:
        """Detach the devices of slots, of which this node does not know enough; then take them again."""
        held = {slot: self._ownership.held().get(slot) for slot in slots}
        await self._drop(slots)
        for slot, sequence in held.items():
            if sequence is not None and self._ownership.held().get(slot) == sequence:
                self._ownership.failed(slot)  # and has not been lost, nor taken again, meanwhile
        self._changed.set()

    async def _set_owners(self, slots: Mapping[int, int], node: Node | None) -> dict[int, int]:
        """Set the owner of slots; return the sequences of those for which it was possible."""
        outcomes = await asyncio.gather(
            *(self._registry.set_owner(slot, node, expected) for slot, expected in slots.items()),
            return_exceptions=True,
        )
        found = {}
        for (slot, expected), outcome in zip(slots.items(), outcomes, strict=True):
            if isinstance(outcome, int):
                found[slot] = outcome
            elif isinstance(outcome, LogConflictError):
                self._ownership.refused(slot, expected)
            elif isinstance(outcome, LogUnavailableError):
                self._ownership.failed(slot)
            else:
                raise outcome
        return found

    async def _drop(self, slots: Collection[int]) -> None:
        """Remove the devices of slots from this node; those that are attached go to another one."""
        for slot in slots:
            self.placement.end(slot)
        drops = [partial(self._drop_now, some) for some in self._some_devices(slots)]
        await asyncio.gather(*map(self._command_loop.in_turn, drops))  # all before what comes later

    def _drop_now(self, slots: Iterable[int]) -> None:
        for slot in slots:
            self._coordinator.drop_slot(slot, self.placement.refusal(slot))

    def _attached_count(self, slot: int) -> int:
        sessions = self._coordinator.sessions
        return sum(sessions[device_id].is_attached for device_id in sessions.of_slot(slot))

    def _some_devices(self, slots: Iterable[int]) -> Iterator[list[int]]:
        """Yield portions of slots that have about `_DEVICES_MAX` devices, at least one slot each."""
        some: list[int] = []
        count = 0
        for slot in slots:
            some.append(slot)
            count += len(self._coordinator.sessions.of_slot(slot))
            if count >= _DEVICES_MAX:
                yield some
                some, count = [], 0
        if some:
            yield some

    # -- subscriptions ---------------------------------------------------------------------------

    async def write(self, changes: Mapping[int, Changes]) -> dict[int, RefusedError]:
        """Make changes of subscriptions durable; return why those of a slot are not, by slot."""
        outcomes = await asyncio.gather(*(self._write(slot, some) for slot, some in changes.items()))
        return {
            slot: outcome for slot, outcome in zip(changes, outcomes, strict=True) if outcome is not None
        }

    async def _write(self, slot: int, changes: Changes) -> RefusedError | None:
        sequence = self.placement.sequence(slot)
        if sequence is None:
            return self.placement.refusal(slot)
        try:
            await self._registry.write(slot, changes, sequence)
        except LogConflictError:
            self.placement.end(slot, sequence)  # its new owner is about to be read
            return self.placement.refusal(slot)
        except LogUnavailableError as error:
            _log.warning("changes of %d records are not acknowledged: %s", len(changes), error)
            is_unknown = any(number != SEEN for _, number in changes)
            if is_unknown and self.placement.end(slot, sequence):  # unless it was taken again since
                self._spawn(self._give_up([slot]))
            return without_server()
        return None

    # -- the end ---------------------------------------------------------------------------------

    async def hand_over(self, patience_s: float) -> None:
        """Let other nodes take all slots, if there are any, until none has moved for some seconds."""
        self._state = NodeState.DRAINING
        if self._has_failed:
            return
        remaining, end_s = self.placement.served_count, time.monotonic() + patience_s
        while remaining and time.monotonic() < end_s and self._ownership.ready() - {self._node.address}:
            await asyncio.sleep(_LOOK_S)
            if self.placement.served_count < remaining:
                remaining, end_s = self.placement.served_count, time.monotonic() + patience_s

    async def end(self) -> None:
        """Delete the lease, after the tasks have ended."""
        await self._lease.end()


def _portions(slots: Mapping[int, int]) -> Iterable[Mapping[int, int]]:
    remaining = iter(slots.items())
    while some := dict(islice(remaining, SLOTS_MAX)):
        yield some


def _slices(rows: list[StoredSubscription]) -> Iterable[list[StoredSubscription]]:
    """Yield slices of subscriptions; those of a device are together."""
    some: list[StoredSubscription] = []
    for row in rows:
        if len(some) >= _ROWS_MAX and row.device_id != some[-1].device_id:
            yield some
            some = []
        some.append(row)
    if some:
        yield some
