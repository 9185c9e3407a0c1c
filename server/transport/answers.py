"""Bounds in bytes on responses to calls that wait to be written, for each caller and for all.

A client may open no flow-control window for its responses. gRPC then keeps a response as long as the
connection lasts, and cannot cancel the call. So a caller with unread responses gets no more of them: its
further calls wait, and are refused after a while. The size of a response is not known before the call is
processed: until then it is assumed to equal the size of the caller's last one. A response that may be
large is a `Draft`. It is built when there is capacity for its size.

Operations: O(1) per call.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, NamedTuple

from identity.quotas import Account
from nearcast.errors import Reason, RefusedError
from server.runtime.waiters import Waiters

CALLER_BYTES_MAX = 8 * 1024 * 1024
"""Bytes of one caller of weight 1; a response that is alone may be larger."""

BYTES_MAX = 256 * 1024 * 1024
"""Bytes of all callers."""

_RESERVE_BYTES = 64 * 1024
"""Bytes that each caller may have, regardless of others."""

_LEAST_BYTES = 1_024
"""Bytes reserved at least: a call that changes something is not refused afterwards for its response."""

_WAIT_S = 10.0
_RETRY_MS = 1_000


class Draft(NamedTuple):
    """A response that is not built yet."""

    size: int
    """Bytes that it has at most."""
    parts: Sequence[Callable[[], Any]]
    """Each builds a message within some milliseconds. Their bytes together are those of the response: the
    bytes of a message are those of its fields."""


class Reservation:
    """A reservation of bytes for one response."""

    __slots__ = ("account", "size")

    def __init__(self, account: Account) -> None:
        self.account = account
        self.size = 0


class Answers:
    """The bytes reserved for responses."""

    def __init__(self) -> None:
        self._size = 0
        self._waiters = Waiters(self._has_room, self._is_within)

    @asynccontextmanager
    async def room(self, account: Account) -> AsyncIterator[Reservation]:
        """Wait for capacity for a response, and reserve it until the response is written.

        Raises
        ------
        RefusedError
            RATE_LIMITED, if the caller does not read its responses meanwhile.
        """
        reservation = Reservation(account)
        try:
            await self._reserve(reservation, max(_LEAST_BYTES, account.answer_bytes))
            yield reservation
        finally:
            self._free(reservation, 0)

    async def fit(self, reservation: Reservation, size: int) -> None:
        """Wait for capacity for a response whose size is known, and reserve it.

        Nothing is reserved while it waits, so that responses of one caller do not wait for each other.

        Raises
        ------
        RefusedError
            RATE_LIMITED, if the caller does not read its responses meanwhile.
        """
        if size > reservation.size:
            self._resize(reservation, 0)
            await self._reserve(reservation, size)

    def settle(self, reservation: Reservation, size: int) -> None:
        """Set the size of a response that is to be written.

        Raises
        ------
        RefusedError
            RATE_LIMITED, if it is larger than what is reserved, and there is no capacity for it.
        """
        if size <= reservation.size:
            self._free(reservation, size)
            return
        self._resize(reservation, 0)
        if not self._has_room(reservation.account, size):
            raise _refusal(reservation.account)
        self._resize(reservation, size)

    async def _reserve(self, reservation: Reservation, size: int) -> None:
        account = reservation.account
        if account not in self._waiters and self._has_room(account, size):
            self._resize(reservation, size)
            return
        self._waiters.wake((account,))
        try:
            async with asyncio.timeout(_WAIT_S):
                await self._waiters.wait(account, size, partial(self._resize, reservation, size))
        except TimeoutError:
            raise _refusal(account) from None

    def _free(self, reservation: Reservation, size: int) -> None:
        """Reduce a reservation."""
        self._resize(reservation, size)
        if self._waiters:
            self._waiters.wake((reservation.account,))

    def _resize(self, reservation: Reservation, size: int) -> None:
        more = size - reservation.size
        reservation.size = size
        reservation.account.unread_bytes += more
        self._size += more

    def _has_room(self, account: Account, size: int) -> bool:
        is_free = self._size + size <= BYTES_MAX
        if account.unread_bytes == 0:
            return is_free or size <= _RESERVE_BYTES
        return is_free and self._is_within(account, size)

    def _is_within(self, account: Account, size: int) -> bool:
        unread_bytes = account.unread_bytes
        return unread_bytes == 0 or unread_bytes + size <= CALLER_BYTES_MAX * account.weight


def _refusal(account: Account) -> RefusedError:
    return RefusedError(
        Reason.RATE_LIMITED,
        "answers",
        f"{account.unread_bytes} bytes that are not read",
        f"at most {CALLER_BYTES_MAX * account.weight:.0f} bytes",
        retry_after_ms=_RETRY_MS,
    )
