"""Kernels of itineraries: the progress of a device along its path until something changes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from safe_region.jit import kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


@kernel
def advance(
    offsets: Longs, edges: Ints, times_s: Floats, paces: Floats, clocks_s: Floats, limits_s: Floats
) -> tuple[Longs, Ints, Floats]:
    """Drive along paths until a time limit; the edge that a device is on then is its last. O(edges).

    Parameters
    ----------
    offsets, edges
        Paths as compressed sparse rows, one a device.
    times_s
        The time on each edge of the network, at the pace 1.
    paces
        The pace of each device.
    clocks_s, limits_s
        When each device starts, and when it must stop for new conditions.

    Returns
    -------
    The number of edges that each device has driven along, these edges in sequence, and the end of each.
    """
    counts = np.zeros(paces.shape[0], np.int64)
    driven = np.empty(edges.shape[0], np.int32)
    ends_s = np.empty(edges.shape[0])
    used = 0
    for device in range(paces.shape[0]):
        clock_s = clocks_s[device]
        for i in range(offsets[device], offsets[device + 1]):
            if clock_s >= limits_s[device]:
                break
            clock_s += times_s[edges[i]] / paces[device]
            driven[used] = edges[i]
            ends_s[used] = clock_s
            used += 1
            counts[device] += 1
    return counts, driven[:used].copy(), ends_s[:used].copy()
