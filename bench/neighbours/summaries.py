"""Summarise the latencies of honest callers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

Latencies = Sequence[tuple[float, float]]
"""The time at which each message was due, and its latency, in seconds."""

_WINDOW_S = 1.0
_STEP_S = 0.1
_SHARE = 0.9
_FACTOR = 2.0


class Summary(NamedTuple):
    """Latencies within a span."""

    messages: int
    ms_p50: float
    ms_p99: float
    ms_max: float


def within(latencies: Latencies, from_s: float, to_s: float) -> list[float]:
    """Return the latencies of the messages that were due within a span, ascending."""
    return sorted(took_s for due_s, took_s in latencies if from_s <= due_s < to_s)


def quantile(ascending: Sequence[float], share: float) -> float:
    """Return the value below which a share of the values lies; 0 for none."""
    return ascending[min(len(ascending) - 1, int(len(ascending) * share))] if ascending else 0.0


def summary(latencies: Latencies, from_s: float, to_s: float) -> Summary:
    """Return the latencies of the messages that were due within a span."""
    found = within(latencies, from_s, to_s)
    median, high, highest = (1e3 * quantile(found, share) for share in (0.5, 0.99, 1.0))
    return Summary(len(found), round(median, 2), round(high, 2), round(highest, 2))


def recovery_s(latencies: Latencies, bound_s: float, from_s: float, to_s: float) -> float | None:
    """Return the seconds until latencies are as before; None if they are not within the span.

    They are as before from the first second in which nine of ten messages take at most twice the 99th
    percentile before the act.

    Parameters
    ----------
    latencies
        The latencies of messages, by the time at which they were sent.
    bound_s
        The 99th percentile before.
    from_s, to_s
        The span to search.
    """
    start_s = from_s
    while start_s + _WINDOW_S <= to_s:
        found = within(latencies, start_s, start_s + _WINDOW_S)
        if found and quantile(found, _SHARE) <= _FACTOR * bound_s:
            return round(start_s - from_s, 2)
        start_s += _STEP_S
    return None
