"""Bounds in bytes on responses to calls that wait to be written, for each caller and for all.

A client may open no flow-control window for its responses. gRPC then keeps a response as long as the
connection lasts, and cannot cancel the call. So a caller with unread responses gets no more of them: its
further calls wait, and are refused after a while. The size of a response is not known in advance; it is
assumed to equal the size of the caller's last one.

Operations: O(1) per call.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from identity.quotas import Account
from nearcast.errors import Reason, RefusedError

CALLER_BYTES_MAX = 8 * 1024 * 1024
"""Bytes of one caller of weight 1; a response that is alone may be larger."""

BYTES_MAX = 256 * 1024 * 1024
"""Bytes of all callers."""

_RESERVE_BYTES = 64 * 1024
"""Bytes that each caller may have, regardless of others."""

_WAIT_S = 10.0
_RETRY_MS = 1_000


class Reservation:
    """A reservation of bytes for one response."""

    __slots__ = ("size",)

    def __init__(self, size: int) -> None:
        self.size = size


class Answers:
    """The bytes reserved for responses."""

    def __init__(self) -> None:
        self._size = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def room(self, account: Account) -> AsyncIterator[Reservation]:
        """Wait for capacity for a response, and reserve it until the response is written.

        Raises
        ------
        RefusedError
            RATE_LIMITED, if the caller does not read its responses meanwhile.
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
        """Set the size of a response in bytes."""
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
                raise RefusedError(
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
