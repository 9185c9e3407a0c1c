"""Kernel that finds positions at ticks, between points of traces. O(points + ticks)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from safe_region.jit import kernel

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]


@kernel
def between(
    offsets: Longs, ts_ms: Longs, origins_ms: Longs, tick_offsets: Longs, firsts: Longs, period_ms: int
) -> tuple[Longs, Floats]:
    """Find the points between which each tick lies.

    Parameters
    ----------
    offsets
        Points of trace n are offsets[n]..offsets[n + 1], at least two, by time.
    ts_ms
        The time of each.
    origins_ms
        The time of tick 0 of each trace.
    tick_offsets
        Ticks of trace n are tick_offsets[n]..tick_offsets[n + 1] of the returned arrays.
    firsts
        The first tick of each trace, not before its first point; its last is not after its last point.
    period_ms
        The time from tick to tick.

    Returns
    -------
    For each tick the point that it follows, never the last of its trace, and the fraction of the time to
    the next point that has passed, in [0, 1].
    """
    points = np.empty(tick_offsets[-1], np.int64)
    fractions = np.empty(tick_offsets[-1])
    for n in range(offsets.shape[0] - 1):
        point = offsets[n]
        last = offsets[n + 1] - 1
        for k in range(tick_offsets[n + 1] - tick_offsets[n]):
            now_ms = origins_ms[n] + (firsts[n] + k) * period_ms
            while point < last - 1 and ts_ms[point + 1] <= now_ms:
                point += 1
            points[tick_offsets[n] + k] = point
            fractions[tick_offsets[n] + k] = (now_ms - ts_ms[point]) / (ts_ms[point + 1] - ts_ms[point])
    return points, fractions
