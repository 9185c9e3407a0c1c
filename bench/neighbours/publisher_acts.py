"""Acts of a publisher: each function acts until the time of its caller is over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from bench.neighbours import messages as m
from bench.neighbours.caller import PUBLISH, RETRACT, Act, Caller, refused

_PAYLOAD_BYTES = 16 * 1024
_PAYLOAD_OBJECTS = 200
_STREAMS = 32
_LONG_MS = 24 * 3600 * 1000


def publishing(request: Callable[[], bytes]) -> Act:
    """Return an act that sends the same request as fast as streams accept it.

    When a stream has ended, the act opens another one.
    """

    async def act(caller: Caller) -> None:
        message = request()
        while caller.is_on:
            stream = caller.stream(PUBLISH, refused)
            while caller.is_on and await caller.write(stream, message):
                pass

    act.__doc__ = request.__doc__
    return act


async def many_streams(caller: Caller) -> None:
    """Send requests of full payloads on 32 streams at once, without waiting for responses."""
    message = full_payloads()
    act = publishing(lambda: message)
    await asyncio.gather(*(act(caller) for _ in range(_STREAMS)))


async def retracts(caller: Caller) -> None:
    """Retract 33 million ids, one call after the other."""
    message = m.retraction_of_ids()
    while caller.is_on:
        await caller.call(RETRACT, message)


def full_payloads() -> bytes:
    """Return a request to publish 200 objects of 16 KiB for a day."""
    return m.publication(1, "stock", _LONG_MS, b"p" * _PAYLOAD_BYTES, _PAYLOAD_OBJECTS)
