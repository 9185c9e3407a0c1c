"""Kernels of itineraries: how far along its path a device gets before something changes."""

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
    """Drive along paths until a time is over; the edge that a device is on then is its last. O(edges).

    Parameters
    ----------
    offsets, edges
        Paths as compressed sparse rows, one a device.
    times_s
        On each edge of the network, at the pace 1.
    paces
        How fast each device is.
    clocks_s, limits_s
        When each begins, and when it has to stop to look around.

    Returns
    -------
    How many edges each has driven along, these edges one after the other, and when each of them ends.
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
