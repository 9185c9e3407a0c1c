"""Long conversions from and to JSON: in a thread, one at a time, so that no device waits for them.

aiohttp does not end the handler of a connection that is lost. So a conversion that waits for its turn
does not take place if its client has closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from aiohttp import web

from nearcast.errors import Reason, RefusedError

WAITING_MAX = 64
"""Conversions that wait, beyond which a request that needs one is refused."""

_RETRY_MS = 1_000

_Converted = TypeVar("_Converted")


class Conversions:
    """The conversions of all requests and responses."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="json")
        self._turn = asyncio.Lock()
        self.count = 0
        """Conversions that wait, and the present one."""

    def close(self) -> None:
        """Convert no more."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def require_room(self) -> None:
        """Raise RefusedError (RATE_LIMITED) if too many conversions wait."""
        if self.count > WAITING_MAX:
            waiting = f"{self.count + 1} at once"
            limit = f"at most {WAITING_MAX + 1} of all callers; try again"
            raise RefusedError(
                Reason.RATE_LIMITED, "conversions", waiting, limit, retry_after_ms=_RETRY_MS
            )

    async def converted(
        self, request: web.Request, convert: Callable[..., _Converted], *arguments: object
    ) -> _Converted:
        """Return the result of a conversion for a request.

        Raises
        ------
        ConnectionResetError
            If the connection of the request was lost before.
        """
        self.count += 1
        try:
            async with self._turn:
                if request.transport is None:
                    raise ConnectionResetError("the client has closed")
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(self._thread, convert, *arguments)
        finally:
            self.count -= 1
