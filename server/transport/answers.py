"""Answers to calls that wait to be written: bounded in bytes, for each caller and for all.

A client may open no window for what it has asked. gRPC then keeps the answer as long as the connection
lasts, and has no way to break the call off. So a caller whose answers wait is given no more of them:
further calls of it wait, and are refused after a while. How large an answer is, is not known before it is
there; it is taken to be as large as the last one of its caller.

Operations: O(1) a call.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from server.errors import Reason, RefusalError
from server.quotas import Account

CALLER_BYTES_MAX = 8 * 1024 * 1024
"""Of one caller of weight 1; one answer may be larger if it is alone."""

BYTES_MAX = 256 * 1024 * 1024
"""Of all callers."""

_RESERVE_BYTES = 64 * 1024
"""What each caller may have, whatever others have."""

_WAIT_S = 10.0
_RETRY_MS = 1_000


class Reservation:
    """Room for one answer."""

    __slots__ = ("size",)

    def __init__(self, size: int) -> None:
        self.size = size


class Answers:
    """Room for answers."""

    def __init__(self) -> None:
        self._size = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def room(self, account: Account) -> AsyncIterator[Reservation]:
        """Wait for room for an answer, and keep it until the answer is written.

        Raises
        ------
        RefusalError
            RATE_LIMITED, if answers of the caller are not read meanwhile.
        """
        expected = account.answer_bytes
        if not self._has_room(account, expected):
            await self._wait(account, expected)
        reservation = Reservation(0)
        self.resize(account, reservation, expected)
        try:
            yield reservation
        finally:
            self.resize(account, reservation, 0)
            self._wake()

    def resize(self, account: Account, reservation: Reservation, size: int) -> None:
        """Note how large an answer is."""
        more = size - reservation.size
        reservation.size = size
        account.unread_bytes += more
        self._size += more

    def _has_room(self, account: Account, size: int) -> bool:
        if account.unread_bytes == 0:
            return self._size + size <= BYTES_MAX or size <= _RESERVE_BYTES
        is_within = account.unread_bytes + size <= CALLER_BYTES_MAX * account.weight
        return is_within and self._size + size <= BYTES_MAX

    async def _wait(self, account: Account, size: int) -> None:
        loop = asyncio.get_running_loop()
        end_s = loop.time() + _WAIT_S
        while not self._has_room(account, size):
            future: asyncio.Future[None] = loop.create_future()
            self._waiting.append(future)
            try:
                async with asyncio.timeout_at(end_s):
                    await future
            except TimeoutError:
                raise RefusalError(
                    Reason.RATE_LIMITED,
                    "answers",
                    f"{account.unread_bytes} bytes that are not read",
                    f"at most {CALLER_BYTES_MAX * account.weight:.0f} bytes",
                    retry_after_ms=_RETRY_MS,
                ) from None

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, deque()
        for future in waiting:
            if not future.done():
                future.set_result(None)
