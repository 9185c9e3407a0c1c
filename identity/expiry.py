"""The end of streams whose token expires."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from identity.principal import Principal
from identity.tokens import expired
from nearcast.errors import RefusedError

_HALF_CLOSE_S = 5.0
"""How long a client may continue after the announcement."""

_LOOK_S = 86_400.0
"""Timers last a day at most, since the wall clock may be corrected meanwhile."""


@contextmanager
def ending(
    principal: Principal,
    announce: Callable[[RefusedError], None],
    end: Callable[[], object],
    patience: int = 1,
) -> Iterator[None]:
    """Announce the end of a stream when the token of its caller expires, if the block has not ended.

    `end` is called `patience` times five seconds later: by then the client should have half-closed.
    """
    if principal.expires_s == float("inf"):
        yield
        return
    loop = asyncio.get_running_loop()
    timer: asyncio.Handle

    def look() -> None:
        nonlocal timer
        left_s = principal.expires_s - time.time()
        if left_s <= 0.0:
            announce(expired())
            timer = loop.call_later(patience * _HALF_CLOSE_S, end)
        else:
            timer = loop.call_later(min(left_s, _LOOK_S), look)

    timer = loop.call_soon(look)
    try:
        yield
    finally:
        timer.cancel()
