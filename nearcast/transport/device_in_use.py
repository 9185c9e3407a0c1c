"""Attach a device that another instance of the app uses: wait, and retry.

The server gives the time after which it notices that an instance has vanished. The instance may be
detached before, so the SDK retries every few seconds until then. An instance that is attached after that
time is alive.
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
"""Longest pause between two attempts. A hello and its refusal have some 300 bytes."""

_SLACK_S = 1.0
"""Added to the time that the server gives: it notices and detaches within this time."""

_MS_PER_S = 1000.0


def checked_wait_s(wait_s: float | None) -> float | None:
    """Validate the time to wait for another instance to be detached, and return it.

    Raises
    ------
    RefusedError
        If the value is not a valid time.
    """
    is_time = (
        isinstance(wait_s, int | float) and not isinstance(wait_s, bool) and 0.0 <= wait_s < math.inf
    )
    if wait_s is None or is_time:
        return wait_s
    raise invalid(
        "wait_s", wait_s, "a number of seconds, 0 or more, or None for the time that the server suggests"
    )


async def attach_when_free(
    attach: Callable[[], Awaitable[_Attached]], device_id: str, wait_s: float | None
) -> _Attached:
    """Attach a device; while another instance uses it, wait and retry.

    Parameters
    ----------
    attach
        Makes one attempt.
    device_id
        Name of the device, for the log.
    wait_s
        Total time to wait; None for the time that the server gives.

    Raises
    ------
    RefusedError
        DEVICE_IN_USE if the other instance is attached at the end of that time, or any other refusal.
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
        # The first message is a warning, which Python prints: the wait would look like a hang.
        _log.log(
            logging.INFO if has_warned else logging.WARNING,
            "device %s: another instance is attached; waiting for up to %.0f s more "
            "(take_over=True replaces it at once)",
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
