"""Convert windows of all kinds of subscriptions to messages and back."""

from __future__ import annotations

from nearcast.errors import invalid
from nearcast.milliseconds import DURATION_S_MIN, TTL_S_MAX, milliseconds
from nearcast.model import Last
from nearcast.protocol.shapes import number
from nearcast.v1 import subscriptions_pb2

_MS_PER_S = 1000.0
_WRITTEN_MAX = 2**53
"""Far more than a server accepts; the server refuses such values."""


def write_window(window: Last | None, message: subscriptions_pb2.SubscriptionSpec) -> None:
    """Write a window to a message.

    Raises
    ------
    RefusedError
        If the window has neither a time nor a count, or has both.
    """
    if window is None:
        return
    if not isinstance(window, Last):
        raise invalid("spec.window", window, "a Last, or None")
    if (window.seconds is None) == (window.count is None):
        raise invalid("spec.window", window, "either seconds or a count")
    if window.count is None:
        message.window.duration_ms = duration_ms(window)
    elif isinstance(window.count, bool) or not isinstance(window.count, int) or window.count <= 0:
        raise invalid("spec.window.count", window.count, "a whole number, at least 1")
    else:
        message.window.count = min(window.count, _WRITTEN_MAX)


def read_window(message: subscriptions_pb2.SubscriptionSpec) -> Last | None:
    """Convert a message to a window; None if it has none."""
    last = message.window.WhichOneof("last")
    if last == "duration_ms":
        return Last(seconds=message.window.duration_ms / _MS_PER_S)
    return Last(count=message.window.count) if last == "count" else None


def is_known(message: subscriptions_pb2.SubscriptionSpec) -> bool:
    """Return whether the window of a message is of a known sort, or absent."""
    return not message.HasField("window") or message.window.WhichOneof("last") is not None


def duration_ms(window: Last | None) -> int:
    """Return the duration of a window in milliseconds, rounded up; 0 if it has no duration.

    Raises
    ------
    RefusedError
        If the duration is not valid.
    """
    seconds = None if window is None else window.seconds
    if seconds is None:
        return 0
    field, limit = "spec.window.seconds", f"{DURATION_S_MIN} to {TTL_S_MAX} seconds"
    if not DURATION_S_MIN <= number(seconds, field, limit) <= TTL_S_MAX:
        raise invalid(field, seconds, limit)
    return milliseconds(seconds)
