"""The contracts of the registry (nodes, the owners and the subscriptions of slots) and of shared records.

Records have one order for all readers. Everything that is written for a slot has the condition that the
record of its owner is still the one of the writer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from cluster.entries import Entry
from cluster.ownership import Lease, Node, Owned

SLOTS_MAX = 128
"""Slots that are read together."""


@dataclass(frozen=True, slots=True)
class StoredSubscription:
    """A subscription of a device."""

    device_id: str
    subscription_id: int
    kind: int
    spec: str
    """JSON, which only its kind reads."""
    name: str = ""
    """Unique among the device's subscriptions; empty for none."""


@dataclass(frozen=True, slots=True)
class LastSeen:
    """When a device was last seen, coarsely."""

    device_id: str
    time_ms: int
    """By the time of the log."""


SEEN = 0
"""The number of the record `LastSeen` of a device; subscriptions have numbers from 1."""


class SlotRecords(NamedTuple):
    """The records of some slots."""

    subscriptions: list[StoredSubscription]
    """By device and number."""
    seen: list[LastSeen]


class LeaseRead(NamedTuple):
    """A node has renewed its lease, or has ended."""

    address: str
    lease: Lease | None
    sequence: int


class OwnerRead(NamedTuple):
    """A slot has got an owner, or was released."""

    slot: int
    owned: Owned


Changes = Mapping[tuple[str, int], StoredSubscription | LastSeen | None]
"""Records by device and number; None for one that is deleted."""


class Registry(Protocol):
    """What all nodes share beside the log of objects."""

    @property
    def is_connected(self) -> bool:
        """Whether a server can be reached, which may be one that cannot accept anything now."""

    async def renew(self, lease: Lease, expected: int) -> int:
        """Renew the lease of a node, if its latest record has a sequence; return that of the new one.

        Raises
        ------
        LogConflictError
            If the latest record is another one.
        LogUnavailableError
            If there was no response in time.
        """

    async def end(self, address: str, expected: int) -> None:
        """Delete the lease of a node; see `renew`."""

    async def set_owner(self, slot: int, node: Node | None, expected: int) -> int:
        """Set the owner of a slot, None to release it; see `renew`."""

    async def write(self, slot: int, changes: Changes, sequence: int) -> None:
        """Change records of a slot, all or none, for the owner whose record has a sequence.

        Raises
        ------
        LogConflictError
            If it is not the owner: nothing has changed.
        LogUnavailableError
            If it is not known what has changed.
        """

    async def read(self, slots: Sequence[int], until: int) -> SlotRecords:
        """Return the records of at most `SLOTS_MAX` slots.

        Parameters
        ----------
        slots
            The slots.
        until
            The largest sequence of their owners.
        """

    def watch(self) -> AsyncIterator[LeaseRead | OwnerRead]:
        """Yield the latest records of all leases and owners, then each further one, in order."""


class SharedRecords(Protocol):
    """What a node reads when it starts, from the same place as the registry.

    Raises
    ------
    LogError
        Every operation raises it, if the log does not respond or this version cannot read a record.
    """

    async def founding(self) -> Entry | None:
        """Return the first entry of the log, which the log deletes some day; None if it is not here."""

    async def set_founding(self, entry: Entry) -> None:
        """Keep the first entry of the log."""

    async def key(self) -> bytes:
        """Return a secret by which nodes know each other. The first node makes it.

        Whoever may read the records has it, and could read the log as well.
        """

    async def leases(self) -> list[Lease]:
        """Return the latest lease of each node, which may have ended long ago."""
