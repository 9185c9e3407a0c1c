"""Bounds in bytes on publish requests that were read and have no result yet, for each caller and for all.

A caller may have many streams. Beyond the bound of the caller, a request that was read waits, and its
stream is not read on. So a caller occupies the bound, and one further request for each of its streams.

Operations: O(1) per request.
"""

from __future__ import annotations

import asyncio

from identity.quotas import Account
from server.runtime.waiters import Waiters

CALLER_BYTES_MAX = 8 * 1024 * 1024
"""Bytes of one caller; a request that is alone may be larger."""

BYTES_MAX = 256 * 1024 * 1024
"""Bytes of all callers."""


class ReceivedBytes:
    """The bytes of requests without a result."""

    def __init__(self) -> None:
        self._size = 0
        self._waiters = Waiters(self._has_room, self._is_within)

    async def add(self, account: Account, size: int) -> None:
        """Wait until a caller may have more bytes, and count them."""
        if account not in self._waiters and self._has_room(account, size):
            self._resize(account, size)
            return
        is_counted = False

        def count() -> None:
            nonlocal is_counted
            is_counted = True
            self._resize(account, size)

        try:
            await self._waiters.wait(account, size, count)
        except asyncio.CancelledError:
            if is_counted:  # it was cancelled after its turn, before it went on
                self.remove(account, size)
            raise

    def remove(self, account: Account, size: int) -> None:
        """Count bytes no longer."""
        self._resize(account, -size)
        if self._waiters:
            self._waiters.wake((account,))

    def _resize(self, account: Account, more: int) -> None:
        self._size += more
        account.received_bytes += more

    def _has_room(self, account: Account, size: int) -> bool:
        return self._is_within(account, size) and (
            not account.received_bytes or self._size + size <= BYTES_MAX
        )

    def _is_within(self, account: Account, size: int) -> bool:
        held = account.received_bytes
        return held == 0 or held + size <= CALLER_BYTES_MAX
