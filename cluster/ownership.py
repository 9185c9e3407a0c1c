"""Ownership: which node serves which slot, decided by every node for itself. Pure: no clock, no I/O.

All nodes read the records of one stream in the same order: a lease of each node, renewed twice a second,
and an owner of each slot. A node measures the others by its own renewals: another one is gone when this
one has read `MISSED_MAX` of its own since the last one of the other. So a stream that stands still, for
an election or because this node reads late, lets nobody expire.

A node takes a slot by writing its owner, on condition that the record is still the one that it has read.
What is written for the slot afterwards has the condition that this record is still the latest
(`cluster/keys.py`): a node that has lost a slot without knowing cannot write. Leases decide only when a
node may try.

Cost: O(slots) per step after a change of nodes or owners, else O(1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from cluster.entries import RULES
from cluster.slots import SLOTS, preferred

MISSED_MAX = 4
"""Renewals of a node after which another one, that has sent none meanwhile, is gone."""

DOUBTED_MISSED = 2
"""Renewals of a node after which another one, that has sent none meanwhile, may be gone."""

PORTION = 32
"""Slots that are under way between nodes at a time: their devices are not served meanwhile."""


class NodeState(IntEnum):
    """What a node can do. The numbers equal those on the wire."""

    JOINING = 1
    """It applies the log, and serves no slot yet. No node of this version shows this state."""
    READY = 2
    DRAINING = 3
    """It serves slots until other nodes take them."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node, from its start to its end."""

    address: str
    """Where devices reach it, as host:port; unique."""
    incarnation: bytes
    """Random: a node that has restarted is another one."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A record of a node that is there."""

    node: Node
    state: NodeState
    stored_offset: int = field(default=0, compare=False)
    """The offset up to which the store of the node has the log on its disk."""
    rules: int = field(default=RULES, kw_only=True)
    """The latest rules of applying the log that the node knows."""
    has_source: bool = field(default=False, kw_only=True)
    """Whether the node can read the source."""
    has_sink: bool = field(default=False, kw_only=True)
    """Whether the node can write to the sink."""
    weights: int = field(default=0, compare=False, kw_only=True)
    """The generation of the weights that the node has in force."""


class Owned(NamedTuple):
    """The latest record of the owner of a slot."""

    node: Node | None
    """None for a slot that its last owner has released."""
    sequence: int
    """That of the record; 0 if there is none."""


FREE = Owned(None, 0)
"""The owner of a slot that nobody has ever owned."""


class Steps(NamedTuple):
    """What a node has to do now."""

    take: Mapping[int, int]
    """Slots to take, with the sequence that the record of their owner must have."""
    release: Mapping[int, int]
    """Slots to release for others, the same."""
    lost: tuple[int, ...]
    """Slots that another node has taken."""


_NOTHING = Steps({}, {}, ())


class Ownership:
    """What a node knows of nodes and slots. Records are to be read in the order of the stream.

    Parameters
    ----------
    node
        This node.
    slots
        Number of slots.
    """

    def __init__(self, node: Node, slots: int = SLOTS) -> None:
        self._node = node
        self._slots = range(slots)
        self._leases: dict[str, Lease] = {}
        self._missed: dict[str, int] = {}
        """By address: own renewals since the last one of a node."""
        self._owners: list[Owned] = [FREE] * slots
        self._held: dict[int, int] = {}
        """Slots that this node has taken, with the sequence of its record."""
        self._taking: set[int] = set()
        """Slots of which this node writes itself as the owner."""
        self._releasing: set[int] = set()
        """Slots of which this node writes that nobody owns them."""
        self._refused: dict[int, int] = {}
        """Slots that another node was about to take, with the sequence of the record before."""
        self._renewals = 0
        """Own leases that were read since the start; before `MISSED_MAX`, leases may be unread."""
        self._preferred: dict[frozenset[str], list[str]] = {}
        self._is_changed = True

    # -- records ---------------------------------------------------------------------------------

    def read_lease(self, lease: Lease) -> None:
        """Read a lease that a node has renewed."""
        address = lease.node.address
        if lease.node == self._node:
            self._renewals += 1
            self._is_changed |= self._renewals == MISSED_MAX
            for other in self._missed:
                self._missed[other] += 1
                self._is_changed |= self._missed[other] == MISSED_MAX
        is_back = self._missed.get(address, MISSED_MAX) >= MISSED_MAX
        self._is_changed |= is_back or self._leases.get(address) != lease
        self._missed[address] = 0
        self._leases[address] = lease

    def read_end(self, address: str) -> None:
        """Read that a node has ended."""
        self._leases.pop(address, None)
        self._missed.pop(address, None)
        self._is_changed = True

    def read_owner(self, slot: int, owned: Owned) -> None:
        """Read the owner of a slot."""
        self._owners[slot] = owned
        self._is_changed = True

    # -- steps of this node ----------------------------------------------------------------------

    def steps(self) -> Steps:
        """Return what to do. Every slot to take or to release is then pending, until its outcome."""
        if not self._is_changed:
            return _NOTHING
        self._is_changed = False
        lost = tuple(slot for slot, sequence in self._held.items() if self._is_lost(slot, sequence))
        for slot in lost:
            del self._held[slot]
        take, release = self._to_take(), self._to_release()
        self._taking.update(take)
        self._releasing.update(release)
        return Steps(take, release, lost)

    def took(self, slot: int, sequence: int) -> bool:
        """Record that this node has taken a slot; return whether no other one has taken it since."""
        self._end(slot)
        self._held[slot] = sequence
        return not self._is_lost(slot, sequence)

    def released(self, slot: int) -> None:
        """Record that this node has released a slot."""
        self._end(slot)

    def refused(self, slot: int, expected: int) -> None:
        """Record that another node was faster: the record of the owner is not the expected one.

        This node tries again when it has read another record.
        """
        self._end(slot)
        self._refused[slot] = expected

    def failed(self, slot: int) -> None:
        """Record that the outcome of a write is not known: this node takes the slot again."""
        self._end(slot)

    def _end(self, slot: int) -> None:
        """Record that this node writes the owner of a slot no more, and does not have it."""
        self._taking.discard(slot)
        self._releasing.discard(slot)
        self._held.pop(slot, None)
        self._is_changed = True

    def _is_lost(self, slot: int, sequence: int) -> bool:
        return self._owners[slot].sequence > sequence

    def _to_take(self) -> dict[int, int]:
        """Return slots to take, many at once: none while others are being taken."""
        own = self._node.address
        if self._taking or own not in self.ready():
            return {}
        table = self._table()
        return {
            slot: self._owners[slot].sequence
            for slot in self._slots
            if table[slot] == own
            and slot not in self._held
            and slot not in self._releasing
            and not self._is_refused(slot)
            and self._is_free(slot)
        }

    def _is_free(self, slot: int) -> bool:
        """Return whether nobody serves a slot, as far as this node knows."""
        node = self._owners[slot].node
        return node is None or node == self._node or not self.is_there(node)

    def _is_refused(self, slot: int) -> bool:
        return self._refused.get(slot) == self._owners[slot].sequence

    def _to_release(self) -> dict[int, int]:
        """Return slots to release, many at once: none while others are under way."""
        others = self.ready() - {self._node.address}
        if not others or self._is_moving():
            return {}
        table = self._table()
        found: dict[int, int] = {}
        for slot, owned in enumerate(self._owners):
            if len(found) >= PORTION:
                break
            is_own = slot in self._held or owned.node == self._node
            if is_own and table[slot] in others and not self._is_refused(slot):
                found[slot] = self._held.get(slot, owned.sequence)
        return found

    def _is_moving(self) -> bool:
        """Return whether any slot is under way between nodes, as far as this node knows."""
        is_released = any(owned.node is None and owned.sequence for owned in self._owners)
        return is_released or bool(self._taking or self._releasing)

    def _table(self) -> list[str]:
        """Return the node that each slot prefers."""
        ready = self.ready()
        found = self._preferred.get(ready)
        if found is None:
            found = [preferred(slot, ready) for slot in self._slots]
            self._preferred = {ready: found}
        return found

    # -- what it knows ---------------------------------------------------------------------------

    def is_there(self, node: Node) -> bool:
        """Return whether a node has a lease that has not expired, or may have one."""
        lease = self._leases.get(node.address)
        if lease is None:
            return not self.knows_all
        return lease.node == node and self._missed[node.address] < MISSED_MAX

    def is_doubtful(self, node: Node) -> bool:
        """Return whether a node that is there may be gone."""
        return self._missed.get(node.address, 0) >= DOUBTED_MISSED

    def ready(self) -> frozenset[str]:
        """Return the addresses of the nodes that can take slots."""
        return frozenset(
            lease.node.address
            for lease in self._leases.values()
            if lease.state is NodeState.READY and self.is_there(lease.node)
        )

    @property
    def knows_all(self) -> bool:
        """Whether this node has read the lease of every node that is there."""
        return self._renewals >= MISSED_MAX

    def leases(self) -> list[Lease]:
        """Return the leases of the nodes that are there, by address."""
        there = (lease for lease in self._leases.values() if self.is_there(lease.node))
        return sorted(there, key=lambda lease: lease.node.address)

    def source_node(self) -> Node | None:
        """Return the node that is to read the source; None for none, or before all leases are read.

        That is the first one by address of those that can read it and take slots.
        """
        return self._first(lambda lease: lease.has_source)

    def sink_node(self) -> Node | None:
        """Return the node that is to write to the sink; like `source_node`."""
        return self._first(lambda lease: lease.has_sink)

    def _first(self, is_able: Callable[[Lease], bool]) -> Node | None:
        if not self.knows_all:
            return None
        able = (one.node for one in self.leases() if is_able(one) and one.state is NodeState.READY)
        return next(able, None)

    def owner(self, slot: int) -> Node | None:
        """Return the node that serves a slot, as far as this node knows; None for none."""
        node = self._owners[slot].node
        return node if node is not None and self.is_there(node) else None

    def next_owner(self, slot: int) -> str:
        """Return the address of the node that serves a slot, or will; empty for none."""
        owner = self.owner(slot)
        if owner is not None and owner != self._node:
            return owner.address
        return self._table()[slot]

    def counts(self) -> Counter[str]:
        """Return the numbers of slots, by the address of their owner. O(slots)."""
        return Counter(owned.node.address for owned in self._owners if owned.node is not None)

    def held(self) -> Mapping[int, int]:
        """Return the slots that this node has taken, with the sequences of its records."""
        return self._held

    def check(self) -> None:
        """Verify the bookkeeping. For tests."""
        if not self._missed.keys() == self._leases.keys():
            raise AssertionError("leases and missed renewals disagree")
