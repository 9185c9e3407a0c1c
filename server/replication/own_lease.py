"""The lease of this node: renewed twice a second, valid until other nodes may have counted it out.

Cost: two appends per second.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

from cluster.log import LogConflictError, LogError, LogUnavailableError
from cluster.ownership import MISSED_MAX, Lease, Node
from cluster.registry import LeaseRead, Registry
from safe_region.steady_clock import steady_clock_s

_log = logging.getLogger(__name__)

RENEW_S = 0.5
LEASE_S = (MISSED_MAX - 1) * RENEW_S
"""After this time without a renewal, other nodes may have taken the slots of a node: one that reads the
renewal just before one of its own has read `MISSED_MAX` of its own so much later."""
NO_RECORD = 0
"""The sequence to expect where there is no record."""
_UNREAD_MAX = 100
"""Renewals of which the times are kept until they are read; a lease is not valid as long as this."""
_READ_S = 1.0
"""How long to wait for a lease that another record has replaced."""


class OwnLease:
    """The lease of a node.

    Parameters
    ----------
    registry
        The records that all nodes share.
    node
        This node.
    content
        Returns the lease as it is to be now.
    """

    def __init__(self, registry: Registry, node: Node, content: Callable[[], Lease]) -> None:
        self._registry = registry
        self._node = node
        self._content = content
        self._latest: LeaseRead | None = None
        """The latest lease that was read at the address of this node."""
        self._arrived = asyncio.Event()
        self._renewed = asyncio.Event()
        self.renewed_s = 0.0
        """When the latest lease was sent that was read, by the steady clock; not later than that."""
        self._written = 0
        """The sequence of the latest lease that this node has written; older ones may be read later."""
        self._sent_s: dict[int, float] = {}
        """When leases were sent that are not read yet, by sequence."""
        self._pending_s: float | None = None
        """When the first lease was sent that may have been written since; None if there is none."""

    @property
    def is_valid(self) -> bool:
        """Whether no other node may have taken a slot of this one, as far as it knows."""
        return self.age_s < LEASE_S

    @property
    def age_s(self) -> float:
        """The time since the latest lease was sent that was read."""
        return steady_clock_s() - self.renewed_s

    async def renewed(self) -> None:
        """Wait until the lease is valid."""
        while not self.is_valid:
            self._renewed.clear()
            await self._renewed.wait()

    def read(self, record: LeaseRead) -> None:
        """Read a lease at the address of this node."""
        self._latest = record
        self._arrived.set()
        if self._is_own(record):
            is_known = record.sequence <= self._written
            sent_s = self._sent_s.get(record.sequence) if is_known else self._pending_s
            self.renewed_s = self.renewed_s if sent_s is None else sent_s
            self._renewed.set()
        self._sent_s = {one: sent_s for one, sent_s in self._sent_s.items() if one > record.sequence}

    async def renew(self) -> None:
        """Renew the lease, until cancelled.

        Raises
        ------
        LogError
            If another node has the address of this one.
        """
        expected = self._sequence()
        while True:
            sent_s = steady_clock_s()
            self._pending_s = sent_s if self._pending_s is None else self._pending_s
            try:
                self._wrote(await self._registry.renew(self._content(), expected), sent_s)
                expected = self._written
            except LogConflictError:
                if await self._is_replaced(expected) or expected == NO_RECORD:
                    expected = self._sequence()
                else:
                    _log.warning("the log has no lease of this node: it is made again")
                    expected = NO_RECORD
            except LogUnavailableError as error:
                _log.warning("the lease of this node is not renewed: %s", error)
            await asyncio.sleep(RENEW_S)

    def _wrote(self, sequence: int, sent_s: float) -> None:
        self._written, self._pending_s = sequence, None
        if self._latest is None or self._latest.sequence < sequence:
            self._sent_s[sequence] = sent_s
        if len(self._sent_s) > _UNREAD_MAX:
            del self._sent_s[min(self._sent_s)]

    async def end(self) -> None:
        """Delete the lease, after `renew` has ended; that of another node at the same address stays."""
        if self._own_sequence() == NO_RECORD:
            return
        with contextlib.suppress(LogError, TimeoutError):
            async with asyncio.timeout(_READ_S):
                await self._registry.end(self._node.address, self._own_sequence())

    def _sequence(self) -> int:
        """Return the latest sequence that is known: what this node has written may be read later."""
        return max(self._written, 0 if self._latest is None else self._latest.sequence)

    def _own_sequence(self) -> int:
        """Return the sequence of the latest lease of this node that is known; `NO_RECORD` if none is."""
        latest = self._latest
        is_own = latest is not None and self._is_own(latest)
        return self._sequence() if is_own else self._written

    def _is_own(self, record: LeaseRead) -> bool:
        return record.lease is not None and record.lease.node == self._node

    async def _is_replaced(self, expected: int) -> bool:
        """Wait for the lease that has replaced the expected one; return whether there is one.

        If there is none, the log has deleted the record: it does so long after the last renewal. Or it is
        read later.

        Raises
        ------
        LogError
            If it is of another node.
        """
        self._arrived.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_READ_S):
                while self._sequence() <= expected:
                    await self._arrived.wait()
                    self._arrived.clear()
        found = self._latest
        is_later = found is not None and 0 < self._written < found.sequence
        if found is not None and found.lease is not None and is_later and found.lease.node != self._node:
            raise LogError(
                f"another node has the address {self._node.address}: give each its own, --advertise"
            )
        return self._sequence() > expected
