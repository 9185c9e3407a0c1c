"""The slots of a node: takes them, serves their devices, and releases them.

`cluster.ownership` decides; this does it: it writes owners, reads the subscriptions of slots that it has
taken, and detaches the devices of slots that it has lost. The command loop changes the sessions, in turn
with commands of devices.

Cost: to take a slot, one append and one read for up to 128 slots.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Collection, Coroutine, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any

from cluster.entries import SECOND_RULES
from cluster.log import Log, LogConflictError, LogError, LogStream, LogUnavailableError
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
from nearcast.errors import Reason, RefusedError
from server.core import placement
from server.core.placement import ClusterNode
from server.errors import StoreError
from server.replication.command_loop import ReplicatedCommandLoop
from server.replication.device_changes import columns_of
from server.replication.lag import LagNotice
from server.replication.log_clock import LEAD_MS_MAX
from server.replication.own_lease import LEASE_S, RENEW_S, OwnLease
from server.session import State

_log = logging.getLogger(__name__)

GIVE_UP_S = 30.0
"""A node that reaches a server of the log keeps its devices for this time without a lease: an election of
the log's leader is shorter."""
SETTLE_S = 3.0
"""How long a hello waits for an owner of its slot. The SDK expects a response in four seconds."""
_ROWS_MAX = 2_000
"""Subscriptions that are restored at a time, some milliseconds."""
_DEVICES_MAX = 100
"""Devices that are detached at a time, some milliseconds."""
_MOVED_PER_S = 300
"""Devices that move to each other node per second: so many say hello there beside its other work."""
_STEP_S = 0.01
"""Interval of steps, each of which looks at all slots: records arrive many at once."""
_RETRY_MS = 500
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
        self._log = log
        self._registry = registry
        self._node = node
        self._can_read_source, self._can_write_sink = can_read_source, can_write_sink
        self._command_loop = command_loop
        self._coordinator = command_loop.coordinator
        self._ownership = Ownership(node)
        self._state = NodeState.READY
        self._served: dict[int, int] = {}
        """The slots that are served, with the sequence of the record of their owner."""
        self._waiting: dict[int, asyncio.Event] = {}
        """By slot: set when its owner may have changed."""
        self._changed = asyncio.Event()
        self._lease = OwnLease(registry, node, self._content)
        self._read_s: dict[str, float] = {}
        """By address: when the latest lease of a node was read."""
        self._moved_s = time.monotonic()
        """When the owner of any slot changed last; long after that, no hello waits for another owner."""
        self._has_failed = False
        self._lag = self._coordinator.lag = LagNotice(
            self.is_current,
            lambda: command_loop.applier.offset,
            self._coordinator.sessions.made,
            self._serves,
        )
        self._tasks: asyncio.TaskGroup | None = None

    # -- where devices are -----------------------------------------------------------------------

    async def settled(self, device_id: str) -> None:
        """Wait until a node serves a device; see `Placement.settled`."""
        slot, began_s = slot_of(device_id), time.monotonic()
        end_s = min(began_s, self._moved_s) + SETTLE_S
        while not self._is_settled(slot):
            if self._other(slot) is not None:  # that is doubtful: its slots may be taken soon
                end_s = began_s + SETTLE_S
            rest_s = min(end_s - time.monotonic(), RENEW_S)
            if rest_s <= 0.0:
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(rest_s):
                    await self._waiting.setdefault(slot, asyncio.Event()).wait()

    def is_settled(self, device_id: str) -> bool:
        """Return whether a node serves a device; see `Placement.is_settled`."""
        return self._is_settled(slot_of(device_id))

    def _is_settled(self, slot: int) -> bool:
        if slot in self._served:
            return True
        other = self._other(slot)
        return other is not None and not self._ownership.is_doubtful(other)

    def require(self, device_id: str, *, for_certain: bool = False) -> None:
        """Require that this node serves a device; see `Placement.require`."""
        slot = slot_of(device_id)
        if slot not in self._served:
            other = self._other(slot)
            raise _without_owner() if other is None else another_server(other.address)
        if for_certain and not self._lease.is_valid:
            raise _without_owner()

    def _other(self, slot: int) -> Node | None:
        """Return the other node that serves a slot; None for none."""
        owner = self._ownership.owner(slot)
        return None if owner == self._node else owner

    def _wake(self, slot: int) -> None:
        self._moved_s = time.monotonic()
        event = self._waiting.pop(slot, None)
        if event is not None:
            event.set()

    def nodes(self) -> list[ClusterNode]:
        """Return the nodes; see `Placement.nodes`."""
        counts, own, now_s = self._ownership.counts(), self._node.address, time.monotonic()
        return [
            ClusterNode(
                lease.node.address,
                placement.NodeState(lease.state),
                counts[lease.node.address],
                lease.node.address == own,
                int(1_000 * (now_s - self._read_s[lease.node.address])),
                lease.rules,
            )
            for lease in self._ownership.leases()
        ]

    def leases(self) -> list[Lease]:
        """Return the leases of the nodes that are there, by address."""
        return self._ownership.leases()

    async def log_streams(self) -> list[LogStream]:
        """Return the streams of the log; see `Placement.log_streams`."""
        try:
            return await self._log.streams()
        except LogError:
            return []

    def known_rules(self) -> int:
        """Return the latest rules of applying that all nodes know, if this one is the first; else 0."""
        return min((lease.rules for lease in self._leases_of_first()), default=0)

    def known_weights(self) -> int:
        """Return the latest weights that all nodes have in force, if this one is the first; else -1."""
        return min((lease.weights for lease in self._leases_of_first()), default=-1)

    def _leases_of_first(self) -> list[Lease]:
        """Return all leases if this node is the first by address, and knows them; else none."""
        leases = self._ownership.leases()
        is_first = self._ownership.knows_all and bool(leases) and leases[0].node == self._node
        return leases if is_first else []

    @property
    def reads_source(self) -> bool:
        """Whether this node is to run the source now."""
        return self._runs(self._ownership.source_node())

    @property
    def writes_sink(self) -> bool:
        """Whether this node is to write to the sink now."""
        return self._runs(self._ownership.sink_node())

    def _runs(self, node: Node | None) -> bool:
        """Return whether this node is one, with a lease, and all nodes know what sharing it takes."""
        is_known = self._command_loop.applier.rules >= SECOND_RULES
        return node == self._node and self._lease.is_valid and is_known

    def gauges(self) -> dict[str, int]:
        """Return quantities; see `Placement.gauges`."""
        return {
            "cluster_nodes": len(self._ownership.leases()),
            "cluster_slots": len(self._served),
            "cluster_lease_valid": int(self._lease.is_valid),
            "cluster_rules": self._command_loop.applier.rules,
            "cluster_source": int(self.reads_source),
            "cluster_sink": int(self.writes_sink),
            "cluster_log_offset": self._command_loop.applier.offset,
            "cluster_stored_offset": self._command_loop.applier.stored_offset,
            "cluster_log_lag_ms": max(0, self._command_loop.log_clock.lead_ms()),
            "cluster_devices_lagging": self._lagging_count(),
        }

    def _lagging_count(self) -> int:
        """Return the number of attached devices that are notified of a lag."""
        devices = self._coordinator.counters.devices
        return devices[State.IN_SYNC] + devices[State.CATCHING_UP] if self._lag.offset else 0

    @property
    def served_count(self) -> int:
        """The number of slots that this node serves."""
        return len(self._served)

    def is_current(self) -> bool:
        """Return whether the results of this node are exact, as far as it knows."""
        if not self._lease.is_valid:
            return False
        return self._coordinator.clock.is_virtual or self._command_loop.log_clock.lead_ms() <= LEAD_MS_MAX

    def _serves(self, device_id: str) -> bool:
        return slot_of(device_id) in self._served

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
        if owned.sequence > self._served.get(slot, owned.sequence):
            del self._served[slot]
        self._ownership.read_owner(slot, owned)
        self._wake(slot)

    def _read_lease(self, record: LeaseRead) -> None:
        if record.address == self._node.address:
            self._lease.read(record)
        self._read_s[record.address] = time.monotonic()
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
                self._moved_s = time.monotonic()
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
            if self._served and now_s - self._lease.renewed_s > limit_s:
                _log.warning("the devices of %d slots are detached: no lease", len(self._served))
                await self._give_up(list(self._served))

    async def _notify(self) -> None:
        """Notify devices of a lag, and of its end."""
        while True:
            self._lag.look()
            self._lag.end()
            await asyncio.sleep(_LOOK_S)

    # -- steps -----------------------------------------------------------------------------------

    async def _take(self, slots: Mapping[int, int]) -> None:
        """Write the owner of slots, and read their subscriptions."""
        taken = await self._set_owners(slots, self._node)
        if taken:
            found = await self._registry.read(list(taken), max(taken.values()))
            await self._drop(taken)  # of those that this node takes again
            for rows in _slices(found.subscriptions):
                await self._command_loop.in_turn(partial(self._restore, rows), len(rows))
            self._remember(taken, found)
        for slot, sequence in taken.items():
            if self._ownership.took(slot, sequence):
                self._served[slot] = sequence
                self._wake(slot)
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
            self._served.pop(slot, None)
        drops = [partial(self._drop_now, some) for some in self._some_devices(slots)]
        await asyncio.gather(*map(self._command_loop.in_turn, drops))  # all before what comes later

    def _drop_now(self, slots: Iterable[int]) -> None:
        for slot in slots:
            self._coordinator.drop_slot(slot, self._moved(slot))

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

    def _moved(self, slot: int) -> RefusedError:
        """Return why a device of a slot is detached."""
        address = self._ownership.next_owner(slot)
        return _without_owner() if address in ("", self._node.address) else another_server(address)

    # -- subscriptions ---------------------------------------------------------------------------

    async def write(self, changes: Mapping[int, Changes]) -> dict[int, RefusedError]:
        """Make changes of subscriptions durable; return why those of a slot are not, by slot."""
        outcomes = await asyncio.gather(*(self._write(slot, some) for slot, some in changes.items()))
        return {
            slot: outcome for slot, outcome in zip(changes, outcomes, strict=True) if outcome is not None
        }

    async def _write(self, slot: int, changes: Changes) -> RefusedError | None:
        sequence = self._served.get(slot)
        if sequence is None:
            return self._moved(slot)
        try:
            await self._registry.write(slot, changes, sequence)
        except LogConflictError:
            self._stop_serving(slot, sequence)  # its new owner is about to be read
            return self._moved(slot)
        except LogUnavailableError as error:
            _log.warning("changes of %d records are not acknowledged: %s", len(changes), error)
            is_unknown = any(number != SEEN for _, number in changes)
            if is_unknown and self._stop_serving(slot, sequence):
                self._spawn(self._give_up([slot]))
            return _without_owner()
        return None

    def _stop_serving(self, slot: int, sequence: int) -> bool:
        """Stop serving a slot, unless this node has taken it again since; return whether it did."""
        if self._served.get(slot) != sequence:
            return False
        del self._served[slot]
        return True

    # -- the end ---------------------------------------------------------------------------------

    async def hand_over(self, patience_s: float) -> None:
        """Let other nodes take all slots, if there are any, until none has moved for some seconds."""
        self._state = NodeState.DRAINING
        if self._has_failed:
            return
        remaining, end_s = len(self._served), time.monotonic() + patience_s
        while remaining and time.monotonic() < end_s and self._ownership.ready() - {self._node.address}:
            await asyncio.sleep(_LOOK_S)
            if len(self._served) < remaining:
                remaining, end_s = len(self._served), time.monotonic() + patience_s

    async def end(self) -> None:
        """Delete the lease, after the tasks have ended."""
        await self._lease.end()


def another_server(address: str) -> RefusedError:
    """Return the refusal of a device that another server serves."""
    return RefusedError(
        Reason.ANOTHER_SERVER,
        "device",
        "served by another server",
        f"sent to {address}",
        server=address,
    )


def _without_owner() -> RefusedError:
    return RefusedError(
        Reason.RECOVERING,
        "device",
        "served by no server now",
        "served by a server of the cluster; try again",
        retry_after_ms=_RETRY_MS,
    )


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
