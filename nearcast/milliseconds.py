"""Convert durations: seconds in the SDK, whole milliseconds on the wire."""

from __future__ import annotations

import math

from nearcast.limits import DURATION_MS_MAX

DURATION_S_MIN = 0.001
TTL_S_MAX = DURATION_MS_MAX // 1000
"""Longest time to live and longest window that servers accept: 31,622,400 s."""

_MS_PER_S = 1000.0


def milliseconds(seconds: float) -> int:
    """Return a duration in milliseconds, rounded up.

    A duration from the wire is converted back to the same number: 2.007 seconds are 2007 milliseconds,
    although ``2.007 * 1000`` is a little more.
    """
    return math.ceil(round(seconds * _MS_PER_S, 6))


def seconds_text(seconds: float) -> str:
    """Format a duration for people: digits, without an exponent."""
    return f"{seconds:.3f}".rstrip("0").rstrip(".")
