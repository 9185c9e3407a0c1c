"""Acts below gRPC: connections without calls, calls without a token, responses never read."""

from __future__ import annotations

import asyncio
import contextlib

from bench.neighbours import messages as m
from bench.neighbours.caller import ATTACH, SEARCH, Act, Caller
from bench.neighbours.http2 import RawConnection, header_block

CHECK = "/grpc.health.v1.Health/Check"
_AHEAD_MAX = 5_000
"""Maximum number of pending calls of a flood."""
_UNREAD = 150
_UNREAD_PAUSE_S = 0.01
_IDLE = 1_000
_NO_TOKEN = "x" * 3_000


def flooding(
    path: str,
    message: bytes | None = None,
    token: str = "",
    *,
    is_reset: bool = False,
    reads: bool = True,
) -> Act:
    """Return an act that makes calls on one raw connection as fast as they are ended."""

    async def act(caller: Caller) -> None:
        block = header_block(path, token)
        while caller.is_on:
            connection = await RawConnection.open(caller.address, reads=reads)
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(caller.remaining_s):
                    while caller.is_on:
                        await connection.call(block, message, is_reset=is_reset, ahead_max=_AHEAD_MAX)
            caller.counts["sent"] += connection.sent
            caller.counts["responses"] += connection.ended
            caller.counts["connections"] += 1
            connection.close()

    return act


async def unread_searches(caller: Caller) -> None:
    """Search for large results on a connection with a window of 0 for responses."""
    connection = await RawConnection.open(caller.address, window=0)
    block = header_block(SEARCH, caller.token)
    request = m.search(m.circle(caller.word, 40_000.0))
    with contextlib.suppress(OSError):
        for _ in range(_UNREAD):
            await connection.call(block, request)
            caller.counts["sent"] += 1
            await asyncio.sleep(_UNREAD_PAUSE_S)
    await caller.rest()
    caller.counts["responses"] += connection.ended
    connection.close()


async def idle_connections(caller: Caller) -> None:
    """Open a thousand connections and make no call."""
    connections = []
    for _ in range(_IDLE):
        with contextlib.suppress(OSError):
            connections.append(await RawConnection.open(caller.address))
            caller.counts["sent"] += 1
    await caller.rest()
    caller.counts["closed by the server"] += sum(one.is_closed for one in connections)
    for one in connections:
        one.close()


checks = flooding(CHECK, b"")
unread_checks = flooding(CHECK, b"", reads=False)
attaches = flooding(ATTACH)
attaches_reset = flooding(ATTACH, is_reset=True)
attaches_with_junk = flooding(ATTACH, token=_NO_TOKEN)
