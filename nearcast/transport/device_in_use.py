"""Attaching a device that another instance of the app has: wait as the server says, and try again.

The server says after which time an instance that has vanished is noticed. It may be gone before, so the
SDK tries every few seconds until then; one that is there then is alive.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from typing import TypeVar

from nearcast.errors import Reason, RefusedError, invalid

_log = logging.getLogger(__name__)

_Attached = TypeVar("_Attached")

_PAUSE_S = 5.0
"""Between two tries, at most: a hello and its refusal are some 300 bytes."""

_SLACK_S = 1.0
"""Beyond what the server says: it notices and detaches in this time."""

_MS_PER_S = 1000.0


def checked_wait_s(wait_s: float | None) -> float | None:
    """Return how long to wait for another instance to be gone.

    Raises
    ------
    RefusedError
        If it is no time.
    """
    is_time = (
        isinstance(wait_s, int | float) and not isinstance(wait_s, bool) and 0.0 <= wait_s < math.inf
    )
    if wait_s is None or is_time:
        return wait_s
    raise invalid(
        "wait_s", wait_s, "a number of seconds, 0 or more, or None for as long as the server says"
    )


async def attach_when_free(
    attach: Callable[[], Awaitable[_Attached]], device_id: str, wait_s: float | None
) -> _Attached:
    """Attach a device; while another instance has it, wait and try again.

    Parameters
    ----------
    attach
        Tries once.
    device_id
        The device, for the log.
    wait_s
        How long to wait in all; None for as long as the server says.

    Raises
    ------
    RefusedError
        DEVICE_IN_USE if the other instance is there at the end of that time, and whatever else refuses.
    """
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    allowed_s = wait_s
    has_warned = False
    while True:
        try:
            return await attach()
        except RefusedError as error:
            refused = error
        if refused.reason is not Reason.DEVICE_IN_USE or refused.retry_after_ms <= 0:
            raise refused from None
        retry_s = refused.retry_after_ms / _MS_PER_S
        if allowed_s is None:
            allowed_s = retry_s + _SLACK_S
        waited_s = loop.time() - began_s
        left_s = allowed_s - waited_s
        if left_s <= 0.0:
            raise _still_in_use(refused, waited_s) from None
        # The first time for everybody to see: Python shows warnings, and a wait looks like a hang.
        _log.log(
            logging.INFO if has_warned else logging.WARNING,
            "device %s: another instance is attached; waiting for up to %.0f s more",
            device_id,
            left_s,
        )
        has_warned = True
        await asyncio.sleep(min(retry_s, _PAUSE_S, left_s))


def _still_in_use(error: RefusedError, waited_s: float) -> RefusedError:
    message = f"{error}; waited {waited_s:.0f} s"
    return RefusedError(
        error.reason, error.field, error.value, error.limit, message, error.retry_after_ms
    )
