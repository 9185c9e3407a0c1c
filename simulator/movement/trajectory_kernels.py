"""Kernel of the trajectories: positions at a fixed period along itineraries of timed legs.

Time is continuous within an itinerary, so what is left of an edge at one sample is simply driven
before the next; no rounding accumulates.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from safe_region.jit import kernel

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]


@kernel
def sample(
    offsets: Longs, ends_s: Floats, begins_s: Floats, period_s: float, tick_count: int
) -> tuple[npt.NDArray[np.int32], Floats]:
    """Find the leg that each device is on at each tick, and how far along in time. O(legs + ticks).

    Parameters
    ----------
    offsets
        Legs of device d are offsets[d]..offsets[d + 1], at least one.
    ends_s
        When each leg ends, ascending within a device, whose clock starts at 0.
    begins_s
        What each device's clock shows at tick 0.
    period_s, tick_count
        When to look.

    Returns
    -------
    Legs and fractions of their duration in [0, 1], each of shape (devices, ticks).
    """
    device_count = offsets.shape[0] - 1
    legs = np.empty((device_count, tick_count), np.int32)
    fractions = np.empty((device_count, tick_count))
    for device in range(device_count):
        leg = offsets[device]
        last = offsets[device + 1] - 1
        leg_begin_s = 0.0
        for tick in range(tick_count):
            now_s = begins_s[device] + tick * period_s
            while leg < last and ends_s[leg] <= now_s:
                leg_begin_s = ends_s[leg]
                leg += 1
            legs[device, tick] = leg
            duration_s = ends_s[leg] - leg_begin_s
            fraction = (now_s - leg_begin_s) / duration_s if duration_s > 0.0 else 1.0
            fractions[device, tick] = min(1.0, fraction)
    return legs, fractions
