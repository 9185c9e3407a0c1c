"""Windows on the wire and on the device, of subscriptions of all kinds."""

from __future__ import annotations

import math

from nearcast.errors import invalid
from nearcast.model import Last
from nearcast.v1 import subscriptions_pb2

_MS_PER_S = 1000.0
_WRITTEN_MAX = 2**53
"""Far beyond what a server takes, which says so."""


def write_window(window: Last | None, message: subscriptions_pb2.SubscriptionSpec) -> None:
    """Write which objects count.

    Raises
    ------
    RefusedError
        If it is neither a time nor a number, or both.
    """
    if window is None:
        return
    if (window.seconds is None) == (window.count is None):
        raise invalid("spec.window", window, "either seconds or a count")
    if window.count is None:
        message.window.duration_ms = duration_ms(window)
    elif isinstance(window.count, bool) or not isinstance(window.count, int) or window.count <= 0:
        raise invalid("spec.window.count", window.count, "a whole number, at least 1")
    else:
        message.window.count = min(window.count, _WRITTEN_MAX)


def read_window(message: subscriptions_pb2.SubscriptionSpec) -> Last | None:
    """Read which objects count."""
    last = message.window.WhichOneof("last")
    if last == "duration_ms":
        return Last(seconds=message.window.duration_ms / _MS_PER_S)
    return Last(count=message.window.count) if last == "count" else None


def is_known(message: subscriptions_pb2.SubscriptionSpec) -> bool:
    """Whether a window is of a sort that is known here, or absent."""
    return not message.HasField("window") or message.window.WhichOneof("last") is not None


def is_same_window(window: Last | None, other: Last | None) -> bool:
    """Whether the server's window is what was asked for."""
    if window is None or other is None or window.seconds is None or other.seconds is None:
        return window == other
    return duration_ms(window) == duration_ms(other)


def duration_ms(window: Last | None) -> int:
    """Return for how long an object counts; of a part of a millisecond, all of it. 0 for as it lives.

    Raises
    ------
    RefusedError
        If that is no time.
    """
    seconds = None if window is None else window.seconds
    if seconds is None:
        return 0
    if isinstance(seconds, bool) or not (isinstance(seconds, int | float) and 0.0 < seconds < math.inf):
        raise invalid("spec.window.seconds", seconds, "a number of seconds, more than 0")
    return min(math.ceil(seconds * _MS_PER_S), _WRITTEN_MAX)
