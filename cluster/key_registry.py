"""The registry, in keys that all nodes share (`cluster/records.py` has their names)."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence

from cluster import records
from cluster.keys import CHANGES_MAX, Fence, Keys, Record
from cluster.log import LogConflictError, LogUnavailableError
from cluster.ownership import Lease, Node, Owned
from cluster.registry import Changes, LeaseRead, OwnerRead, SlotRecords

_LEASE_S = 3_600
"""After this time the record of a node that has vanished is deleted; it has expired long before."""


class KeyRegistry:
    """A registry.

    Parameters
    ----------
    keys
        The keys.
    """

    def __init__(self, keys: Keys) -> None:
        self._keys = keys

    @property
    def is_connected(self) -> bool:
        """Whether a server can be reached."""
        return self._keys.is_connected

    async def renew(self, lease: Lease, expected: int) -> int:
        """Renew a lease; see `Registry.renew`."""
        key = records.node_key(lease.node.address)
        return await self._keys.put(key, records.encoded_lease(lease), expected, _LEASE_S)

    async def end(self, address: str, expected: int) -> None:
        """Delete a lease; see `Registry.end`."""
        await self._keys.put(records.node_key(address), b"", expected)

    async def set_owner(self, slot: int, node: Node | None, expected: int) -> int:
        """Set the owner of a slot; see `Registry.set_owner`."""
        return await self._keys.put(records.owner_key(slot), records.encoded_owner(node), expected)

    async def write(self, slot: int, changes: Changes, sequence: int) -> None:
        """Change records; see `Registry.write`. A batch has `CHANGES_MAX` of them."""
        fence = Fence(records.owner_key(slot), sequence)
        values = [(records.device_key(*one), records.encoded(found)) for one, found in changes.items()]
        for first in range(0, len(values), CHANGES_MAX):
            try:
                await self._keys.put_all(dict(values[first : first + CHANGES_MAX]), fence)
            except LogConflictError as error:
                if not first:
                    raise
                raise LogUnavailableError("only some changes of a slot were accepted") from error

    async def read(self, slots: Sequence[int], until: int) -> SlotRecords:
        """Return records; see `Registry.read`."""
        found = await self._keys.read([records.pattern_of(slot) for slot in slots], until)
        return records.of_devices(one for one in found if records.slot_of_owner(one.key) is None)

    async def watch(self) -> AsyncIterator[LeaseRead | OwnerRead]:
        """Yield records; see `Registry.watch`."""
        async with contextlib.aclosing(self._keys.watch([records.NODES, records.OWNERS])) as found:
            async for record in found:
                yield _read(record)


def _read(record: Record) -> LeaseRead | OwnerRead:
    slot = records.slot_of_owner(record.key)
    if slot is not None:
        return OwnerRead(slot, Owned(records.owner_from(record.value), record.sequence))
    lease = records.lease_from(record.value) if record.value else None
    return LeaseRead(records.address_of(record.key), lease, record.sequence)
