"""A lock for each caller: one at a time of its tasks that let others run between their parts.

Without the lock, a caller with many streams or calls would have as many parts in each turn of the event
loop.
"""

from __future__ import annotations

import asyncio
from weakref import WeakKeyDictionary

from identity.quotas import Account


class CallerLocks:
    """The locks of callers, each for as long as its account exists."""

    def __init__(self) -> None:
        self._locks: WeakKeyDictionary[Account, asyncio.Lock] = WeakKeyDictionary()

    def of(self, account: Account) -> asyncio.Lock:
        """Return the lock of a caller. O(1)."""
        return self._locks.setdefault(account, asyncio.Lock())
