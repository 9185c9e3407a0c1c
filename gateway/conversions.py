"""Long conversions from and to JSON: in a thread, one at a time, so that no device waits for them.

aiohttp does not end the handler of a connection that is lost. So a conversion that waits for its turn
does not take place if its client has closed.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from aiohttp import web

from identity.quotas import Account
from nearcast.errors import Reason, RefusedError

WAITING_MAX = 64
"""Conversions that wait, beyond which a request that needs one is refused."""

CALLER_WAITING_MAX = 16
"""Of these, those of one caller."""

_RETRY_MS = 1_000

_Converted = TypeVar("_Converted")


class Conversions:
    """The conversions of all requests and responses."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="json")
        self._turn = asyncio.Lock()
        self._counts: Counter[Account] = Counter()

    def close(self) -> None:
        """Convert no more."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    @property
    def count(self) -> int:
        """The number of conversions that wait, and the present one."""
        return self._counts.total()

    def require_room(self, account: Account) -> None:
        """Raise RefusedError (RATE_LIMITED) if too many conversions wait, of a caller or of all."""
        for count, most, whose in (
            (self._counts[account], CALLER_WAITING_MAX, "this caller"),
            (self.count, WAITING_MAX, "all callers"),
        ):
            if count > most:
                limit = f"at most {most + 1} of {whose}; try again"
                raise RefusedError(
                    Reason.RATE_LIMITED,
                    "conversions",
                    f"{count + 1} at once",
                    limit,
                    retry_after_ms=_RETRY_MS,
                )

    async def converted(
        self,
        request: web.Request,
        account: Account,
        convert: Callable[..., _Converted],
        *arguments: object,
    ) -> _Converted:
        """Return the result of a conversion for a request of a caller.

        Raises
        ------
        ConnectionResetError
            If the connection of the request was lost before.
        """
        self._counts[account] += 1
        try:
            async with self._turn:
                if request.transport is None:
                    raise ConnectionResetError("the client has closed")
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(self._thread, convert, *arguments)
        finally:
            self._counts[account] -= 1
            self._counts += Counter()  # without those of which none waits
