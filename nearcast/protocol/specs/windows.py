"""Convert windows of all kinds of subscriptions to their canonical form and back."""

from __future__ import annotations

from nearcast.canonical import NO_WINDOW, Window
from nearcast.errors import invalid
from nearcast.milliseconds import DURATION_S_MIN, TTL_S_MAX, milliseconds
from nearcast.model import Last
from nearcast.protocol.shapes import number

_MS_PER_S = 1000.0
_WRITTEN_MAX = 2**53
"""Far more than a server accepts; the server refuses such values."""


def checked_window(window: Last | None) -> Window:
    """Return the canonical form of a window.

    Raises
    ------
    RefusedError
        If the window has neither a time nor a count, or has both.
    """
    if window is None:
        return NO_WINDOW
    if not isinstance(window, Last):
        raise invalid("spec.window", window, "a Last, or None")
    if (window.seconds is None) == (window.count is None):
        raise invalid("spec.window", window, "either seconds or a count")
    if window.count is None:
        return Window(duration_ms=duration_ms(window))
    if isinstance(window.count, bool) or not isinstance(window.count, int) or window.count <= 0:
        raise invalid("spec.window.count", window.count, "a whole number, at least 1")
    return Window(count=min(window.count, _WRITTEN_MAX))


def last_of(window: Window) -> Last | None:
    """Return a window as apps see it; None for all live objects."""
    if window.duration_ms:
        return Last(seconds=window.duration_ms / _MS_PER_S)
    return Last(count=window.count) if window.count else None


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
