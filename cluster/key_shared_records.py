"""The shared records, in keys that all nodes share.

    founding   the first entry of the log, which the log deletes some day
    key        a secret by which nodes know each other: whoever may read the log has it
    marker.*.* the end of a read

A read is of what was written before it started: it writes a marker, and ends there. One append and one
read each; a read that takes long writes further ones, in case the log deletes a marker before it is read.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Sequence

from cluster import records
from cluster.entries import Entry
from cluster.keys import Keys, Record
from cluster.log import LogConflictError, LogError
from cluster.ownership import Lease
from cluster.registry import SEEN, LastSeen, SlotRecords, StoredSubscription

_log = logging.getLogger(__name__)

_FOUNDING, _KEY, _MARKER = "founding", "key", "marker."
_KEY_BYTES = 32
_MARKER_BYTES = 8
_MARKER_S = 60
"""After this time a marker is deleted."""


class KeySharedRecords:
    """Shared records.

    Parameters
    ----------
    keys
        The keys.
    """

    def __init__(self, keys: Keys) -> None:
        self._keys = keys

    async def founding(self) -> Entry | None:
        """Return the first entry of the log; see `SharedRecords.founding`."""
        found = await self._latest(_FOUNDING)
        return records.founding_from(found.value) if found.value else None

    async def set_founding(self, entry: Entry) -> None:
        """Keep the first entry of the log; see `SharedRecords.set_founding`."""
        found, value = await self._latest(_FOUNDING), records.encoded_founding(entry)
        if found.value != value:
            with contextlib.suppress(LogConflictError):  # another node has the same one
                await self._keys.put(_FOUNDING, value, found.sequence)

    async def key(self) -> bytes:
        """Return the secret of the nodes; see `SharedRecords.key`."""
        found = await self._latest(_KEY)
        if not found.value:
            with contextlib.suppress(LogConflictError):
                await self._keys.put(_KEY, secrets.token_bytes(_KEY_BYTES), found.sequence)
            found = await self._latest(_KEY)
        if not found.value:
            raise LogError("the key of the nodes was deleted")
        return found.value

    async def leases(self) -> list[Lease]:
        """Return leases; see `SharedRecords.leases`."""
        found = await self._read([records.NODES])
        return [records.lease_from(one.value) for one in found if one.value]

    async def devices(self) -> SlotRecords:
        """Return the records of all devices. O(subscriptions)."""
        return records.of_devices(await self._read([records.SUBSCRIPTIONS]))

    async def add(self, one: StoredSubscription | LastSeen) -> None:
        """Add a record of a device to a cluster of which no node runs, unless it is there."""
        number = SEEN if isinstance(one, LastSeen) else one.subscription_id
        key = records.device_key(one.device_id, number)
        with contextlib.suppress(LogConflictError):  # a request that was repeated
            await self._keys.put(key, records.encoded(one), 0)

    async def _latest(self, key: str) -> Record:
        found = await self._read([key])
        return found[0] if found else Record(key, b"", 0)

    async def _read(self, patterns: Sequence[str]) -> list[Record]:
        """Return the latest records of keys."""
        marker = _MARKER + secrets.token_hex(_MARKER_BYTES)
        end = await self._mark(marker)
        renewing = asyncio.create_task(self._renew(marker))
        try:
            found = await self._keys.read([*patterns, f"{marker}.*"], end)
        finally:
            renewing.cancel()
            await asyncio.wait([renewing])
        return [one for one in found if not one.key.startswith(_MARKER)]

    async def _renew(self, marker: str) -> None:
        """Write markers, so that there is always one which is not deleted yet."""
        while True:
            await asyncio.sleep(_MARKER_S / 2)
            try:
                await self._mark(marker)
            except LogError as error:
                _log.warning("the end of a read of the log is not marked: %s", error)

    async def _mark(self, marker: str) -> int:
        """Write a marker; return its sequence."""
        while True:
            key = f"{marker}.{secrets.token_hex(_MARKER_BYTES)}"
            with contextlib.suppress(LogConflictError):  # a request that was repeated: it is there
                return await self._keys.put(key, b"end", 0, _MARKER_S)
