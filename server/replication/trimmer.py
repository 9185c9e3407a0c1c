"""Trims the log: deletes messages that every node has in its store, and that are old.

One node does it, the first one by address of those that are there. Two at once are harmless: messages up
to an offset can be deleted twice. A node that is not there does not hold the log back for longer than the
time for which all messages are kept: when it is back, it copies the store of another one (`joining`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from cluster.log import Log, LogError
from cluster.ownership import Lease

_log = logging.getLogger(__name__)

INTERVAL_S = 60.0


class Trimmer:
    """Trims the log of a cluster.

    Parameters
    ----------
    log
        The log.
    leases
        Returns the leases of the nodes that are there, by address.
    address
        Of this node.
    keep_s
        For how long messages are kept in any case.
    """

    def __init__(
        self, log: Log, leases: Callable[[], Sequence[Lease]], address: str, keep_s: float
    ) -> None:
        self._log = log
        self._leases = leases
        self._address = address
        self._keep_s = keep_s

    async def run(self) -> None:
        """Trim the log now and then, until cancelled."""
        while True:
            await asyncio.sleep(INTERVAL_S)
            try:
                await self.trim()
            except LogError as error:
                _log.warning("the log is not trimmed: %s", error)

    async def trim(self) -> None:
        """Trim the log, if that is up to this node.

        Raises
        ------
        LogError
            If the log does not respond.
        """
        leases = self._leases()
        if not leases or leases[0].node.address != self._address:
            return
        stored = min(lease.stored_offset for lease in leases)
        first = await self._log.first()
        if stored < first:
            return
        until = min(stored, await self._log.older(self._keep_s))
        if until >= first:
            await self._log.trim(until)
            _log.info("the log is trimmed up to offset %d", until)
