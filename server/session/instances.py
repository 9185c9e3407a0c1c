"""The check that an instance of a device's app may attach, perhaps in place of another one.

A nonce identifies an instance. While one is attached, the hello of another one is refused, unless it may
take over: with the device's own token, or with `take_over`. An instance that itself took over moments ago
keeps its place for a while, and longer each time, so that two that both insist cannot replace each other
for ever.

Operations: O(1).
"""

from __future__ import annotations

from nearcast.errors import Reason, RefusedError
from server.limits import Limits
from server.session.session import Session

_MS_PER_S = 1000.0
_MOMENT_MS = 1
"""Minimum time to wait: 0 would mean that waiting does not help."""


def require_instance(
    session: Session,
    nonce: bytes,
    device_name: str,
    *,
    may_take_over: bool,
    now_ms: int,
    limits: Limits,
    lease_ms: int,
) -> None:
    """Raise RefusedError (DEVICE_IN_USE) unless an instance may be attached now.

    Parameters
    ----------
    session
        The session of the device.
    nonce
        The nonce in the hello.
    device_name
        The name that the caller uses for the device.
    may_take_over
        Whether the instance may take the place of another one.
    now_ms
        In the time of leases.
    limits
        The limits, with the time after which dead connections are closed.
    lease_ms
        How long a device may send nothing; 0 for no limit.
    """
    if not session.is_attached or session.has_nonce(nonce):
        return
    if may_take_over:
        left_ms = session.took_over_ms + session.tenure_ms - now_ms
        if left_ms > 0:
            ago = _seconds(session.tenure_ms - left_ms)
            why = f"another one took over {ago} ago, and can be replaced in {_seconds(left_ms)}"
            raise _in_use(device_name, why, left_ms)
        return
    silent_ms = now_ms - session.last_seen_ms
    noticed_ms = limits.dead_connection_ms
    if lease_ms:
        noticed_ms = min(noticed_ms, session.last_seen_ms + lease_ms - now_ms)
    noticed_ms = max(_MOMENT_MS, noticed_ms)
    raise _in_use(
        device_name,
        f"another one is, last seen {_seconds(silent_ms)} ago; if it has vanished, the server notices "
        f"within {_seconds(noticed_ms)}; a hello with take_over replaces it at once",
        noticed_ms,
    )


def _in_use(device_name: str, why: str, retry_after_ms: int) -> RefusedError:
    limit = f"a device of which no other instance is attached: {why}"
    return RefusedError(
        Reason.DEVICE_IN_USE, "hello.device_id", repr(device_name), limit, retry_after_ms=retry_after_ms
    )


def _seconds(time_ms: int) -> str:
    return f"{time_ms / _MS_PER_S:.1f} s"
