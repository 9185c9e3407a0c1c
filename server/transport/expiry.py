"""Streams end when the token ends with which they began."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from server.errors import RefusalError
from server.identity.tokens import expired
from server.principal import Principal

_HALF_CLOSE_S = 5.0
"""How long a client may go on after it was told."""

_LOOK_S = 86_400.0
"""Timers are for a day at most: the wall clock may be put right meanwhile."""


@contextmanager
def ending(
    principal: Principal, announce: Callable[[RefusalError], None], end: Callable[[], object]
) -> Iterator[None]:
    """Announce the end of a stream when the token of its caller ends, unless the block has ended before.

    `end` is called a few seconds later: by then the client should have half-closed.
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
            timer = loop.call_later(_HALF_CLOSE_S, end)
        else:
            timer = loop.call_later(min(left_s, _LOOK_S), look)

    timer = loop.call_soon(look)
    try:
        yield
    finally:
        timer.cancel()
