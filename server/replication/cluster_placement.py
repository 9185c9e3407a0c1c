"""Where devices are served, as this node knows it: the slots that it serves, and the nodes of the others.

`cluster.ownership` knows who owns slots. A slot is served when its owner has read its subscriptions.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Collection

from cluster.entries import SECOND_RULES
from cluster.log import Log, LogError, LogStream
from cluster.ownership import Lease, Node, Ownership
from cluster.slots import slot_of
from nearcast.errors import Reason, RefusedError
from server.core.placement import ClusterNode
from server.replication.command_loop import ReplicatedCommandLoop
from server.replication.lag import LagNotice
from server.replication.log_clock import LEAD_MS_MAX
from server.replication.own_lease import RENEW_S, OwnLease
from server.session import State

_HELLO_WAIT_S = 3.0
"""How long a hello waits for an owner of its slot. The SDK expects a response in four seconds."""
_RETRY_MS = 500


class ClusterPlacement:
    """Where devices are served.

    Parameters
    ----------
    log
        The log of objects.
    node
        This node.
    ownership
        The owners of slots, and the leases of nodes.
    lease
        That of this node.
    command_loop
        It has the sessions.
    """

    def __init__(
        self,
        log: Log,
        node: Node,
        ownership: Ownership,
        lease: OwnLease,
        command_loop: ReplicatedCommandLoop,
    ) -> None:
        self._log = log
        self._node = node
        self._ownership = ownership
        self._lease = lease
        self._command_loop = command_loop
        self._coordinator = command_loop.coordinator
        self._served: dict[int, int] = {}
        """The slots that are served, with the sequence of the record of their owner."""
        self._waiting: dict[int, asyncio.Event] = {}
        """By slot: set when its owner may have changed."""
        self._lease_read_s: dict[str, float] = {}
        """By address: when the latest lease of a node was read."""
        self._moved_s = time.monotonic()
        """When the owner of any slot changed last; long after that, no hello waits for another owner."""
        self.lag = self._coordinator.lag = LagNotice(
            self.is_current,
            lambda: command_loop.applier.offset,
            self._coordinator.sessions.made,
            lambda device_id: slot_of(device_id) in self._served,
        )

    # -- slots -----------------------------------------------------------------------------------

    @property
    def served_count(self) -> int:
        """The number of slots that this node serves."""
        return len(self._served)

    def served(self) -> Collection[int]:
        """Return the slots that this node serves."""
        return list(self._served)

    def sequence(self, slot: int) -> int | None:
        """Return the sequence of the record by which this node serves a slot; None if it does not."""
        return self._served.get(slot)

    def serve(self, slot: int, sequence: int) -> None:
        """Serve a slot from now on."""
        self._served[slot] = sequence
        self.wake(slot)

    def end(self, slot: int, sequence: int | None = None) -> bool:
        """Serve a slot no more; with a sequence, only by this record. Return whether it was served."""
        served = self._served.get(slot)
        if served is None or sequence not in (None, served):
            return False
        del self._served[slot]
        return True

    def wake(self, slot: int) -> None:
        """Let hellos look again that wait for the owner of a slot."""
        self.move()
        event = self._waiting.pop(slot, None)
        if event is not None:
            event.set()

    def move(self) -> None:
        """Record that owners of slots change now: hellos wait for them."""
        self._moved_s = time.monotonic()

    def read_lease(self, address: str) -> None:
        """Record that a lease was read now."""
        self._lease_read_s[address] = time.monotonic()

    # -- devices ---------------------------------------------------------------------------------

    async def settled(self, device_id: str) -> None:
        """Wait until a node serves a device; see `Placement.settled`."""
        slot, began_s = slot_of(device_id), time.monotonic()
        end_s = min(began_s, self._moved_s) + _HELLO_WAIT_S
        while not self._is_settled(slot):
            if self._other(slot) is not None:  # that is doubtful: its slots may be taken soon
                end_s = began_s + _HELLO_WAIT_S
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
            raise without_server() if other is None else another_server(other.address)
        if for_certain and not self._lease.is_valid:
            raise without_server()

    def _other(self, slot: int) -> Node | None:
        """Return the other node that serves a slot; None for none."""
        owner = self._ownership.owner(slot)
        return None if owner == self._node else owner

    def refusal(self, slot: int) -> RefusedError:
        """Return why a device of a slot is detached: its next server, or none yet."""
        address = self._ownership.next_owner(slot)
        return without_server() if address in ("", self._node.address) else another_server(address)

    def is_current(self) -> bool:
        """Return whether the results of this node are exact, as far as it knows."""
        if not self._lease.is_valid:
            return False
        return self._coordinator.clock.is_virtual or self._command_loop.log_clock.lead_ms() <= LEAD_MS_MAX

    # -- nodes -----------------------------------------------------------------------------------

    def nodes(self) -> list[ClusterNode]:
        """Return the nodes; see `Placement.nodes`."""
        counts, own, now_s = self._ownership.counts(), self._node.address, time.monotonic()
        return [
            ClusterNode(
                lease.node.address,
                lease.state,
                counts[lease.node.address],
                lease.node.address == own,
                int(1_000 * (now_s - self._lease_read_s[lease.node.address])),
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
        applier = self._command_loop.applier
        return {
            "cluster_nodes": len(self._ownership.leases()),
            "cluster_slots": len(self._served),
            "cluster_lease_valid": int(self._lease.is_valid),
            "cluster_rules": applier.rules,
            "cluster_source": int(self.reads_source),
            "cluster_sink": int(self.writes_sink),
            "cluster_log_offset": applier.offset,
            "cluster_stored_offset": applier.stored_offset,
            "cluster_log_lag_ms": max(0, self._command_loop.log_clock.lead_ms()),
            "cluster_devices_lagging": self._lagging_count(),
        }

    def _lagging_count(self) -> int:
        """Return the number of attached devices that are notified of a lag."""
        devices = self._coordinator.counters.devices
        return devices[State.IN_SYNC] + devices[State.CATCHING_UP] if self.lag.offset else 0


def another_server(address: str) -> RefusedError:
    """Return the refusal of a device that another server serves."""
    return RefusedError(
        Reason.ANOTHER_SERVER,
        "device",
        "served by another server",
        f"sent to {address}",
        server=address,
    )


def without_server() -> RefusedError:
    """Return the refusal of a device that no server serves for certain."""
    return RefusedError(
        Reason.RECOVERING,
        "device",
        "served by no server now",
        "served by a server of the cluster; try again",
        retry_after_ms=_RETRY_MS,
    )
