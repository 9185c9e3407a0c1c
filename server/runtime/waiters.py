"""Tasks that wait for capacity, of which each caller may have a part.

Free capacity is given to waiting tasks by whoever frees it: no task is woken that then finds none. The
tasks of one caller are served in order. Callers that lack only the capacity of all take turns.

Operations: O(1) per task that waits, is served or stops waiting, and per caller that frees capacity.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from identity.quotas import Account


class _Waiter:
    """A task that waits."""

    __slots__ = ("grant", "granted", "size")

    def __init__(self, size: int, grant: Callable[[], None]) -> None:
        self.size = size
        self.grant = grant
        self.granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class Waiters:
    """The tasks that wait.

    Parameters
    ----------
    has_room
        Returns whether a caller may have more of the capacity now.
    is_within
        Returns whether that is within the bound of the caller, whatever others have.
    """

    def __init__(
        self, has_room: Callable[[Account, int], bool], is_within: Callable[[Account, int], bool]
    ) -> None:
        self._has_room = has_room
        self._is_within = is_within
        self._waiting: dict[Account, dict[_Waiter, None]] = {}
        """By caller, oldest first."""
        self._turns: dict[Account, None] = {}
        """Callers whose oldest task is within their bound, in the order of their turns."""

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, account: Account) -> bool:
        return account in self._waiting

    async def wait(self, account: Account, size: int, grant: Callable[[], None]) -> None:
        """Wait until a caller may have more of the capacity.

        Parameters
        ----------
        account
            The account of the caller.
        size
            How much it is to have.
        grant
            Uses the capacity; called before this returns.
        """
        waiter = _Waiter(size, grant)
        waiting = self._waiting.setdefault(account, {})
        waiting[waiter] = None
        if self._is_within(account, self._oldest(account).size):
            self._turns.setdefault(account)
        try:
            await waiter.granted
        finally:
            if waiter in waiting:
                self._remove(account, waiter)
                self.wake((account,))

    def wake(self, accounts: Iterable[Account]) -> None:
        """Serve the tasks for which there is capacity now, after some callers have freed some."""
        freed = [one for one in accounts if one in self._waiting]
        for account in freed:
            if self._is_within(account, self._oldest(account).size):
                self._turns.setdefault(account)
        while self._turns:
            account = next(iter(self._turns))
            size = self._oldest(account).size
            if not self._is_within(account, size):
                del self._turns[account]
            elif self._has_room(account, size):
                self._serve(account)
            else:
                break
        for account in freed:  # which may have capacity that is not for all
            while account in self._waiting and self._has_room(account, self._oldest(account).size):
                self._serve(account)

    def _oldest(self, account: Account) -> _Waiter:
        return next(iter(self._waiting[account]))

    def _serve(self, account: Account) -> None:
        """Serve the oldest task of a caller, whose next turn comes after those of others."""
        waiter = self._oldest(account)
        self._turns.pop(account, None)
        self._remove(account, waiter)
        if account in self._waiting:
            self._turns[account] = None
        if not waiter.granted.done():  # it is, if the task was cancelled
            waiter.granted.set_result(None)
            waiter.grant()

    def _remove(self, account: Account, waiter: _Waiter) -> None:
        waiting = self._waiting[account]
        del waiting[waiter]
        if not waiting:
            del self._waiting[account]
            self._turns.pop(account, None)
